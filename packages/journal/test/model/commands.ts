import fc from "fast-check";
import type { StoreMethod } from "../../src/testing/index.js";
import type { Asked, Known, Script } from "./ledger.js";
import type { Process, Slot } from "./process.js";
import type { Fate } from "./wire.js";
import type { World } from "./world.js";

/** One thing that the test does. What it picks is decided when it runs, from what there is; its text then says what it picked. */
export class Command implements fc.AsyncCommand<World, World> {
  readonly #does: (world: World) => Act | undefined;
  #said: string;

  constructor(name: string, does: (world: World) => Act | undefined) {
    this.#said = name;
    this.#does = does;
  }

  check(world: World): boolean {
    return this.#does(world) !== undefined;
  }

  async run(world: World): Promise<void> {
    const act = this.#does(world);
    if (act === undefined) return;
    this.#said = act.says;
    world.story.did(act.says);
    await act.run();
    await world.settle();
    await world.check();
  }

  toString(): string {
    return this.#said;
  }
}

interface Act {
  readonly says: string;
  readonly run: () => void | Promise<void>;
}

const keys = ["r1", "r2", "r3"] as const;
const methods: readonly StoreMethod[] = ["commit", "commit", "commit", "claim", "renew", "release", "read", "entries"];

/** All commands, the usual ones more often. */
export const commands: fc.Arbitrary<Command> = fc.oneof(
  { weight: 10, arbitrary: accepting() },
  { weight: 10, arbitrary: finishing() },
  { weight: 4, arbitrary: failing() },
  { weight: 8, arbitrary: waiting() },
  { weight: 4, arbitrary: cancelling() },
  { weight: 2, arbitrary: replacing() },
  { weight: 4, arbitrary: arranging() },
  { weight: 3, arbitrary: crashing() },
  { weight: 4, arbitrary: starting() },
  { weight: 1, arbitrary: stopping() },
  { weight: 2, arbitrary: freezing() },
  { weight: 5, arbitrary: losing() },
  { weight: 2, arbitrary: slowing() },
  { weight: 6, arbitrary: delivering() },
  { weight: 1, arbitrary: losingSight() },
  { weight: 1, arbitrary: crowding() },
);

function accepting(): fc.Arbitrary<Command> {
  return fc.tuple(slot(), asking()).map(
    ([via, ask]) =>
      new Command("accept", (world) => {
        const process = answering(world, via);
        if (process === undefined) return undefined;
        const asked = { ...ask, name: world.ledger.nextName() };
        return { says: `accept ${words(asked)} at ${process}`, run: () => world.accept(process, [asked]) };
      }),
  );
}

/** More than a record holds: the rest waits in parts. */
function crowding(): fc.Arbitrary<Command> {
  return fc.tuple(slot(), fc.constantFrom(...keys), fc.constantFrom("exclusive" as const, "shared" as const)).map(
    ([via, key, mode]) =>
      new Command("accept a crowd", (world) => {
        const process = answering(world, via);
        if (process === undefined || world.ledger.all().length > 100) return undefined;
        const one = {
          key,
          mode,
          place: "back",
          held: false,
          delayMs: 0,
          deadlineMs: null,
          script: [],
          obedient: true,
          describes: false,
          quiet: true,
        } as const;
        const first = world.ledger.all().length;
        const crowd = Array.from({ length: 70 }, (_, index) => ({ ...one, name: `crowd ${first + index}` }));
        return {
          says: `accept 70 ${mode} operations without steps on ${key} at ${process}`,
          run: () => world.accept(process, crowd),
        };
      }),
  );
}

function finishing(): fc.Arbitrary<Command> {
  return fc.nat(9).map(
    (nth) =>
      new Command("finish a step", (world) => {
        const gate = pick(
          world.gates.filter(({ running }) => !running.process.wire.frozen),
          nth,
        );
        if (gate === undefined) return undefined;
        const { known, process } = gate.running;
        return { says: `step ${gate.step} of "${known.asked.name}" finishes on ${process}`, run: () => gate.finish() };
      }),
  );
}

function failing(): fc.Arbitrary<Command> {
  const how = fc.constantFrom("error" as const, "later" as const, "permanent" as const);
  return fc.tuple(fc.nat(9), how).map(
    ([nth, fails]) =>
      new Command("fail a step", (world) => {
        const gate = pick(
          world.gates.filter(({ running }) => !running.process.wire.frozen),
          nth,
        );
        if (gate === undefined) return undefined;
        const { known, process } = gate.running;
        const error = { error: "an error", later: "RetryLater", permanent: "Permanent" }[fails];
        return {
          says: `step ${gate.step} of "${known.asked.name}" throws ${error} on ${process}`,
          run: () => gate.fail(fails),
        };
      }),
  );
}

