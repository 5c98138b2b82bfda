import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import { keys } from "../src/records/keys.js";
import { queueLab } from "./queue-lab.js";
import { held, ready, refusal, sent, update } from "./queue-stories.js";

test("a lock that would be over already is refused, and holds nothing", async () => {
  const lab = await ready();
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await update(lab, '{"b":2}', "bert");
  for (const until of [lab.journal.now() - 1_000, lab.journal.now(), 0.5, Number.NaN]) {
    const asked = lab.instances.lock(lab.ref, { reason: "audit", until }, lab.asks("otto"));
    expect(await refusal(asked)).toMatchObject({ code: "invalid" });
  }
  expect(await lab.see()).toMatchObject({ lock: null });
  expect(await held(lab)).toEqual([]);
});

test("a lock whose commit is slower than its time does not come after its own end", async () => {
  const store = memoryStore();
  let isOver: () => Promise<boolean> = async () => true;
  // The commit of the lock is under way when its time is over, and its end has found nothing to unlock.
  const slow: Store = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== "commit") return value.bind(target);
      return async (change: Parameters<Store["commit"]>[0]) => {
        if (change.key === keys.instance("s", "i") && change.state.includes("too short"))
          while (!(await isOver())) await new Promise((resolve) => setTimeout(resolve, 5));
        return store.commit(change);
      };
    },
  });
  const lab = await ready({ store });
  await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  await update(lab, '{"b":2}', "bert");
  const late = await queueLab({ store: slow, before: lab });
  isOver = async () => (await lab.journal.read(keys.unlock("s", "i")))?.open.length !== 1;
  const asked = late.instances.lock(lab.ref, { reason: "too short", until: lab.journal.now() + 100 }, lab.asks("otto"));
  expect(await refusal(asked)).toMatchObject({ code: "invalid" });
  expect(await lab.see()).toMatchObject({ lock: null });
  expect(await held(lab)).toEqual([]);
});
