// Parses descriptions one after the other, and says how many bytes of each are then in V8's old space, which only a look through the whole heap frees:
// what is there for no reason makes the process as large as what is in use. Run from dist/, with --expose-gc.
import { setImmediate } from "node:timers/promises";
import { getHeapSpaceStatistics } from "node:v8";
import { parseOsbertYaml } from "@osbert/bundles";

const plan = (name, most) => `  ${name}:
    description: The ${name} one
    provision:
      type: object
      properties:
        name: { type: string, pattern: '^[a-z]{1,40}$' }
        size: { type: integer, minimum: 1, maximum: ${most} }
      additionalProperties: false
`;
const parse = (number) => {
  const { kind } = parseOsbertYaml(`osbert: 1
name: bundle-${number}
version: 1.0.0
description: A bundle like those that people offer
command: [sh, ./run.sh]
plans:
${plan("small", number)}${plan("large", number)}`);
  if (kind !== "valid") throw new Error(`bundle ${number} is ${kind}`);
};
const parseMany = async (from, to) => {
  for (let number = from; number < to; number++) {
    parse(number);
    await setImmediate();
  }
};
const oldBytes = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size;

await parseMany(0, 150);
gc();
gc();
const before = oldBytes();
await parseMany(150, 400);
process.stdout.write(String(Math.round((oldBytes() - before) / 250)));
