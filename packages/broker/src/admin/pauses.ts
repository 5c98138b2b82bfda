import type { Followed, Journal, Json } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { laneOf } from "../records/lane.js";
import { attributionOf, type OperatorAttribution, operatorEntry } from "./operator-attribution.js";

/** A service whose operations are accepted and wait, until an operator lets them go on. */
export interface Pause {
  readonly service: string;
  readonly reason: string;
  readonly by: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Not the key of any instance: those have a slash. */
export const pausedKey = "broker.paused";

/** A catalog has fewer services; what is kept stays small. */
const mostPaused = 1_000;

/**
 * The services that are paused: a followed value of the journal, so that they outlive every process, and no request has to look there.
 * Nothing of a paused service is begun: its lane is left alone, and what waits in it costs nothing.
 */
export class Pauses {
  readonly #followed: Followed<readonly Pause[]>;

  private constructor(followed: Followed<readonly Pause[]>) {
    this.#followed = followed;
  }

  /** Before anything runs: what was paused when the last process ended is paused still. */
  static async of(journal: Journal): Promise<Pauses> {
    const followed = await journal.followed(pausedKey, readPauses);
    const apply = (paused: readonly Pause[]) =>
      journal.pauseLanes(new Set(paused.map(({ service }) => laneOf(service))));
    followed.onChange(apply);
    apply(followed.value);
    return new Pauses(followed);
  }

  get all(): readonly Pause[] {
    return this.#followed.value;
  }

  of(service: string): Pause | undefined {
    return this.#followed.value.find((pause) => pause.service === service);
  }

  /** Answers the pause that is in force: one that was there before stays as it is, and nothing is written. */
  async pause(
    service: string,
    by: OperatorAttribution,
  ): Promise<{ readonly pause: Pause; readonly wasPaused: boolean }> {
    let wasPaused = false;
    let pause: Pause = { service, reason: by.reason, by: by.operator, at: 0 };
    await this.#change(by, "pause", service, (before, now) => {
      const earlier = before.find((paused) => paused.service === service);
      wasPaused = earlier !== undefined;
      pause = earlier ?? { ...pause, at: now };
      if (wasPaused) return undefined;
      if (before.length >= mostPaused)
        throw new BrokerError("unprocessable", `${mostPaused} services are paused; no more can be`);
      return [...before, pause];
    });
    return { pause, wasPaused };
  }

  async resume(service: string, by: OperatorAttribution): Promise<void> {
    await this.#change(by, "resume", service, (before) => {
      if (!before.some((pause) => pause.service === service))
        throw new BrokerError("conflict", "the service is not paused");
      return before.filter((pause) => pause.service !== service);
    });
  }

  async #change(
    by: OperatorAttribution,
    action: string,
    service: string,
    decide: (before: readonly Pause[], now: number) => readonly Pause[] | undefined,
  ): Promise<void> {
    await this.#followed.update(
      (before, now) => {
        const value = decide(before, now);
        return value && { value, entries: [operatorEntry(by, action, { service })] };
      },
      { by: attributionOf(by) },
    );
  }
}

/** Pauses as they are kept. What is none of them was written by another version, and is left out. */
function readPauses(data: Json): readonly Pause[] {
  return Array.isArray(data) ? data.filter(isPause) : [];
}

function isPause(value: unknown): value is Pause {
  const { service, reason, by, at } = (value ?? {}) as Partial<Record<keyof Pause, unknown>>;
  return [service, reason, by].every((text) => typeof text === "string") && typeof at === "number";
}
