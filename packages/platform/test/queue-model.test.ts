import fc from "fast-check";
import { expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
import { mergeParameters } from "../src/decisions/project.js";
import { unmanage } from "../src/decisions/unmanage.js";
import { type Admitted, type InstanceView, PlatformError } from "../src/index.js";
import {
  type DeleteMode,
  type PlanRef,
  instances as records,
  type UpdateInput,
} from "../src/records/instance-record.js";
import { type QueueLab, queueLab } from "./queue-lab.js";

/** Few by default; `OSBERT_PLATFORM_RUNS=1000` tells more stories. */
const runs = Number(process.env.OSBERT_PLATFORM_RUNS ?? 12);

/** One sentence of a story. What it is about is chosen from what is open then, by a number. */
type Sentence =
  | { readonly does: "update"; readonly by: string; readonly parameters: string }
  | { readonly does: "update after"; readonly by: string; readonly parameters: string; readonly which: number }
  | { readonly does: "change the plan"; readonly by: string; readonly plan: string }
  | { readonly does: "broker agrees" }
  | { readonly does: "broker refuses"; readonly usable: boolean }
  | {
      readonly does: "delete, which is refused";
      readonly mode: DeleteMode;
      readonly by: string;
      readonly now: boolean;
      /** Of its bindings, if there are any: the first cannot be unbound. */
      readonly isBlocked: boolean;
    }
  | { readonly does: "abandon" }
  /** Stops in the middle of whatever it does; nobody takes it up. */
  | { readonly does: "the lane is paused"; readonly isSilent: boolean }
  | { readonly does: "the lane is freed" }
  | { readonly does: "the broker is removed" }
  | { readonly does: "adopt" }
  | { readonly does: "delete, and restore" }
  | { readonly does: "cancel" | "hold" | "release"; readonly which: number }
  | { readonly does: "retry" }
  | { readonly does: "lock" | "unlock" }
  | { readonly does: "bind" | "unbind"; readonly name: string }
  | {
      readonly does: "set policy";
      readonly onFailure: "auto" | "halt" | "continue";
      readonly concurrency: "queue" | "replace";
    };

const who = fc.constantFrom("anna", "bert");
const which = fc.nat(9);
const wanted = fc
  .record(
    {
      a: fc.constantFrom(1, 2, null),
      b: fc.constantFrom(1, 2),
      n: fc.constantFrom<object | number>({ x: 1 }, { x: 1, y: 2 }, { x: { z: 1 } }, 7),
    },
    { requiredKeys: [] },
  )
  .filter((members) => Object.keys(members).length > 0)
  .map((members) => JSON.stringify(members));

const sentence: fc.Arbitrary<Sentence> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ does: fc.constant("update" as const), by: who, parameters: wanted }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant("update after" as const), by: who, parameters: wanted, which }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("change the plan" as const),
      by: who,
      plan: fc.constantFrom("small", "large"),
    }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant("broker agrees" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant("broker refuses" as const),
      usable: fc.constantFrom(true, true, true, false),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("delete, which is refused" as const),
      mode: fc.constantFrom<DeleteMode>("preempt", "drain"),
      by: who,
      now: fc.boolean(),
      isBlocked: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("the lane is paused" as const), isSilent: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("the lane is freed" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constantFrom("the broker is removed" as const, "adopt" as const, "adopt" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("delete, and restore" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constantFrom("cancel" as const, "hold" as const, "release" as const), which }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("retry" as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("lock" as const, "unlock" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom("bind" as const, "unbind" as const),
      name: fc.constantFrom("p", "q"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("set policy" as const),
      onFailure: fc.constantFrom("auto" as const, "halt" as const, "continue" as const),
      concurrency: fc.constantFrom("queue" as const, "replace" as const),
    }),
  },
);

const tale = fc.array(sentence, { minLength: 4, maxLength: 16 });

test("whatever is asked of a queue and whatever its broker answers, every promise of it holds", async () => {
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.boolean(), tale, async (isMade, isAbandoned, story) => {
      const teller = await Teller.begin(isMade);
      try {
        for (const one of story) await teller.tell(one);
        if (isAbandoned) await teller.tell({ does: "abandon" });
        await teller.end();
      } finally {
        await teller.lab.journal.stop({ drainMs: 0 });
      }
    }),
    { ...propertySeed(), numRuns: runs, interruptAfterTimeLimit: 600_000 },
  );
}, 900_000);

