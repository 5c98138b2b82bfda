import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { expect, test } from "vitest";
import { hold, tryToHold } from "./holding.js";

const freshName = () => `test/${randomBytes(8).toString("hex")}`;

test("what one holds, another waits for until it is released", async () => {
  const name = freshName();
  const first = await tryToHold(name);
  expect(await tryToHold(name)).toBeUndefined();
  const order: string[] = [];
  const second = hold(name, () => order.push("waits")).then(async (held) => {
    order.push("has it");
    await held.release();
  });
  await expect.poll(() => order).toEqual(["waits"]);
  await first?.release();
  await second;
  expect(order).toEqual(["waits", "has it"]);
});

test("what a killed process held is free", async () => {
  const name = freshName();
  const module = new URL("holding.ts", import.meta.url).href;
  const code = `import { hold } from ${JSON.stringify(module)};
    await hold(${JSON.stringify(name)}, () => {});
    setInterval(() => {}, 1000);
    console.log("held");`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  expect(await tryToHold(name)).toBeUndefined();
  const free = hold(name, () => {});
  child.kill("SIGKILL");
  await (await free).release();
});
