#!/usr/bin/env node
// The program needs `npm run build` in a checkout; installed from a registry it is built.
import { main } from "../dist/main.js";

await main(process.argv);
