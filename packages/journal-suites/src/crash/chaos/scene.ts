import { setTimeout as sleep } from "node:timers/promises";
import { crashPoints } from "@osbert/journal";
import { type Chance, chanceOf } from "../chance.js";
import type { Fleet, Life } from "../fleet.js";
import type { TemporaryStore } from "../store-addresses.js";
import { Wire } from "./wire.js";

/** Where one process runs, and after it the next one. */
export interface Place {
  life: Life;
  /** Its way to the server. A file has none. */
  readonly wire: Wire | null;
  /** Something is being done to it that must not be mixed with something else. */
  busy: boolean;
}

const startsWithinMs = 60_000;

/** What disturbances are done to: processes on one store, each with its wire, and what is behind the wires. */
export class Scene {
  readonly fleet: Fleet;
  readonly store: Omit<TemporaryStore, "remove">;
  readonly leaseMs: number;
  readonly places: readonly Place[];
  /** The rate of the slowest clock. */
  readonly slowestClock: number;
  refusesEntries = false;
  readonly #chance: Chance;
  readonly #keeping: Promise<void>[] = [];
  #serverIsFree: Promise<void> = Promise.resolve();
  #phase: "storm" | "calm" | "over" = "storm";

  private constructor(
    fleet: Fleet,
    store: Omit<TemporaryStore, "remove">,
    wires: readonly (Wire | null)[],
    options: SceneOptions,
  ) {
    this.fleet = fleet;
    this.store = store;
    this.leaseMs = options.leaseMs;
    this.slowestClock = store.server === undefined ? 1 : slowestClock(options.leaseMs);
    this.#chance = chanceOf(options.seed + 2);
    this.places = wires.map((wire) => ({ life: this.#spawn(wire), wire, busy: false }));
    for (const place of this.places) this.#keeping.push(this.#keep(place));
  }

  static async of(fleet: Fleet, store: Omit<TemporaryStore, "remove">, options: SceneOptions): Promise<Scene> {
    const { server } = store;
    const wires = server && (await Promise.all(Array.from({ length: options.processes }, () => Wire.to(server))));
    const scene = new Scene(fleet, store, wires ?? [null], options);
    if (await scene.#allRun()) return scene;
    await scene.close();
    const why = fleet.witnessed.findLast(({ kind }) => kind === "not opened" || kind === "ended by itself");
    throw new Error(`the store could not be opened: ${JSON.stringify(why)}`);
  }

  /** Does something to a place, unless something is being done to it already. */
  async alone(place: Place | undefined, work: (place: Place) => Promise<void>): Promise<void> {
    if (place === undefined || place.busy) return;
    place.busy = true;
    try {
      await work(place);
    } finally {
      place.busy = false;
    }
  }

  /** What is done to the server is done one after the other. It may fail: the server may be away. */
  async serverAlone(work: () => Promise<void>): Promise<void> {
    this.#serverIsFree = this.#serverIsFree.then(work).catch(() => undefined);
    await this.#serverIsFree;
  }

  /** No more disturbances: those who are about to die at a crash point give way to others who are not. */
  calmDown(): void {
    this.#phase = "calm";
    for (const { life, wire } of this.places) {
      wire?.loseAnswer(null);
      if (life.dieAt !== null) this.fleet.kill(life);
    }
    this.fleet.noteCalm();
  }

  /** Lets all that is open come to its end. */
  async finish(withinMs: number): Promise<void> {
    // A successor may be on its way.
    await this.#allRun();
    this.#phase = "over";
    await Promise.all(this.places.map(({ life }) => this.fleet.finish(life, withinMs)));
    await Promise.all(this.#keeping);
  }

  async close(): Promise<void> {
    this.#phase = "over";
    await Promise.all(this.places.map(async ({ wire }) => wire?.close()));
  }

  /** Waits until there is an engine in every place; false if that takes too long. One may die while it starts, and be followed. */
  async #allRun(): Promise<boolean> {
    const giveUpAt = performance.now() + startsWithinMs;
    while (!this.places.every(({ life }) => life.state === "running" && !life.doomed)) {
      if (performance.now() > giveUpAt) return false;
      await sleep(20);
    }
    return true;
  }

  /** However a process ends, another one follows. */
  async #keep(place: Place): Promise<void> {
    for (;;) {
      await place.life.ended;
      if (this.#phase === "over") return;
      place.life = this.#spawn(place.wire);
    }
  }

  #spawn(wire: Wire | null): Life {
    const chance = this.#chance;
    const dies = chance.happens(0.25);
    const dieAt = { point: chance.pick(crashPoints), nth: chance.between(1, 6) };
    const store = wire === null ? this.store.address : this.store.server?.at(wire.port);
    return this.fleet.spawn(dies && this.#phase === "storm" ? dieAt : null, {
      clockRate: chance.pick([1, 1, this.slowestClock, 1 / slowestClock(this.leaseMs)]),
      ...(store !== undefined && { store }),
    });
  }
}

export interface SceneOptions {
  readonly processes: number;
  readonly leaseMs: number;
  readonly seed: number;
}

/**
 * Clocks of machines differ by less than a thousandth. These differ by as much as the engine can bear: an effect begins only if a
 * fifth of the lease is left, or a second, and of that a slow clock leaves two fifths. Where the store has no clock but that of its
 * process, none is slow: a process after it, with another clock, would be ahead of what was written, and waits would be over early.
 */
function slowestClock(leaseMs: number): number {
  const margin = Math.min(1_000, leaseMs / 5);
  return (leaseMs - margin) / (leaseMs - 0.4 * margin);
}
