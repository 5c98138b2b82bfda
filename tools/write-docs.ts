import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `npm run docs`: writes the pages and files about settings, which are made from the code, and what the chart's values have of them. Tests
 * compare them with what the code says.
 */
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Each with the arguments of `osbert` that print it. */
const pages: readonly (readonly [path: string, ...args: string[]])[] = [
  ["docs/reference/settings.md", "config", "--reference"],
  ["packages/cli/osbert.schema.json", "config", "--schema"],
];

const program = ["--conditions=@osbert/source", "--import", "tsx", join(root, "packages/cli/test/run-main.ts")];
for (const [path, ...args] of pages) {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, execFileSync(process.execPath, [...program, ...args], { encoding: "utf8" }));
}

const values = join(root, "deploy/helm/osbert-events/values.schema.json");
const [schema, settings] = [values, join(root, "packages/cli/osbert.schema.json")].map((file) =>
  JSON.parse(readFileSync(file, "utf8")),
);
schema.properties.events = settings.properties.events;
writeFileSync(values, `${JSON.stringify(schema, undefined, 2)}\n`);