function waiting(): fc.Arbitrary<Command> {
  return fc
    .constantFrom(10, 1_000, 6_000, 11_000, 31_000, 61_000)
    .map((ms) => new Command("wait", (world) => ({ says: `${ms / 1_000} s pass`, run: () => world.advance(ms) })));
}

function cancelling(): fc.Arbitrary<Command> {
  return fc.tuple(slot(), fc.nat(9)).map(
    ([via, nth]) =>
      new Command("cancel", (world) => {
        const process = answering(world, via);
        const known = pick(accepted(world), nth);
        if (process === undefined || known === undefined) return undefined;
        return { says: `cancel "${known.asked.name}" at ${process}`, run: () => world.cancel(process, known) };
      }),
  );
}

/** As a delete does that is asked for while a create is under way. */
function replacing(): fc.Arbitrary<Command> {
  return fc.tuple(slot(), fc.nat(9)).map(
    ([via, nth]) =>
      new Command("replace", (world) => {
        const process = answering(world, via);
        const known = pick(accepted(world), nth);
        if (process === undefined || known === undefined) return undefined;
        const asked: Asked = {
          ...known.asked,
          name: world.ledger.nextName(),
          mode: "exclusive",
          place: "front",
          held: false,
          delayMs: 0,
          deadlineMs: null,
          script: ["step"],
        };
        return {
          says: `cancel "${known.asked.name}" and accept ${words(asked)} with one decision at ${process}`,
          run: () => world.accept(process, [asked], known),
        };
      }),
  );
}

function arranging(): fc.Arbitrary<Command> {
  const what = fc.constantFrom("hold" as const, "release" as const, "order" as const);
  return fc.tuple(slot(), fc.constantFrom(...keys), what, fc.nat(9), fc.nat(9)).map(
    ([via, key, how, nth, other]) =>
      new Command(how, (world) => {
        const process = answering(world, via);
        const open = accepted(world).filter(({ asked }) => asked.key === key);
        const known = pick(open, nth);
        if (process === undefined || known?.id === undefined) return undefined;
        const { id } = known;
        const { name } = known.asked;
        if (how === "hold")
          return { says: `hold "${name}" at ${process}`, run: () => world.arrange(process, key, { hold: [id] }) };
        if (how === "release")
          return { says: `release "${name}" at ${process}`, run: () => world.arrange(process, key, { release: [id] }) };
        const second = pick(open, other);
        const order = second?.id === undefined || second === known ? [id] : [id, second.id];
        const names = order.map((one) => `"${open.find((candidate) => candidate.id === one)?.asked.name}"`).join(", ");
        return {
          says: `order ${names} first on ${key} at ${process}`,
          run: () => world.arrange(process, key, { order }),
        };
      }),
  );
}

function crashing(): fc.Arbitrary<Command> {
  return fc.tuple(slot(), fc.boolean()).map(
    ([which, seen]) =>
      new Command("crash", (world) => {
        const process = world.process(which);
        if (process === undefined) return undefined;
        // A store with one owner frees what is left of the last one when it is opened.
        const noticed = seen || world.options.kind === "one process";
        return {
          says: `${process} is killed${noticed ? "" : ", unnoticed"}`,
          run: () => world.crash(process, noticed),
        };
      }),
  );
}

function starting(): fc.Arbitrary<Command> {
  return slot().map(
    (which) =>
      new Command("start", (world) => {
        if (!world.slots.includes(which) || world.process(which) !== undefined) return undefined;
        const name = which === 3 ? "the front desk opens" : `engine ${which} starts`;
        return { says: name, run: () => world.start(which) };
      }),
  );
}

function stopping(): fc.Arbitrary<Command> {
  return slot().map(
    (which) =>
      new Command("stop", (world) => {
        const process = answering(world, which);
        if (process === undefined) return undefined;
        return { says: `${process} is asked to stop`, run: () => world.stop(process) };
      }),
  );
}

function freezing(): fc.Arbitrary<Command> {
  return slot().map(
    (which) =>
      new Command("freeze", (world) => {
        const process = world.process(which);
        if (process === undefined || process.phase !== "up") return undefined;
        const { wire } = process;
        if (wire.frozen) return { says: `${process} goes on`, run: () => wire.thaw() };
        return { says: `${process} is frozen`, run: () => wire.freeze() };
      }),
  );
}

