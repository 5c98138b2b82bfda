import { toValueNode } from "@osbert/server/yaml";
import { expect, test } from "vitest";
import { platformTable } from "../src/settings/platform-table.js";
import { read } from "../src/settings/read.js";
import { platformSettingsReference } from "../src/settings/reference.js";
import { systemWith } from "./system.js";

test("the reference page is what the table of a platform's settings says; `npx vitest run page -u` writes it", async () => {
  await expect(platformSettingsReference()).toMatchFileSnapshot("../../../docs/reference/platform-settings.md");
});

test("examples of a platform's settings are valid", () => {
  const { credentials } = platformTable;
  const written = toValueNode({ it: credentials.example }, { kind: "default" });
  expect(read({ it: credentials }, written, systemWith({}, { ALICE_PASSWORD: "x" })).faults).toEqual([]);
});
