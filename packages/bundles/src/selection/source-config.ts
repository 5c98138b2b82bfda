import type { Rules } from "../reconcile/rules.js";
import type { SourceConnection } from "../sources/open-source.js";
import type { Selection } from "./selection.js";

/** A source as it is configured: checked, complete. */
export interface SourceConfig {
  /** Unique among sources; ids are made of it. */
  readonly name: string;
  /** Names that it had before: its bundles keep their ids (F5-24). The first one is the oldest. */
  readonly previousNames: readonly string[];
  /** `false`: nothing is read, and nothing goes (F5-28). */
  readonly enabled: boolean;
  readonly connection: SourceConnection;
  readonly selection: Selection;
  readonly intervalMs: number;
  /** Of two bundles with one id, that of the source with the higher number is offered (F5-58). */
  readonly priority: number;
  /** Whether it may take over a service of another source that has retired there (F5-59). */
  readonly failover: boolean;
  readonly onUnreachable: Rules["onUnreachable"];
  readonly deleteAfterFailures: Rules["deleteAfterFailures"];
  /** Whether a removal that the guard holds is believed when it was seen often enough (F5-17). */
  readonly autoConfirm: Rules["guard"]["autoConfirm"];
  readonly identity: Rules["identity"]["scheme"];
}

/** Something that a person must write differently, or should know. */
export interface SettingFault {
  /** `sources[1].allow[0]` */
  readonly path: string;
  /** What is wrong, and what to write. Never holds a secret. */
  readonly message: string;
}

/** Settings are taken as a whole, or not at all: with one fault in them, what ran before goes on. */
export type ParsedSources =
  | { readonly kind: "valid"; readonly sources: readonly SourceConfig[]; readonly advice: readonly SettingFault[] }
  | { readonly kind: "invalid"; readonly faults: readonly SettingFault[] };
