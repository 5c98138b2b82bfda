import { readFileSync } from "node:fs";
import { buildCatalog, defineServiceFunctions } from "@osbert/broker";
import { toValueNode } from "@osbert/server/yaml";
import { expect, test } from "vitest";
import { overlay } from "../src/serve/overlay.js";
import { settingsSchema } from "../src/settings/json-schema.js";
import { loadSettings } from "../src/settings/load.js";
import { read } from "../src/settings/read.js";
import { settingsReference } from "../src/settings/reference.js";
import type { Field, Fields } from "../src/settings/shape.js";
import { table } from "../src/settings/table.js";
import { systemWith } from "./system.js";

function committed(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
}

test("the reference page is what the table of settings says; `npm run docs` writes it", () => {
  expect(committed("docs/reference/settings.md")).toBe(settingsReference());
});

test("the schema for editors is what the table of settings says; `npm run docs` writes it", () => {
  expect(JSON.parse(committed("packages/cli/osbert.schema.json"))).toEqual(settingsSchema());
});

/** Every line of the table, at any depth. */
function linesOf(fields: Fields, key = ""): readonly (readonly [string, Field])[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const at = key === "" ? name : `${key}.${name}`;
    const inner =
      "of" in field.shape && typeof field.shape.of === "object" && "kind" in field.shape.of
        ? field.shape.of
        : field.shape;
    return [[at, field] as const, ...(inner.kind === "group" ? linesOf(inner.fields, at) : [])];
  });
}

const pem = "-----BEGIN CERTIFICATE-----";
const named = { "/etc/osbert/tls.crt": pem, "/etc/osbert/tls.key": pem, "/etc/osbert/clients.crt": pem };
const system = systemWith(
  {
    ...named,
    "/run/secrets/platform-password": "x",
    "/run/secrets/platform-password-hash": "$scrypt$x",
    "/run/secrets/osbert-keys": "a:b",
    "/place/database.png": Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
  },
  { PLATFORM_PASSWORD: "x", DASHBOARD_SECRET: "x" },
);

test.each(linesOf(table).filter(([, { example }]) => example !== undefined))(
  "the example of %s is valid",
  (_key, field) => {
    const written = toValueNode({ it: field.example }, { kind: "default" });
    expect(read({ it: field }, written, system).faults).toEqual([]);
  },
);

test.each(linesOf(table))("%s says what it means, in a sentence", (_key, { meaning }) => {
  expect(meaning).toMatch(/^[A-Z`0-9].*\.$/s);
});

test("all of the catalog is applied by a reload, and marked so", () => {
  const fixed = linesOf(table.catalog.shape.fields).filter(([, { reloads }]) => reloads !== true);
  expect(fixed).toEqual([]);
});

test("the settings of the README hold", () => {
  const [, yaml = ""] = /```yaml\n([\s\S]*?)```/.exec(committed("packages/cli/README.md")) ?? [];
  const files = { "/place/osbert.yaml": yaml, "/place/greeting.svg": "<svg></svg>" };
  const { settings } = loadSettings(undefined, systemWith(files, { PLATFORM_PASSWORD: "x" }));
  expect(settings.catalog.services.get("greeting")?.displayName).toBe("Greetings");
});

test("the settings of the guide to catalogs in YAML hold, and make a catalog", () => {
  const page = committed("docs/guides/catalog-in-yaml.md");
  // Whatever the settings name, the page must have.
  const [yaml = "", svg = ""] = ["yaml", "svg"].map((kind) => page.split(`\`\`\`${kind}\n`)[1]?.split("```")[0]);
  const files = { "/place/osbert.yaml": yaml, "/place/database.svg": svg };
  const { settings, places } = loadSettings(undefined, systemWith(files));
  const functions = defineServiceFunctions({ name: "database", bind: async () => ({ credentials: {} }) });
  const { services, faults } = overlay([functions], settings.catalog, places);
  expect(faults).toEqual([]);
  expect([...buildCatalog(services).services.values()].map(({ offering }) => offering.name)).toEqual([
    "database",
    "reporting",
  ]);
});
