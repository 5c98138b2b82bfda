#!/usr/bin/env node
import { existsSync } from "node:fs";

// Installed from a registry it is built; a checkout has to be built first.
if (existsSync(new URL("../dist/main.js", import.meta.url))) {
  const { main } = await import("../dist/main.js");
  await main(process.argv);
} else {
  process.stderr.write("osbert is not built yet: run `npm run build` in its checkout first\n");
  process.exitCode = 1;
}
