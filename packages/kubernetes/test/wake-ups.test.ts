import { expect, test } from "vitest";
import { until } from "../../../tools/until.js";
import { WakeUps } from "../src/wiring/wake-ups.js";

test("where all are meant, of a cluster's namespaces only those are asked for that have flows, or an object of ours", async () => {
  const woken: string[] = [];
  const wakeUps = new WakeUps({
    namespace: async (namespace) => void woken.push(namespace),
    flowing: async function* () {
      yield* ["has-flows", "last"];
    },
  });
  for (let many = 0; many < 1_000; many++) wakeUps.namespace(`plain-${many}`);
  wakeUps.all();
  for (let many = 0; many < 1_000; many++) wakeUps.namespace(`other-${many}`);
  wakeUps.namespace("has-stray", true);
  wakeUps.namespace("has-flows");
  await until("all to be woken", async () => woken.includes("last"));
  expect(woken).toEqual(["has-stray", "has-flows", "last"]);
  wakeUps.close();
});
