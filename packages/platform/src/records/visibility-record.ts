/** In which spaces an offering, or one of its plans, is offered. What no rule names is offered everywhere. */
export interface Visibility {
  readonly name: string;
  readonly broker: string;
  /** Ids. */
  readonly offering: string;
  /** `null`: all plans of the offering that have no rule of their own. */
  readonly plan: string | null;
  readonly spaces: readonly string[];
  readonly by: string;
  readonly at: number;
}

/** Whether a plan is offered in one of these spaces. Of several rules for the same, each adds its spaces. */
export function isVisible(
  rules: readonly Visibility[],
  what: { readonly broker: string; readonly offering: string; readonly plan: string },
  spaces: readonly string[] | "all",
): boolean {
  if (spaces === "all" || rules.length === 0) return true;
  const ofOffering = rules.filter(({ broker, offering }) => broker === what.broker && offering === what.offering);
  const ofPlan = ofOffering.filter(({ plan }) => plan === what.plan);
  const meant = ofPlan.length > 0 ? ofPlan : ofOffering.filter(({ plan }) => plan === null);
  return meant.length === 0 || meant.some((rule) => rule.spaces.some((space) => spaces.includes(space)));
}
