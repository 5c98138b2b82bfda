import { createHash } from "node:crypto";
import {
  type BundleSource,
  type BundleSpec,
  type Digest,
  defaultRules,
  knownRefs,
  type Observation,
  parserVersion,
  type RefSeen,
  type Source,
  specId,
} from "@osbert/bundles";

/**
 * A source of so many bundles without a registry behind it, so that what follows a reading can be measured alone. Bundle number 0 is at the
 * version that was set last.
 */
export interface SyntheticSource {
  readonly source: BundleSource;
  readonly setVersion: (version: number) => void;
}

export function syntheticSource(count: number, change: Partial<BundleSpec> = {}): SyntheticSource {
  let version = 0;
  // Of what does not change, once: a registry's answers are not made by the broker, either.
  const refs = Array.from({ length: count }, (_, index) => ({
    repository: `team/bundle-${String(index).padStart(5, "0")}`,
    channel: "",
    tag: "latest",
  }));
  // When they are first asked for: a broker that starts does not wait for them.
  let digests: readonly Digest[] | undefined;
  const seen = (index: number, known: readonly Digest[]): RefSeen => {
    const { repository } = refs[index] ?? { repository: "" };
    const own = index === 0 ? version : 0;
    digests ??= refs.map((each) => digestOf(`${each.repository} 0`));
    const digest = own === 0 ? (digests[index] ?? digestOf("")) : digestOf(`${repository} ${own}`);
    if (known.includes(digest)) return { kind: "same", digest };
    const artifact = { kind: "files", repository, digest } as const;
    return {
      kind: "read",
      revision: { digest, spec: { ...specOf(repository, own), ...change }, artifact, parserVersion },
    };
  };
  const observe = (stored: Parameters<BundleSource["observe"]>[0], id: string): Observation => {
    const known = knownRefs(stored, { parserVersion });
    const found = refs.map((ref, index) => {
      const spec = specId(ref);
      return [spec, { ref, seen: seen(index, known.get(spec)?.digests ?? []) }] as const;
    });
    return {
      ...{ id, generation: "g", completeness: "complete", refs: new Map(found) },
      ...{ error: null, retryAfterMs: null, parserVersion },
    };
  };
  return {
    source: {
      ...{ name: "hub", generation: "g", listing: true, rules: defaultRules, intervalMs: 86_400_000 },
      source: nothing,
      observe: async (stored, { id }) => observe(stored, id),
    },
    setVersion: (next) => {
      version = next;
    },
  };
}

/** Never asked: no bundle of it is run. */
const nothing: Source = {
  async *repositories() {},
  tags: async () => null,
  resolve: async () => null,
  read: async () => ({ kind: "not a bundle", why: "there is nothing" }),
  fetch: async () => undefined,
  probe: async () => undefined,
};

function digestOf(text: string): Digest {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** As large as those that people offer: two plans, one of them with a schema. */
export function specOf(repository: string, version: number): BundleSpec {
  const name = repository.replace("/", "-");
  const plan = (size: string): BundleSpec["plans"][number] => ({
    ...{ name: size, id: null, previousNames: [], description: `The ${size} one`, free: size === "small" },
    ...{ bindable: true, metadata: {}, updatesTo: [] },
    schemas: {
      provision: {
        type: "object",
        properties: {
          name: { type: "string", pattern: "^[a-z]{1,40}$" },
          size: { type: "integer", minimum: 1, maximum: 100 },
        },
        additionalProperties: false,
      },
      update: null,
      bind: null,
    },
  });
  return {
    ...{ format: "osbert", runtime: null, name, id: null, tags: ["sql", "managed"], bindable: true, metadata: {} },
    description: "A bundle like those that people offer, with a description of some length",
    ...{ bundleVersion: `1.${version}.0`, async: "optional", actions: ["provision", "deprovision", "bind", "unbind"] },
    ...{ plans: [plan("small"), plan("large")], command: ["./run"], network: false, timeoutMs: null },
  };
}
