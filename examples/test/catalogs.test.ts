import { buildCatalog, type Service } from "@osbert/broker";
import type { Catalog } from "@osbert/protocol";
import { createClient } from "@osbert/protocol/client";
import ajvDraft04 from "ajv-draft-04";
import { describe, expect, test } from "vitest";
import { postgresDatabase } from "../src/postgres-database/postgres-database.js";
import { PretendCloud } from "../src/slow-cluster/pretend-cloud.js";
import { slowCluster } from "../src/slow-cluster/slow-cluster.js";
import { sqliteDatabase } from "../src/sqlite-database.js";
import { newFolder, startProgram } from "./program.js";

// Cloud Foundry refuses a broker whose schemas are not valid in draft-04.

interface Draft04 {
  validateSchema(schema: object): unknown;
  readonly errors?: unknown;
}

// The package is CommonJS: its default export is one level deeper under Node's ESM.
const Ajv = ((ajvDraft04 as { default?: unknown }).default ?? ajvDraft04) as new (options: object) => Draft04;

function expectDraft04({ services }: Catalog): void {
  const schemas = services
    .flatMap(({ plans }) => plans)
    .flatMap(({ schemas: { service_instance: instance, service_binding: binding } = {} }) =>
      [instance?.create, instance?.update, binding?.create].flatMap((input) =>
        input?.parameters === undefined ? [] : [input.parameters],
      ),
    );
  expect(schemas).not.toEqual([]);
  for (const schema of schemas) {
    expect(schema.$schema).toBe("http://json-schema.org/draft-04/schema#");
    const ajv = new Ajv({ strict: false, logger: false });
    expect({ valid: ajv.validateSchema(schema), errors: ajv.errors ?? null }).toEqual({ valid: true, errors: null });
  }
}

describe("published schemas are valid in draft-04, and say all that was written", () => {
  test.each<readonly [string, (folder: string) => Service]>([
    ["sqlite-database", (folder) => sqliteDatabase(folder)],
    ["postgres-database", () => postgresDatabase(async () => "postgres://127.0.0.1/never-asked")],
    ["slow-cluster", (folder) => slowCluster({ cloud: new PretendCloud(folder) })],
  ])("%s", async (_, service) => {
    const { body, warnings } = buildCatalog([service(await newFolder())]);
    expect(warnings).toEqual([]);
    expectDraft04(JSON.parse(body) as Catalog);
  });

  test.each(["minimal.ts", "class-style.ts"])("%s, as it answers", async (file) => {
    const program = startProgram(file, await newFolder());
    const [, url = "", username, password] = await program.until(
      /^(http:\S+) \{ username: '([^']+)', password: '([^']+)' \}$/m,
    );
    const client = createClient({ url, credentials: `Basic ${btoa(`${username}:${password}`)}` });
    const { catalog } = await client.catalog();
    if (catalog === "unchanged") throw new Error("nothing was known before");
    expectDraft04(catalog);
  });
});
