/** How a source is reconciled. An operator sets them per source; what is left out is `defaultRules`. */
export interface Rules {
  /** Readings in a row that lack a spec before it retires, and how long that has to take at least. */
  readonly missing: Grace;
  /** The same for what the configuration does not want any more; both may be 0 (F5-21). */
  readonly config: Grace;
  /** F5-17: a reading that takes away more than `least`, and more than this share, of the active specs, or all of them, is held. */
  readonly guard: {
    readonly least: number;
    readonly share: number;
    /** Whether so many complete readings over so long are believed without a person. */
    readonly autoConfirm: "never" | "unless all" | "always";
    readonly confirmRuns: number;
    readonly confirmMs: number;
    /** F5-19: of a service's plans that have instances, the share that a revision may lack. */
    readonly planShare: number;
  };
  /** F5-5: what becomes of the specs of a source that cannot be read. Never sooner than after `leastUnreachableMs`. */
  readonly onUnreachable:
    | { readonly kind: "keep" }
    | { readonly kind: "hide after"; readonly ms: number }
    | { readonly kind: "retire after"; readonly ms: number };
  /** Retires what has no instances after so many failures in a row. `null`: a failure removes nothing. */
  readonly deleteAfterFailures: number | null;
  readonly identity: {
    /** UUID that derived ids are made in. */
    readonly namespace: string;
    /** `legacy`: as the Ansible Service Broker made them of names, for a migration (F5-57). */
    readonly scheme: "place" | "legacy";
  };
}

export interface Grace {
  readonly runs: number;
  readonly ms: number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Shorter, and a reboot of a registry would be taken for its end. */
export const leastUnreachableMs = hourMs;

/** Readings that the failure ratio looks at. */
export const recentRuns = 20;

export const defaultRules: Rules = {
  missing: { runs: 3, ms: 15 * minuteMs },
  config: { runs: 3, ms: 15 * minuteMs },
  guard: { least: 3, share: 0.3, autoConfirm: "unless all", confirmRuns: 3, confirmMs: hourMs, planShare: 0.5 },
  onUnreachable: { kind: "keep" },
  deleteAfterFailures: null,
  identity: { namespace: "5ba8a6c4-6d0e-4a0b-9c3f-8f0d7c1f2e9a", scheme: "place" },
};
