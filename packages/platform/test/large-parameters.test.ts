import { expect, test } from "vitest";
import { asProblem } from "../src/api/api-problem.js";
import { difference } from "../src/decisions/difference.js";
import { JsonTextError } from "../src/decisions/json-text.js";
import { applyText } from "../src/decisions/project.js";
import { settleUpdate } from "../src/decisions/settle-update.js";
import { type InstanceData, instances } from "../src/records/instance-record.js";
import { emptied, operationOf, ready, refusal, sent, update } from "./queue-stories.js";

// What users say adds up: all parameters of an instance are kept in one record, which the journal bounds. Each text below is one that is taken alone.

const texts = {
  "of three bytes a character": (name: string) => JSON.stringify({ [name]: "漢".repeat(85_000) }),
  "of one byte a character": (name: string) => JSON.stringify({ [name]: "x".repeat(250_000) }),
  "of quotes, each of which is kept as two characters": (name: string) =>
    JSON.stringify({ [name]: '"'.repeat(120_000) }),
};

test.each(Object.entries(texts))(
  "E10-28: parameters %s that add up to more than is kept are refused, never sent",
  async (_, text) => {
    const lab = await ready({}, "{}");
    lab.answerAll();
    const applied: string[] = [];
    let refused: unknown;
    for (let number = 0; number < 20 && refused === undefined; number++) {
      const name = `k${number}`;
      const asked = lab.instances.update(lab.ref, { parameters: text(name) }, lab.asks("anna"));
      refused = await asked.then(() => void applied.push(name)).catch((error: unknown) => error);
      await emptied(lab);
    }
    expect(refused).toMatchObject({
      code: "preflight-failed",
      details: { report: { findings: [{ rule: "parameters-too-large" }] } },
    });
    const view = await lab.see();
    expect({ failures: view.failures, names: Object.keys(JSON.parse(view.applied?.parameters ?? "{}")) }).toEqual({
      failures: [],
      names: applied,
    });
    expect(applied).toContain("k0");
    // It can still be changed, and deleted.
    await update(lab, `{"k0":0}`);
    await emptied(lab);
    operationOf(await lab.instances.delete(lab.ref, {}, lab.asks("anna")));
    await lab.until(async () => (await lab.see()).phase === "gone");
  },
);

test("many small values that were applied one text after the other are read like few large ones", () => {
  const plan = { id: "small-id", name: "small" };
  const before = { plan, parameters: JSON.stringify({ a: Array(200_000).fill(0) }), maintenance: null };
  const after = applyText(before, { plan: null, parameters: '{"b":1}', maintenance: null });
  expect(difference(before, after)).toEqual([{ op: "add", path: "/parameters/b", value: "1" }]);
});

test("what a queued update would make smaller counts as it is: that update may fail, and what is behind it goes on", async () => {
  const large = (name: string) => texts["of one byte a character"](name);
  const lab = await ready({}, large("a"));
  lab.answer(await update(lab, large("b")));
  await emptied(lab);
  const first = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"other":1}' }, lab.asks("anna")));
  await update(lab, '{"a":0}', "bert");
  expect(await refusal(lab.instances.update(lab.ref, { parameters: large("c") }, lab.asks("anna")))).toMatchObject({
    code: "preflight-failed",
  });
  // What is large already is no more so when it is said anew.
  await update(lab, JSON.stringify({ b: "y".repeat(250_000) }));
  lab.answer(first);
});

test("an update whose end could not be kept leaves it uncertain what the broker has done", async () => {
  const lab = await ready();
  const open = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const resource = instances.resource(await lab.journal.read("instance/s/i"));
  const operation = resource?.open.find(({ id }) => id === open);
  if (resource === undefined || operation === undefined) throw new Error("it is not open");
  const error = { class: "unkeepable", message: "too large" };
  const end = settleUpdate(resource as never, operation as never, { kind: "failed", error } as never);
  expect((end.data as InstanceData).uncertainSince).toMatchObject({ operation: open });
});

test("a text that cannot be read is the fault of whoever sent it, wherever that is found out", () => {
  expect(asProblem(new JsonTextError("it has more than 7 characters"))).toMatchObject({ status: 400, code: "invalid" });
});
