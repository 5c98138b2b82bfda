/** What a look ahead found. A pass is no promise: brokers have no mode in which they only check. */
export interface PreflightReport {
  readonly ok: boolean;
  readonly findings: readonly PreflightFinding[];
}

export interface PreflightFinding {
  readonly severity: "error" | "warning";
  readonly rule: PreflightRule;
  /** An RFC 6901 pointer below the intent's text, where there is one. */
  readonly path: string | null;
  readonly message: string;
}

/** Everything that is looked at before an intent is taken, and again before it is sent (E6). The list is closed. */
export const preflightRules = {
  name: "names are short, and can be typed",
  "broker-unknown": "the broker is registered",
  "broker-unreachable": "the broker answers",
  "offering-unknown": "the broker offers it",
  "offering-left": "it is still in the catalog",
  "plan-unknown": "the offering has the plan",
  "plan-left": "the plan is still in the catalog",
  "plan-not-visible": "the plan is offered in the space",
  quota: "the space has room for it",
  phase: "the instance is in a phase that allows it",
  unusable: "the broker has not said that the instance cannot be used",
  "plan-not-updateable": "the plan may be changed",
  "plan-not-bindable": "the plan can be bound",
  "bindings-need-plan": "an instance with bindings stays with plans that can be bound",
  "binding-not-rotatable": "the plan's bindings can be rotated",
  "binding-expired": "a binding that is to be rotated has not expired",
  "maintenance-unknown": "the plan's maintenance version is the one that is asked for",
  "maintenance-with-plan": "maintenance and plan are not changed at once",
  "parameters-too-large": "parameters are bounded",
  "parameters-not-object": "parameters are a JSON object",
  "parameters-schema": "parameters are as the plan's schema wants them",
  "schema-unusable": "the plan's schema can be read",
  frozen: "nobody has frozen it",
} as const;

export type PreflightRule = keyof typeof preflightRules;