function losing(): fc.Arbitrary<Command> {
  const fault = fc.constantFrom("loses its answer" as const, "never arrives" as const);
  return fc.tuple(slot(), fc.constantFrom(...methods), fault).map(
    ([which, method, what]) =>
      new Command("lose", (world) => {
        const process = answering(world, which);
        if (process === undefined) return undefined;
        return { says: `the next ${method} of ${process} ${what}`, run: () => process.wire.next(method, what) };
      }),
  );
}

function slowing(): fc.Arbitrary<Command> {
  return slot().map(
    (which) =>
      new Command("slow", (world) => {
        const process = answering(world, which);
        if (process === undefined) return undefined;
        const { wire } = process;
        if (wire.slow) return { says: `the wire of ${process} is fast again`, run: () => wire.calmDown() };
        return {
          says: `the wire of ${process} becomes slow`,
          run: () => {
            wire.slow = true;
          },
        };
      }),
  );
}

function delivering(): fc.Arbitrary<Command> {
  const fates: readonly Fate[] = [
    "goes through",
    "goes through",
    "reaches the store",
    "loses its answer",
    "never arrives",
  ];
  return fc.tuple(slot(), fc.nat(5), fc.constantFrom(...fates)).map(
    ([which, nth, fate]) =>
      new Command("deliver", (world) => {
        const process = world.process(which);
        const call = process === undefined ? undefined : pick(process.wire.onItsWay, nth);
        if (process === undefined || call === undefined) return undefined;
        const back = call.direction === "back";
        const met = back ? (fate === "loses its answer" ? fate : "goes through") : fate;
        const says = back
          ? `the answer to the ${call.what} of ${process} ${met === "goes through" ? "arrives" : "is lost"}`
          : `the ${call.what} of ${process} ${met}`;
        return { says, run: () => call.meet(met) };
      }),
  );
}

function losingSight(): fc.Arbitrary<Command> {
  return slot().map(
    (which) =>
      new Command("lose sight", (world) => {
        const process = answering(world, which);
        if (process === undefined || process.slot === 3 || world.options.kind === "one process") return undefined;
        return {
          says: `the store loses sight of ${process}`,
          run: async () => {
            world.disturbed();
            for (const owner of process.owners) await world.store.leave(owner);
            process.lost();
          },
        };
      }),
  );
}

// --- what commands pick from ---

function slot(): fc.Arbitrary<Slot> {
  return fc.constantFrom(1 as const, 1 as const, 2 as const, 2 as const, 3 as const);
}

function asking(): fc.Arbitrary<Omit<Asked, "name">> {
  const script: fc.Arbitrary<Script> = fc.array(
    fc.constantFrom("step" as const, "step" as const, "sleep" as const, "poll" as const),
    {
      maxLength: 3,
    },
  );
  return fc.record({
    key: fc.constantFrom(...keys),
    mode: fc.constantFrom("exclusive" as const, "shared" as const),
    place: fc.constantFrom("back" as const, "back" as const, "front" as const),
    held: fc.constantFrom(false, false, false, true),
    delayMs: fc.constantFrom(0, 0, 0, 20_000),
    deadlineMs: fc.constantFrom(null, null, null, 45_000),
    script,
    obedient: fc.boolean(),
    describes: fc.constantFrom(false, false, true),
    drops: fc.constantFrom(false, false, false, false, true),
  });
}

function words({
  name,
  key,
  mode,
  place,
  held,
  delayMs,
  deadlineMs,
  script,
  obedient,
  describes,
  drops,
}: Asked): string {
  const besides = [
    script.length === 0 ? "no steps" : script.map((part, index) => `${part} s${index + 1}`).join(", "),
    ...(place === "front" ? ["at the front"] : []),
    ...(held ? ["held"] : []),
    ...(delayMs > 0 ? [`not before ${delayMs / 1_000} s from now`] : []),
    ...(deadlineMs !== null ? [`deadline ${deadlineMs / 1_000} s`] : []),
    ...(obedient ? [] : ["deaf to its signal"]),
    ...(describes ? ["describes itself"] : []),
    ...(drops ? ["drops all others when it succeeds"] : []),
  ];
  return `${mode} "${name}" on ${key} (${besides.join("; ")})`;
}

/** A process that takes requests. In a world of one process that is always the same one. */
function answering(world: World, which: Slot): Process | undefined {
  const process = world.process(world.options.kind === "one process" ? 1 : which);
  return process?.answers ? process : undefined;
}

/** Operations that someone knows the id of. */
function accepted(world: World): readonly Known[] {
  return world.ledger.all().filter(({ id, asked }) => id !== undefined && !asked.quiet);
}

function pick<T>(from: readonly T[], nth: number): T | undefined {
  return from.length === 0 ? undefined : from[nth % from.length];
}
