import { createHash } from "node:crypto";
import type { BundleSpec, PlanSpec } from "../src/formats/bundle-spec.js";
import { reconcile } from "../src/reconcile/next-state.js";
import {
  type ChannelRef,
  type Observation,
  type RefSeen,
  type Revision,
  specId,
} from "../src/reconcile/observation.js";
import type { EventCode, ReconcileEvent } from "../src/reconcile/reconcile-event.js";
import {
  newSource,
  type RevisionRecord,
  type ServiceRecord,
  type SourceData,
  type SpecRecord,
  type StoredSource,
  specState,
} from "../src/reconcile/records.js";
import { defaultRules, type Rules } from "../src/reconcile/rules.js";
import type { SourceChange } from "../src/reconcile/source-change.js";
import { useToAsk } from "../src/reconcile/use-to-ask.js";
import type { Digest } from "../src/sources/source.js";

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

export function digestOf(content: unknown): Digest {
  return `sha256:${createHash("sha256").update(JSON.stringify(content)).digest("hex")}`;
}

export function planSpec(name: string, more: Partial<PlanSpec> = {}): PlanSpec {
  return {
    name,
    id: null,
    previousNames: [],
    description: `plan ${name}`,
    free: true,
    bindable: true,
    metadata: {},
    updatesTo: [],
    schemas: { provision: null, update: null, bind: null },
    ...more,
  };
}

export interface BundleFacts {
  readonly name?: string;
  readonly version?: string | null;
  readonly plans?: readonly (string | PlanSpec)[];
  readonly id?: string | null;
  /** Tells contents apart that are alike in all else. */
  readonly build?: number;
  readonly parserVersion?: number;
}

/** What a reading finds where there is a bundle. */
export function bundle(facts: BundleFacts = {}): RefSeen & { readonly kind: "read" } {
  return { kind: "read", revision: revisionOf(facts) };
}

export function revisionOf({
  name = "database",
  version = "1.0.0",
  plans = ["small"],
  id = null,
  build = 0,
  parserVersion = 1,
}: BundleFacts): Revision {
  const spec: BundleSpec = {
    format: "osbert",
    runtime: null,
    name,
    id,
    description: `the ${name}`,
    tags: [],
    bindable: true,
    metadata: {},
    bundleVersion: version,
    async: "optional",
    actions: ["provision", "deprovision"],
    plans: plans.map((plan) => (typeof plan === "string" ? planSpec(plan) : plan)),
    command: ["./run"],
    network: false,
    timeoutMs: null,
  };
  const digest = digestOf([spec, build]);
  return { digest, spec, artifact: { kind: "files", repository: name, digest }, parserVersion };
}

/** Verdicts by `repository` or `repository:channel`; a tag of its own behind a `#`. */
export type Seen = Readonly<Record<string, RefSeen>>;

export function refOf(place: string): ChannelRef {
  const [id = "", tag] = place.split("#");
  const [repository = "", channel = ""] = id.split(":");
  return { repository, channel, tag: tag ?? (channel === "" ? "latest" : channel) };
}

export interface ReadingOptions {
  readonly completeness?: Observation["completeness"];
  readonly error?: string | null;
  /** Since the reading before. Default: ten minutes. */
  readonly afterMs?: number;
  readonly generation?: string;
  readonly parserVersion?: number;
  readonly servicesInUse?: readonly string[];
  readonly plansInUse?: readonly string[];
}

/** One source that is read again and again, kept as a store keeps it: as JSON. */
export class SourceLab {
  stored: StoredSource;
  readonly revisions = new Map<string, RevisionRecord>();
  readonly events: ReconcileEvent[] = [];
  rules: Rules;
  now = 1_000_000;
  #runs = 0;

  constructor(rules: Partial<Rules> = {}, data: SourceData = newSource("hub", "g1")) {
    this.rules = { ...defaultRules, ...rules };
    this.stored = { data, specs: new Map() };
  }

  observation(seen: Seen, options: ReadingOptions = {}): Observation {
    this.#runs += 1;
    const refs = Object.entries(seen).map(([place, verdict]) => {
      const ref = refOf(place);
      return [specId(ref), { ref, seen: verdict }] as const;
    });
    const unreadable = refs.some(([, { seen: verdict }]) => verdict.kind === "unreadable");
    return {
      id: `run-${this.#runs}`,
      generation: options.generation ?? this.stored.data.generation,
      completeness: options.completeness ?? (unreadable ? "partial" : "complete"),
      refs: new Map(refs),
      error: options.error ?? null,
      retryAfterMs: null,
      parserVersion: options.parserVersion ?? 1,
    };
  }

  /** What a reading would change. */
  decide(seen: Seen, options: ReadingOptions = {}): SourceChange {
    return this.decideOn(this.observation(seen, options), options);
  }

  decideOn(observation: Observation, options: ReadingOptions = {}): SourceChange {
    const asked = useToAsk(this.stored, observation, this.rules);
    const within = (used: readonly string[] = [], known: readonly string[]) =>
      new Set(used.filter((id) => known.includes(id)));
    return reconcile(this.stored, observation, {
      rules: this.rules,
      now: this.now,
      inUse: {
        services: within(options.servicesInUse, asked.services),
        plans: within(options.plansInUse, asked.plans),
      },
    });
  }

  /** A reading that is taken in. */
  read(seen: Seen, options: ReadingOptions = {}): SourceChange {
    this.now += options.afterMs ?? 10 * minuteMs;
    return this.commit(this.decide(seen, options));
  }

  fail(error = "connection refused", options: ReadingOptions = {}): SourceChange {
    return this.read({}, { completeness: "failed", error, ...options });
  }

  commit(change: SourceChange): SourceChange {
    const specs = new Map(this.stored.specs);
    for (const [id, record] of change.specs) {
      if (record === null) specs.delete(id);
      else specs.set(id, asKept(record));
    }
    for (const [part, record] of change.revisions) {
      if (record === null) this.revisions.delete(part);
      else this.revisions.set(part, asKept(record));
    }
    this.events.push(...change.events);
    this.stored = { data: asKept(change.data), specs };
    return change;
  }

  get data(): SourceData {
    return this.stored.data;
  }

  spec(id: string): SpecRecord | undefined {
    return this.stored.specs.get(id);
  }

  service(id: string): ServiceRecord {
    const record = this.spec(id);
    if (record?.kind !== "service") throw new Error(`${id} is ${record?.kind ?? "not known"}`);
    return record;
  }

  state(id: string): string {
    const record = this.spec(id);
    return record === undefined ? "unknown" : specState(record);
  }

  /** All states, by id. */
  get states(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.stored.specs.keys()].sort().map((id) => [id, this.state(id)]));
  }
}

export function codes(change: SourceChange): readonly EventCode[] {
  return change.events.map(({ code }) => code);
}

function asKept<Kept>(value: Kept): Kept {
  return JSON.parse(JSON.stringify(value)) as Kept;
}

/** Several bundles, each of its own name. */
export function bundles(count: number, from = 0): Seen {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => {
      const name = `b${String(index + from).padStart(2, "0")}`;
      return [name, bundle({ name })];
    }),
  );
}
