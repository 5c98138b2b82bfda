/** Holds back changes of many instances at once: of a space, a broker, a plan, or of what is all of these. One that names none holds for all. */
export interface Freeze {
  readonly id: string;
  readonly space: string | null;
  readonly broker: string | null;
  /** The id of a plan. */
  readonly plan: string | null;
  readonly by: string;
  readonly at: number;
  readonly reason: string;
  /** `queue`: intents are taken and wait; `reject`: they are refused. What waits already, waits on with either. */
  readonly effect: "queue" | "reject";
  readonly deletesExempt: boolean;
  readonly until: number | null;
}

/** What a freeze is compared with. */
export interface Freezable {
  readonly space: string;
  readonly broker: string;
  /** Ids of the plan that it has, and of the one that it is to have. */
  readonly plans: readonly string[];
  readonly isDelete: boolean;
}

/** The first freeze that holds for it now. */
export function freezeOf(freezes: readonly Freeze[], what: Freezable, now: number): Freeze | undefined {
  return freezes.find(
    ({ space, broker, plan, deletesExempt, until }) =>
      (space === null || space === what.space) &&
      (broker === null || broker === what.broker) &&
      (plan === null || what.plans.includes(plan)) &&
      !(deletesExempt && what.isDelete) &&
      (until === null || now < until),
  );
}
