import fc from "fast-check";
import { expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
import type { Operation } from "../src/engine/operation-kind.js";
import { JournalError } from "../src/errors.js";
import type { Journal } from "../src/journal.js";
import { laneLedgerKey } from "../src/names.js";
import { openJournal } from "../src/open-journal.js";
import type { Change, CommitOutcome } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { type Interpose, interposedStore, manualClock } from "../src/testing/index.js";
import { accept, by, settle } from "./faults-fixture.js";

/** Also how long the shares stand that a process writes. */
const leaseMs = 30_000;
const passMs = 1_000;

type Trouble = "hangs" | "answer hangs" | "answer lost";

type Event =
  | { readonly kind: "accept"; readonly at: number; readonly lane: "lane" | "other" }
  | { readonly kind: "finish"; readonly which: number }
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "trouble"; readonly at: number; readonly trouble: Trouble }
  | { readonly kind: "heal"; readonly at: number }
  | { readonly kind: "pause"; readonly at: number; readonly isPaused: boolean }
  /** A process stops, and another one comes in its place. */
  | { readonly kind: "replace"; readonly at: number }
  /** The same, but it is killed. */
  | { readonly kind: "kill"; readonly at: number }
  /** The store takes a process for dead that lives; it may be told so only when all is well again. */
  | { readonly kind: "vanish"; readonly at: number; readonly isTold: boolean };

const at = fc.nat({ max: 2 });
const kind = <Kind extends Event["kind"]>(name: Kind) => fc.constant(name);
const lane = fc.constantFrom("lane" as const, "other" as const);
const trouble = fc.constantFrom<Trouble>("hangs", "answer hangs", "answer lost");
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind("accept"), at, lane }) },
  { weight: 6, arbitrary: fc.record({ kind: kind("finish"), which: fc.nat({ max: 9 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: kind("pass"), ms: fc.integer({ min: 1, max: 20_000 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: kind("trouble"), at, trouble }) },
  { weight: 3, arbitrary: fc.record({ kind: kind("heal"), at }) },
  { weight: 1, arbitrary: fc.record({ kind: kind("pause"), at, isPaused: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: kind("replace"), at }) },
  { weight: 2, arbitrary: fc.record({ kind: kind("kill"), at }) },
  { weight: 2, arbitrary: fc.record({ kind: kind("vanish"), at, isTold: fc.boolean() }) },
);

test("whatever happens to the ledger's calls and to processes, a limit is kept, and all that waits has its turn", async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 4 }),
    fc.array(event, { minLength: 20, maxLength: 60 }),
    async (limit, events) => {
      const chaos = await Chaos.begin(limit);
      try {
        for (const event of events) await chaos.meet(event);
        await chaos.end();
      } finally {
        await chaos.drop();
      }
    },
  );
  await fc.assert(property, { ...propertySeed(), numRuns: Number(process.env.OSBERT_LANES_RUNS ?? 40) });
}, 600_000);

interface Job {
  readonly of: Member;
  readonly lane: string;
  /** It began before the shares of its process lapsed, or while it was taken for dead: it goes on, and others may begin beside it. */
  isExcused: boolean;
  /** It was told to stop, because others may run it. */
  readonly signal: AbortSignal;
  readonly finish: () => void;
}

interface Member {
  trouble: Trouble | undefined;
  /** When it asked for the newest of its commits to the ledger that had an effect. */
  sharesSince: number;
  heal: () => void;
  journal: Journal;
  owner: string;
  isVanished: boolean;
  isDead: boolean;
  /** Tells it that the store does not vouch for it any more. */
  lose: () => void;
}

/** Three processes on one store, with a lane that has a limit. */
class Chaos {
  readonly #limit: number;
  readonly #clock = manualClock();
  readonly #store = memoryStore({ clock: this.#clock.wallMs });
  readonly #members: Member[] = [];
  readonly #running: Job[] = [];
  #accepted = 0;
  /** Keys of operations that may not have ended. */
  #open: string[] = [];
  /** Of the lane with the limit, at a time. */
  #most = 0;

  private constructor(limit: number) {
    this.#limit = limit;
  }

  static async begin(limit: number): Promise<Chaos> {
    const chaos = new Chaos(limit);
    for (let at = 0; at < 3; at++) await chaos.#join(at);
    // Something always waits.
    for (let index = 0; index < 40; index++) await chaos.meet({ kind: "accept", at: index % 3, lane: "lane" });
    return chaos;
  }

