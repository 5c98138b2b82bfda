import { type Clock, type Decide, type Journal, JournalError, type Json, type Resource } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { laneOf } from "../records/lane.js";

import { type Act, attributionOf, entryOf } from "./act.js";

/** A service whose operations are accepted and wait, until an operator lets them go on. */
export interface Pause {
  readonly service: string;
  readonly reason: string;
  readonly by: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface PausePorts {
  readonly journal: Journal;
  readonly clock: Clock;
  /** How often to look for what other processes have paused; `null`: there are none. */
  readonly pollMs: number | null;
}

/** Not the key of any instance: those have a slash. */
export const pausedKey = "broker.paused";

/** A catalog has fewer services; what is kept stays small. */
const mostPaused = 1_000;

/**
 * The services that are paused: one resource of the journal, so that they outlive every process, and a copy in each process, so that
 * no request has to look there. Other processes see a change when they next poll. Nothing of a paused service is begun: its lane is
 * left alone, and what waits in it costs nothing.
 */
export class Pauses {
  readonly #ports: PausePorts;
  #known: { readonly seq: number; readonly paused: readonly Pause[] } = { seq: 0, paused: [] };
  #callOff: () => void = () => undefined;
  #ended = false;

  constructor(ports: PausePorts) {
    this.#ports = ports;
  }

  /** Before anything runs: what was paused when the last process ended is paused still. */
  async begin(): Promise<void> {
    await this.#look();
    this.#lookLater();
  }

  end(): void {
    this.#ended = true;
    this.#callOff();
  }

  get all(): readonly Pause[] {
    return this.#known.paused;
  }

  of(service: string): Pause | undefined {
    return this.#known.paused.find((pause) => pause.service === service);
  }

  /** Answers the pause that is in force: one that was there before stays as it is, and nothing is written. */
  async pause(service: string, act: Act): Promise<{ readonly pause: Pause; readonly wasPaused: boolean }> {
    let wasPaused = false;
    const paused = await this.#change(act, "pause", service, (before, now) => {
      wasPaused = before.some((pause) => pause.service === service);
      if (wasPaused) return before;
      if (before.length >= mostPaused)
        throw new BrokerError("unprocessable", `${mostPaused} services are paused; no more can be`);
      return [...before, { service, reason: act.reason, by: act.operator, at: now }];
    });
    return { pause: paused.find((pause) => pause.service === service) as Pause, wasPaused };
  }

  async resume(service: string, act: Act): Promise<void> {
    await this.#change(act, "resume", service, (before) => {
      if (!before.some((pause) => pause.service === service))
        throw new BrokerError("conflict", "the service is not paused");
      return before.filter((pause) => pause.service !== service);
    });
  }

  async #change(
    act: Act,
    action: string,
    service: string,
    decide: (before: readonly Pause[], now: number) => readonly Pause[],
  ): Promise<readonly Pause[]> {
    const { journal } = this.#ports;
    const decision: Decide<readonly Pause[]> = (resource, now) => {
      const before = pausesOf(resource);
      const paused = decide(before, now);
      if (paused === before) return { result: paused };
      const change = { data: paused as unknown as Json, entries: [entryOf(act, action, { service })] };
      return { result: paused, change };
    };
    const { result } = await journal.transact(pausedKey, decision, { by: attributionOf(act) });
    // Read again, with its number: a poll that began before the change must not undo it here.
    await this.#look();
    return result;
  }

  async #look(): Promise<void> {
    const { journal } = this.#ports;
    let resource: Resource | undefined;
    try {
      resource = await journal.read(pausedKey);
    } catch (error) {
      // It alone is damaged, and listed among what was set aside. A broker that does not start would be worse.
      if (error instanceof JournalError && error.code === "unreadable") return;
      throw error;
    }
    const seq = resource?.seq ?? 0;
    if (seq <= this.#known.seq) return;
    this.#known = { seq, paused: pausesOf(resource) };
    journal.pauseLanes(new Set(this.#known.paused.map(({ service }) => laneOf(service))));
  }

  #lookLater(): void {
    const { pollMs, clock } = this.#ports;
    if (pollMs === null || this.#ended) return;
    this.#callOff = clock.after(pollMs, () => {
      // A store that does not answer says nothing of pauses: what is known stays.
      void this.#look()
        .catch(() => undefined)
        .then(() => this.#lookLater());
    });
  }
}

function pausesOf(resource: Resource | undefined): readonly Pause[] {
  return Array.isArray(resource?.data) ? (resource.data as unknown as readonly Pause[]) : [];
}
