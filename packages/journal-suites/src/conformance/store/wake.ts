import assert from "node:assert/strict";
import { eventually } from "../eventually.js";
import type { StoreTests } from "../store-fixture.js";

/** `onWake` within one process; between processes see processes.ts. */
export const wakeTests: StoreTests = {
  "J5: whoever listens is woken by work that is committed through the same store": async (fixture) => {
    let [woken, calledOff] = [0, 0];
    fixture.store.onWake(() => woken++);
    fixture.store.onWake(() => calledOff++)();
    let commits = 0;
    await eventually("a call comes through", async () => {
      // Where nobody polls a call must not get lost; elsewhere it only saves waiting for the poll.
      if (commits === 0 || fixture.store.pace.pollMs !== null) {
        await fixture.create(`k${commits++}`, { wake: true, dueAt: 0 });
      }
      return woken > 0;
    });
    assert.equal(calledOff, 0, "what was called off is not called");
  },

  "J5: whoever listens is told work and values apart": async (fixture) => {
    const told: string[] = [];
    fixture.store.onWake((what, key = "k0") => {
      told.push(what);
      assert.match(key, /^k\d+$/, "a key that comes with it is that of the resource");
    });
    let keys = 0;
    const tell = async (details: { readonly wake?: boolean; readonly followed?: boolean }, what: string) => {
      let commits = 0;
      await eventually(`word of ${what} comes through`, async () => {
        if (commits++ === 0 || fixture.store.pace.pollMs !== null) await fixture.create(`k${keys++}`, details);
        return told.includes(what);
      });
    };
    await tell({ followed: true }, "value");
    assert.ok(!told.includes("work"), "a value is no work");
    await tell({ wake: true }, "work");
    told.length = 0;
    await tell({ wake: true, followed: true }, "value");
    await eventually("and of work, too", async () => told.includes("work"));
  },
};