  async #join(at: number): Promise<void> {
    const member = { trouble: undefined, sharesSince: 0, heal: () => undefined } as unknown as Member;
    const run =
      (lane: string) =>
      ({ signal }: Operation) =>
        this.#begin(member, lane, signal);
    const store = interposedStore(
      this.#store,
      meets(member, () => this.#clock.monotonicMs()),
    );
    member.journal = await openJournal({
      store: { ...store, pace: { ...store.pace, reapMs: 1_000 } },
      clock: this.#clock,
      leaseMs,
      concurrency: 3,
      laneConcurrency: 3,
      kinds: { lane: { lane: "lane", run: run("lane") }, other: { lane: "other", run: run("other") } },
    });
    this.#members[at] = member;
    const lanes = await member.journal.lanes();
    if (at === 0) await lanes.set("lane", { limit: this.#limit }, { by });
    await member.journal.start();
    await settle();
  }

  #begin(of: Member, lane: string, signal: AbortSignal): Promise<null> {
    return new Promise((resolve) => {
      const job: Job = {
        of,
        lane,
        isExcused: false,
        signal,
        finish: () => {
          this.#running.splice(this.#running.indexOf(job), 1);
          resolve(null);
        },
      };
      this.#running.push(job);
      const counts = this.#running.filter((job) => job.lane === "lane" && !job.isExcused && !job.signal.aborted);
      this.#most = Math.max(this.#most, counts.length);
    });
  }

  async meet(event: Event): Promise<void> {
    const member = "at" in event ? (this.#members[event.at] as Member) : undefined;
    switch (event.kind) {
      case "accept":
        this.#open.push(`k${this.#accepted}`);
        await accept((member as Member).journal, `k${this.#accepted++}`, { kind: event.lane });
        break;
      case "finish":
        this.#running[event.which % Math.max(1, this.#running.length)]?.finish();
        break;
      case "pass":
        await this.#pass(event.ms);
        break;
      case "trouble":
        (member as Member).trouble ??= event.trouble;
        break;
      case "heal":
        heal(member as Member);
        break;
      case "replace":
        await this.#replace(event.at);
        break;
      case "kill":
        await this.#kill(event.at);
        break;
      case "vanish":
        (member as Member).isVanished = true;
        this.#excuseVanished();
        await this.#store.leave((member as Member).owner);
        if (event.isTold) (member as Member).lose();
        break;
      case "pause":
        (member as Member).journal.pauseLanes(new Set(event.isPaused ? ["lane"] : []));
        break;
    }
    await settle();
    expect(this.#most, "operations of the lane at a time").toBeLessThanOrEqual(this.#limit);
  }

  async #replace(at: number): Promise<void> {
    const member = this.#members[at] as Member;
    heal(member);
    // What it runs ends before it stops.
    let isStopped = false;
    void member.journal.stop().then(() => {
      isStopped = true;
    });
    for (let turns = 0; turns < 100 && !isStopped; turns++) {
      for (const job of this.#running.filter(({ of }) => of === member)) job.finish();
      await this.#pass(100);
    }
    expect(isStopped).toBe(true);
    await this.#join(at);
  }

  async #kill(at: number): Promise<void> {
    const member = this.#members[at] as Member;
    member.isDead = true;
    await member.journal.kill();
    await this.#store.leave(member.owner);
    for (const job of this.#running.filter(({ of }) => of === member)) job.finish();
    // What it had asked for reaches the store now.
    heal(member);
    await this.#join(at);
  }

  /** What it has begun by now it may run beside others, as with any lease. What it begins counts as it does. */
  #excuseVanished(): void {
    for (const job of this.#running) if (job.of.isVanished) job.isExcused = true;
  }

  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += passMs) {
      // Before the time passes in which its shares lapse: others take them at once.
      const lapsed = this.#clock.monotonicMs() + passMs - leaseMs;
      for (const job of this.#running) if (job.of.sharesSince <= lapsed) job.isExcused = true;
      this.#excuseVanished();
      await this.#clock.advance(Math.min(passMs, ms - passed));
    }
  }

  /** All is well again, and one member has room: everything gets its turn. */
  async end(): Promise<void> {
    for (const member of this.#members) heal(member);
    this.#members[2]?.journal.pauseLanes(new Set());
    for (let turns = 0; turns < 200 && this.#open.length > 0; turns++) {
      await this.#pass(1_000);
      expect(this.#most, "operations of the lane at a time").toBeLessThanOrEqual(this.#limit);
      for (const job of [...this.#running]) job.finish();
      await settle();
      const { journal } = this.#members[2] as Member;
      const read = await Promise.all(this.#open.map((key) => journal.read(key)));
      this.#open = this.#open.filter((_, index) => (read[index]?.open.length ?? 0) > 0);
    }
    expect(this.#open, "operations that have not ended").toEqual([]);
  }

  async drop(): Promise<void> {
    for (const member of this.#members) {
      heal(member);
      await member.journal.kill();
    }
  }
}

function heal(member: Member): void {
  member.trouble = undefined;
  member.heal();
  if (member.isVanished) member.lose();
}

function meets(member: Member, now: () => number): Interpose {
  let healed: Promise<void> | undefined;
  const untilHealed = () => {
    healed ??= new Promise((resolve) => {
      member.heal = () => {
        healed = undefined;
        resolve();
      };
    });
    return healed;
  };
  return async ({ method, args }, go) => {
    // What it had asked for before may still reach the store.
    if (member.isDead && method !== "close") return new Promise(() => undefined);
    if (method === "attend") {
      const [owner, lose] = args as [string, () => void];
      Object.assign(member, { owner, lose, isVanished: false });
    }
    const key = method === "commit" ? (args[0] as Change).key : args[0];
    if (key !== laneLedgerKey) return go();
    const askedAt = now();
    if (member.trouble === "hangs") await untilHealed();
    const trouble = member.trouble;
    const answer = await go();
    if (method === "commit" && (answer as CommitOutcome).kind !== "conflict")
      member.sharesSince = Math.max(member.sharesSince, askedAt);
    if (trouble === "answer hangs") await untilHealed();
    if (trouble === "answer lost") throw new JournalError("store-unavailable", "the answer got lost");
    return answer;
  };
}
