import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { tryToHold } from "./holding.js";

/**
 * A port of the loopback interface for as long as this process runs. It lies below those that the kernel gives to connections, so that a
 * part that was stopped finds it free when it is started again.
 */
export async function takePort(): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const port = randomInt(15_000, 32_000);
    const held = await tryToHold(`port/${port}`);
    if (held === undefined) continue;
    if (await isFree(port)) return port;
    await held.release();
  }
  throw new Error("the loopback interface has no free port");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    // On every interface: some parts listen there.
    probe.listen(port, () => probe.close(() => resolve(true)));
  });
}
