import { expect, test } from "vitest";
import { emptied, held, operationOf, ready, sent, update } from "./queue-stories.js";

/** `a` and `n` could not be changed; below each of them, and beside them, someone wants more. */
async function failedTwice() {
  const lab = await ready();
  const first = await update(lab, '{"a":{"x":1},"n":{"x":1}}');
  await lab.until(() => lab.sent.includes(first));
  const belowA = await update(lab, '{"a":{"x":1,"y":2}}', "bert");
  const belowN = await update(lab, '{"n":{"x":1,"y":2}}', "carl");
  const named = operationOf(
    await lab.instances.update(lab.ref, { parameters: '{"c":1}', after: [first] }, lab.asks("dora")),
  );
  lab.answer(first, { kind: "refused", message: "never" });
  await lab.until(async () => (await lab.see()).phase === "halted");
  return { lab, first, belowA, belowN, named };
}

test("who corrects one path of a failed update leaves the failure of the others, and what depends on them held", async () => {
  const { lab, first, belowA, belowN, named } = await failedTwice();
  expect(await held(lab)).toEqual([belowA, belowN, named]);
  const cure = await update(lab, '{"a":5}');
  expect(await lab.see()).toMatchObject({
    phase: "halted",
    failures: [{ operation: first, paths: ["/parameters/n"] }],
  });
  expect(await held(lab)).toEqual([belowN, named]);
  lab.answer(cure);
  await lab.until(async () => (await lab.see()).queue.length === 2);
  expect(await lab.see()).toMatchObject({
    phase: "halted",
    failures: [{ operation: first, paths: ["/parameters/n"] }],
  });
  lab.answerAll();
  await update(lab, '{"n":7}');
  expect(await emptied(lab)).toMatchObject({
    phase: "ready",
    failures: [],
    applied: { parameters: '{"a":5,"b":1,"n":7,"c":1}' },
  });
});

test("who says of one failed path that it stays as it is has corrected that one alone", async () => {
  const { lab, first } = await failedTwice();
  expect((await lab.instances.update(lab.ref, { parameters: '{"a":1}' }, lab.asks("anna"))).kind).toBe("accepted");
  expect((await lab.see()).failures).toMatchObject([{ operation: first, paths: ["/parameters/n"] }]);
});

test("onFailure: halt holds everything until the last failed path is corrected", async () => {
  const lab = await ready();
  await lab.instances.setPolicy(lab.ref, { onFailure: "halt" }, lab.asks("anna"));
  const first = await update(lab, '{"a":2,"b":2}');
  await lab.until(() => lab.sent.includes(first));
  const other = await update(lab, '{"c":1}', "bert");
  lab.answer(first, { kind: "refused" });
  await lab.until(async () => (await lab.see()).phase === "halted");
  lab.answerAll();
  await update(lab, '{"a":3}');
  await lab.until(async () => (await lab.see()).queue.length === 1);
  expect(await held(lab)).toEqual([other]);
  await update(lab, '{"b":3}');
  expect((await emptied(lab)).applied?.parameters).toBe('{"a":3,"b":3,"c":1}');
});

test("a delete that comes after seventy unbinds is called off when the first of them is refused", async () => {
  const lab = await ready();
  lab.answerAll();
  const names = Array.from({ length: 70 }, (_, number) => `b${number}`);
  for (const name of names) {
    await lab.instances.bind(lab.ref, { name }, lab.asks("anna"));
    if (Number(name.slice(1)) % 35 === 34) await emptied(lab);
  }
  lab.answerAll(null);
  const first = await update(lab, '{"a":2}');
  await lab.until(() => lab.sent.includes(first));
  const second = await update(lab, '{"b":2}');
  await lab.instances.hold(lab.ref, second, "not before Monday", lab.asks("bert"));
  const wanted = { mode: "drain", cascade: true } as const;
  const gone = operationOf(await lab.instances.delete(lab.ref, wanted, lab.asks("anna")));
  const unbind = (await lab.see()).queue.find(({ op }) => op === "unbind")?.operation ?? "";
  lab.answer(unbind, { kind: "refused", message: "in use" });
  lab.answer(first);
  await lab.until(async () => (await lab.see()).lastDelete !== null);
  lab.answerAll();
  await lab.until(async () => (await lab.see()).queue.length === 1);
  expect(lab.sent).not.toContain(gone);
  expect(await lab.see()).toMatchObject({
    lastDelete: { operation: gone, how: "blocked" },
    bindings: [{ phase: "unbind-rejected" }],
    queue: [{ operation: second, state: "held", heldFor: "bert: not before Monday" }],
  });
});

test("what is held behind sixty-four others keeps its reason, and is freed with it", async () => {
  const lab = await ready();
  lab.answerAll();
  const names = Array.from({ length: 40 }, (_, number) => `b${number}`);
  for (const name of names) await lab.instances.bind(lab.ref, { name }, lab.asks("anna"));
  await emptied(lab);
  lab.answerAll(null);
  const first = await update(lab, '{"a":{"x":1}}');
  await lab.until(() => lab.sent.includes(first));
  for (let number = 0; number < 30; number++) await update(lab, `{"p${number}":1}`);
  for (const name of names) await lab.instances.unbind(lab.ref, name, lab.asks("anna"));
  expect((await lab.see()).queue).toHaveLength(71);
  const last = (await lab.see()).queue.at(-1)?.operation ?? "";
  await lab.instances.hold(lab.ref, last, "not before Monday", lab.asks("bert"));
  lab.answer(first, { kind: "refused" });
  await lab.until(async () => (await lab.see()).failures.length === 1);
  const heldFor = (await lab.see()).queue.find(({ operation }) => operation === last)?.heldFor;
  expect(heldFor).toBe("bert: not before Monday");
});

test("E5: with halt everything behind a failure is held, binds included, and goes on when it is corrected", async () => {
  const lab = await ready();
  await lab.instances.setPolicy(lab.ref, { onFailure: "halt" }, lab.asks("anna"));
  lab.answer(operationOf(await lab.instances.bind(lab.ref, { name: "old" }, lab.asks("anna"))));
  await emptied(lab);
  const first = await sent(lab, lab.instances.update(lab.ref, { parameters: '{"a":2}' }, lab.asks("anna")));
  const other = await update(lab, '{"b":2}', "bert");
  const bind = operationOf(await lab.instances.bind(lab.ref, { name: "app" }, lab.asks("carl")));
  // What is to go goes.
  const unbind = operationOf(await lab.instances.unbind(lab.ref, "old", lab.asks("carl")));
  lab.answer(first, { kind: "refused" });
  await lab.until(() => lab.sent.includes(unbind));
  expect(await held(lab)).toEqual([other, bind]);
  expect(lab.sent).not.toContain(bind);
  lab.answerAll();
  await update(lab, '{"a":3}');
  expect(await emptied(lab)).toMatchObject({
    phase: "ready",
    failures: [],
    bindings: [{ name: "app", phase: "bound" }],
  });
});
