import { expect, test } from "vitest";
import { AuthorError } from "../src/author/author-error.js";
import { localInput } from "../src/author/local-input.js";
import { newBundle } from "../src/author/new-bundle.js";
import { nothingKept } from "../src/catalog/action-input.js";
import { parseOsbertYaml } from "../src/formats/parse-osbert-yaml.js";

test.each([
  ["to compile", { dependencies: { a: Array.from({ length: 5_000 }, (_, at) => `p${at}`) } }],
  ["to check against", { allOf: [{ $ref: "#" }] }],
])("an author is told that a schema is too much work %s", (_, schema) => {
  const text = newBundle("team-folder", "sh").find(({ name }) => name === "osbert.yaml")?.text ?? "";
  const parsed = parseOsbertYaml(text);
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.problems));
  const { spec } = parsed;
  const [plan] = spec.plans.map((each) => ({ ...each, schemas: { ...each.schemas, provision: schema } }));
  if (plan === undefined) throw new Error("there is no plan");
  const about = { state: nothingKept, bindingState: nothingKept, instance: "i", binding: "b" };
  const asked = () => localInput(spec, { action: "provision", plan, parameters: {}, previousParameters: {}, ...about });
  expect(asked).toThrow(AuthorError);
  expect(asked).toThrow(/the broker would refuse this provision: .*too much work/);
});
