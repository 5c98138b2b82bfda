import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { executionLab } from "./execution-lab.js";

async function until(is: () => boolean): Promise<void> {
  for (let look = 0; look < 500; look++) {
    if (is()) return;
    await pause(10);
  }
  throw new Error("it has not come to be");
}

test("E8: what a create that was stopped may have left is in the ledger before another create takes its place", async () => {
  const lab = await executionLab({
    offering: "unfetchable",
    rules: [
      { call: "provision", do: ["done-hang"] },
      { call: "deprovision", do: ["400"] },
    ],
    timeoutMs: 60_000,
  });
  const first = await lab.create("db");
  await until(() => lab.broker.state().instances.length > 0);
  const deleted = await lab.delete("db");
  await lab.cancel("db", first);
  // The broker refuses to delete it: it is still the instance's, and nobody has heard that it exists.
  expect(await lab.ended("db", deleted)).toMatchObject({ failure: { class: "rejected" } });
  expect(await lab.data("db")).toMatchObject({ osbId: "osb-db", applied: null });
  expect(await lab.ended("db", await lab.create("db", { osbId: "osb-db-2" }))).toMatchObject({ kind: "succeeded" });
  expect(await lab.data("db")).toMatchObject({ osbId: "osb-db-2", formerOsbIds: ["osb-db"] });
  await lab.quiet();
  expect(await lab.orphans()).toMatchObject([{ instanceOsbId: "osb-db", state: "mitigated" }]);
  expect(lab.broker.state().instances.map(({ id }) => id)).toEqual(["osb-db-2"]);
});