/** Plays a story, and after each sentence looks whether all is as it must be. */
class Teller {
  lab: QueueLab;
  /** Nobody plays the queue. */
  #isPaused = false;
  readonly #accepted = new Set<string>();
  /** Which operation others were to come after. */
  readonly #after = new Map<string, string>();

  private constructor(lab: QueueLab) {
    this.lab = lab;
  }

  static async begin(isMade: boolean): Promise<Teller> {
    const teller = new Teller(await queueLab());
    const { lab } = teller;
    await lab.journal.start();
    const wanted = { offering: "db", plan: "small", parameters: '{"a":0,"b":0}' };
    teller.#note(await lab.instances.create(lab.ref, wanted, lab.asks("anna")));
    if (isMade) await teller.#answer({ kind: "done" });
    return teller;
  }

  async tell(one: Sentence): Promise<void> {
    await this.#tell(one).catch((error: unknown) => {
      // To be told no is a fair answer; to be told so by accident is not.
      if (!(error instanceof PlatformError)) throw error;
      expect(error.code).not.toBe("unavailable");
    });
    await this.#check(await this.#calm());
  }

  /** All that is held is let go, the broker agrees with everything: then every intent has an outcome. */
  async end(): Promise<void> {
    await this.#free();
    const { lab } = this;
    const isGone = isOver(await lab.see());
    if (!isGone) await lab.instances.unlock(lab.ref, lab.asks("otto"));
    lab.answerAll();
    for (const { operation, state } of (await lab.see()).queue)
      if (state === "held")
        await lab.instances.release(lab.ref, operation, lab.asks("otto")).catch((error: unknown) => {
          // It was freed, or ended, by the success of one before it; or a delete is under way.
          if (!(error instanceof PlatformError && ["not-found", "deleting"].includes(error.code))) throw error;
        });
    await lab.until(async () => (await lab.see()).queue.length === 0);
    const view = await lab.see();
    expect(view.desired).toEqual(view.applied);
    if (view.usable) expect(view.phase).not.toBe("halted");
    for (const operation of this.#accepted)
      expect((await lab.journal.operation("instance/s/i", operation))?.status).not.toBe("open");
    if (isOver(view) || view.applied === null) return;
    // What the instance is, is what the broker has done, one after the other.
    let parameters: string | null = null;
    let plan: string | undefined;
    for (const operation of lab.done) {
      const asked = await this.#askedOf(operation);
      if (asked?.kind === "update") parameters = mergeParameters(parameters, asked.input.text.parameters);
      else if (asked?.kind === "create") parameters = asked.input.parameters ?? null;
      // Of the same plan it is what it was.
      else if (asked?.kind === "adopt" && asked.input.plan?.id !== plan) parameters = null;
      plan = (asked?.kind === "update" ? asked.input.text.plan?.id : asked?.input.plan?.id) ?? plan;
    }
    expect(JSON.parse(view.applied?.parameters ?? "null")).toEqual(JSON.parse(parameters ?? "null"));
  }

  async #tell(one: Sentence): Promise<void> {
    const { lab } = this;
    const { instances, ref } = lab;
    const anna = lab.asks("anna");
    switch (one.does) {
      case "update":
        this.#note(await instances.update(ref, { parameters: one.parameters }, lab.asks(one.by)));
        return;
      case "update after": {
        const after = await this.#choose(one.which);
        if (after === undefined) return;
        const { parameters } = one;
        const admitted = await instances.update(ref, { parameters, after: [after] }, lab.asks(one.by));
        this.#note(admitted);
        if (admitted.kind === "accepted") this.#after.set(admitted.operation, after);
        return;
      }
      case "change the plan":
        this.#note(await instances.update(ref, { plan: one.plan }, lab.asks(one.by)));
        return;
      case "broker agrees":
        return this.#answer({ kind: "done" });
      case "broker refuses":
        return this.#refuse(one.usable);
      case "delete, which is refused":
        return this.#refusedDelete(one);
      case "delete, and restore":
        return this.#restoredDelete();
      case "abandon": {
        const admitted = await instances.delete(ref, { mode: "abandon", reason: "no more" }, anna);
        this.#note(admitted);
        if (admitted.kind !== "accepted") return;
        await this.#free();
        this.lab.answer(admitted.operation);
        await this.lab.until(async () => (await this.lab.see()).phase === "abandoned");
        return;
      }
      case "the lane is paused":
        return this.#pause(one.isSilent);
      case "the lane is freed":
        return this.#free();
      case "the broker is removed": {
        const remove = records.decide((resource, now) => {
          const change = resource && unmanage(resource, "otto", "https://b.test", now);
          return { result: null, ...(change && { change }) };
        });
        const partsUnder = ["binding/", "call/"];
        await lab.journal.transact("instance/s/i", remove, { ...lab.asks("otto"), open: "all", partsUnder });
        await this.#free();
        await this.lab.until(async () => (await this.lab.see()).queue.length === 0);
        return;
      }
      case "adopt": {
        const { osbId } = await lab.see();
        const wanted = { offering: "db", plan: "small", osbId: osbId ?? "known" };
        this.#note(await instances.adopt(ref, wanted, anna));
        return;
      }
      case "cancel":
      case "hold":
      case "release": {
        const operation = await this.#choose(one.which);
        if (operation === undefined) return;
        if (one.does === "hold") await instances.hold(ref, operation, "later", anna);
        else await instances[one.does](ref, operation, anna);
        return;
      }
      case "retry": {
        const failed = (await lab.see()).failures.at(-1);
        if (failed !== undefined) this.#note(await instances.retry(ref, failed.operation, anna));
        return;
      }
      case "lock":
        await instances.lock(ref, { reason: "audit" }, lab.asks("otto"));
        return;
      case "unlock":
        await instances.unlock(ref, lab.asks("otto"));
        return;
      case "bind":
        this.#note(await instances.bind(ref, { name: one.name }, anna));
        return;
      case "unbind":
        this.#note(await instances.unbind(ref, one.name, anna));
        return;
      case "set policy":
        await instances.setPolicy(ref, { onFailure: one.onFailure, concurrency: one.concurrency }, anna);
    }
  }

  async #restoredDelete(): Promise<void> {
    const { lab } = this;
    const before = await this.#calm();
    this.#note(await lab.instances.delete(lab.ref, { cascade: true }, lab.asks("anna")));
    await lab.instances.restore(lab.ref, lab.asks("anna"));
    const after = await this.#calm();
    // Unbinds of the delete that went out already go on; those that were asked for before go first, and are held by nobody any more.
    const isKept = ([operation]: Placed) => !isUnbind(before, operation);
    const left = new Set(placesOf(after).map(([operation]) => operation));
    const kept = placesOf(before).filter((place) => isKept(place) && left.has(place[0]));
    const known = new Set(placesOf(before).map(([operation]) => operation));
    expect(placesOf(after).filter((place) => known.has(place[0]) && !isUnbind(after, place[0]))).toEqual(kept);
    if (before.queue.some(({ op }) => op === "create")) expect(left).toContain("create");
  }

  async #pause(isSilent: boolean): Promise<void> {
    if (this.#isPaused) return;
    const { lab } = this;
    if (isSilent) lab.fallSilent();
    this.#isPaused = true;
    await lab.journal.stop({ drainMs: 0 });
    this.lab = await queueLab({ store: lab.store, before: lab });
  }

  async #free(): Promise<void> {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    await this.lab.journal.start();
  }

  /** What was before it is as it was, but for what was before the delete itself and has ended. */
  async #refusedDelete({ mode, by, now, isBlocked }: Extract<Sentence, { does: "delete, which is refused" }>) {
    await this.#free();
    const { lab } = this;
    const before = await this.#calm();
    if (before.lock !== null) return;
    const admitted = await lab.instances.delete(lab.ref, { mode, now, cascade: true }, lab.asks(by));
    this.#note(admitted);
    if (admitted.kind !== "accepted") return;
    const { operation: gone } = admitted;
    let blocked = false;
    for (let tries = 0; tries < 60; tries++) {
      const view = await this.#calm();
      await this.#check(view);
      const [first] = view.queue.filter(({ state }) => state !== "held");
      if (first === undefined || first.operation === gone) break;
      blocked = isBlocked && first.op === "unbind";
      await this.#answer(blocked ? { kind: "refused", message: "in use" } : { kind: "done" });
      if (blocked) break;
    }
    if (!blocked) await this.#answer({ kind: "refused", message: "protected" });
    const after = await lab.see();
    if (blocked) {
      expect(after.lastDelete).toMatchObject({ operation: gone, by, how: "blocked" });
      expect(lab.sent).not.toContain(gone);
    } else expect(after.lastDelete).toMatchObject({ operation: gone, by, message: "protected" });
    // Nothing that was asked for is lost: what went out is gone on with.
    const interrupted = before.queue.find(({ op, state }) => (op === "create" || op === "adopt") && state !== "held");
    if (interrupted !== undefined && mode === "preempt")
      expect(after.queue.some(({ op }) => op === interrupted.op) || after.applied !== null).toBe(true);
    if (mode === "drain" || blocked || interrupted !== undefined || now) return;
    // Successes before the delete may have freed what failures held; nothing else has changed.
    const left = new Set(orderOf(after).map(([operation]) => operation));
    const kept = orderOf(before).filter(([operation]) => left.has(operation));
    expect(orderOf(after).map(([operation]) => operation)).toEqual(kept.map(([operation]) => operation));
    const heldBefore = new Set(kept.filter(([, isHeld]) => isHeld).map(([operation]) => operation));
    for (const [operation, isHeld] of orderOf(after)) if (isHeld) expect(heldBefore).toContain(operation);
  }

  /** What was to come after it waits for someone, unless the policy is to go on. */
  async #refuse(usable: boolean): Promise<void> {
    if (this.#isPaused) return;
    const { lab } = this;
    const [first] = (await this.#calm()).queue.filter(({ state }) => state !== "held");
    await this.#answer({ kind: "refused", ...(!usable && { usable: false }) });
    const { queue, policy } = await lab.see();
    if (policy.onFailure === "continue" || first === undefined) return;
    for (const { operation, state } of queue)
      if (this.#after.get(operation) === first.operation) expect(state).toBe("held");
  }

  /** The broker answers what is before it. */
  async #answer(answer: Parameters<QueueLab["answer"]>[1]): Promise<void> {
    const { lab } = this;
    const [first] = (await this.#calm()).queue.filter(({ state }) => state !== "held");
    if (first === undefined || this.#isPaused) return;
    lab.answer(first.operation, answer);
    await lab.until(async () => !(await lab.see()).queue.some(({ operation }) => operation === first.operation));
  }

  /** Waits until what can go on waits for the broker. */
  async #calm(): Promise<InstanceView> {
    const { lab } = this;
    let view = await lab.see();
    if (this.#isPaused) return view;
    await lab.until(async () => {
      view = await lab.see();
      const [first] = view.queue.filter(({ state }) => state !== "held");
      return first === undefined || (lab.sent.includes(first.operation) && first.state !== "cancelling");
    });
    return view;
  }

  async #check(view: InstanceView): Promise<void> {
    await this.#checkBindings(view);
    // Nothing waits to be made that nobody is about to make.
    if (view.phase === "pending" || view.phase === "creating")
      expect(view.queue.some(({ op }) => op === "create" || op === "adopt")).toBe(true);
    if (view.queue.some(({ op, state }) => op === "delete" && state !== "cancelling")) expect(view.desired).toBeNull();
    for (const { state, heldFor, operation } of view.queue) {
      // Nothing waits for someone without saying for what.
      if (state === "held") expect(heldFor).toBeTruthy();
      else expect(heldFor).toBeNull();
      if (state === "held") expect(this.lab.sent).not.toContain(operation);
    }
    if (view.queue.length === 0) expect(view.desired).toEqual(view.applied);
    const waitsForFailure = view.queue.some(({ heldFor }) => heldFor?.includes("failed") ?? false);
    if (view.phase === "ready") expect(waitsForFailure).toBe(false);
    expect(view.queue.length).toBeLessThanOrEqual(51);
  }

  #note(admitted: Admitted): void {
    if (admitted.kind === "accepted") this.#accepted.add(admitted.operation);
  }

  /** What may be bound at the broker is known here, and no delete goes out before it is unbound (P-DEL-01). */
  async #checkBindings(view: InstanceView): Promise<void> {
    const { lab } = this;
    const there = new Set<string>();
    for (const operation of lab.sent) {
      const asked = await this.#askedOf(operation);
      const binding = asked?.input.binding;
      if (binding === undefined) continue;
      const isRefused = lab.answers.get(operation)?.kind === "refused";
      if (asked?.kind === "bind" && !isRefused) there.add(binding);
      if (asked?.kind === "unbind" && lab.done.includes(operation)) there.delete(binding);
    }
    if (isOver(view)) return;
    const known = view.bindings.filter(({ phase }) => phase !== "failed").map(({ name }) => name);
    for (const binding of there) expect(known).toContain(binding);
    const deletes = view.queue.filter(({ op, operation }) => op === "delete" && lab.sent.includes(operation));
    if (deletes.length > 0) expect([...there]).toEqual([]);
    if (view.queue.some(({ state }) => state === "cancelling")) return;
    const { items } = await lab.instances.list({ space: "s" });
    expect(items[0]?.bindings).toBe(known.length);
  }

  /** What an operation was given. */
  async #askedOf(operation: string) {
    const seq = Number.parseInt(operation, 10);
    const [entry] = await this.lab.journal.entries("instance/s/i", { after: seq - 1, limit: 1 });
    return entry?.payload as unknown as
      | { kind: string; input: UpdateInput & { plan?: PlanRef; parameters?: string | null; binding?: string } }
      | undefined;
  }

  async #choose(number: number): Promise<string | undefined> {
    const { queue } = await this.lab.see();
    return queue.length === 0 ? undefined : queue[number % queue.length]?.operation;
  }
}

function isOver({ phase }: InstanceView): boolean {
  return phase === "gone" || phase === "abandoned";
}

type Placed = readonly [operation: string, isHeld: boolean];

/** A create, or an adoption, that is gone on with has another id. */
function placesOf({ queue }: InstanceView): readonly Placed[] {
  return queue.map(({ op, operation, state }) => [
    op === "create" || op === "adopt" ? op : operation,
    state === "held",
  ]);
}

function isUnbind({ queue }: InstanceView, operation: string): boolean {
  return queue.some((one) => one.operation === operation && one.op === "unbind");
}

function orderOf({ queue }: InstanceView): readonly (readonly [string, boolean])[] {
  return queue.map(({ operation, state }) => [operation, state === "held"]);
}
