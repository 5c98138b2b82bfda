import { randomUUID } from "node:crypto";
import type { Followed, Journal } from "@osbert/journal";
import { PlatformError } from "../errors.js";
import type { Asking, Freezes, WantedFreeze } from "../platform.js";
import type { Freeze } from "../records/freeze-record.js";
import { keys } from "../records/keys.js";

const mostFreezes = 500;
const longestReason = 1_000;

/** Freezes that hold in all processes: one followed value. */
export class FollowedFreezes implements Freezes {
  readonly #journal: () => Journal;
  #followed: Followed<readonly Freeze[]> | undefined;

  constructor(journal: () => Journal) {
    this.#journal = journal;
  }

  async open(): Promise<void> {
    this.#followed = await this.#journal().followed(keys.freezes, readFreezes);
  }

  close(): void {
    this.#followed?.close();
  }

  /** Those that are over hold nothing back, and go with the next change. */
  list(): readonly Freeze[] {
    const now = this.#journal().now();
    return this.#followed?.value.filter((freeze) => !isOver(freeze, now)) ?? [];
  }

  async freeze(wanted: WantedFreeze, { by }: Asking): Promise<Freeze> {
    const { space = null, broker = null, plan = null, reason, effect = "queue" } = wanted;
    const { deletesExempt = false, until = null } = wanted;
    for (const [what, text] of Object.entries({ space, broker, plan }))
      if (text !== null && (typeof text !== "string" || text === "" || text.length > longestReason))
        throw new PlatformError("invalid", `the ${what} of a freeze is a text`);
    if (typeof reason !== "string" || reason === "" || reason.length > longestReason)
      throw new PlatformError("invalid", `a freeze has a reason of at most ${longestReason} characters`);
    if (effect !== "queue" && effect !== "reject")
      throw new PlatformError("invalid", "the effect of a freeze is queue or reject");
    if (until !== null && !(Number.isSafeInteger(until) && until > this.#journal().now()))
      throw new PlatformError("invalid", "a freeze ends at a time that is still to come");
    const at = this.#journal().now();
    const id = randomUUID();
    const made: Freeze = { id, space, broker, plan, reason, effect, deletesExempt, until, by: by.actor.subject, at };
    await this.#change(by, (freezes) => {
      if (freezes.length >= mostFreezes)
        throw new PlatformError("too-many", `there are at most ${mostFreezes} freezes at a time`);
      return [...freezes, made];
    });
    return made;
  }

  async thaw(id: string, { by }: Asking): Promise<void> {
    await this.#change(by, (freezes) => {
      if (freezes.every((freeze) => freeze.id !== id)) throw new PlatformError("not-found", "there is no such freeze");
      return freezes.filter((freeze) => freeze.id !== id);
    });
  }

  async #change(by: Asking["by"], decide: (freezes: readonly Freeze[]) => readonly Freeze[]): Promise<void> {
    if (this.#followed === undefined) throw new PlatformError("unavailable", "the platform is not open");
    await this.#followed.update(
      (freezes, now) => ({ value: decide(freezes.filter((freeze) => !isOver(freeze, now))) }),
      { by },
    );
  }
}

function isOver({ until }: Freeze, now: number): boolean {
  return until !== null && until <= now;
}

function readFreezes(data: unknown): readonly Freeze[] {
  return Array.isArray(data) ? data : [];
}
