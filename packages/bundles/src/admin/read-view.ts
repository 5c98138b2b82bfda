import type { BundleSpec, ParsedBundle, SpecProblem } from "../formats/bundle-spec.js";
import type { Digest, ReadBundle, Ref } from "../sources/source.js";

/** What a tag of a repository was found to be, when somebody asked. Nothing of it is kept. */
export interface ReadView {
  readonly source: string;
  readonly repository: string;
  readonly tag: string;
  /** `unreadable` says nothing of what is there. */
  readonly found: "bundle" | "invalid" | "not a bundle" | "absent" | "unreadable";
  /** For a person, where it is no bundle that can be used. */
  readonly why: string | null;
  readonly digest: string | null;
  readonly format: string | null;
  /** `files` or `image`. */
  readonly runs: string | null;
  readonly name: string | null;
  readonly version: string | null;
  readonly description: string | null;
  readonly bindable: boolean | null;
  readonly actions: readonly string[];
  readonly plans: readonly Pick<BundleSpec["plans"][number], "name" | "description" | "free" | "bindable">[];
  /** Faults, and advice, with their places. */
  readonly problems: readonly SpecProblem[];
}

/** How a look at a tag went. */
export type Looked =
  | { readonly kind: "read"; readonly digest: Digest; readonly bundle: ReadBundle }
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly why: string };

export function readView(
  source: string,
  { repository, tag }: Ref,
  looked: Looked,
  parse: (read: ReadBundle & { readonly kind: "bundle" }) => ParsedBundle,
): ReadView {
  const nothing: ReadView = {
    ...{ source, repository, tag, found: "absent", why: null, digest: null, format: null, runs: null, name: null },
    ...{ version: null, description: null, bindable: null, actions: [], plans: [], problems: [] },
  };
  if (looked.kind === "absent") return { ...nothing, why: "the source says that there is no such tag" };
  if (looked.kind === "unreadable") return { ...nothing, found: "unreadable", why: looked.why };
  const { digest, bundle } = looked;
  if (bundle.kind !== "bundle") return { ...nothing, found: bundle.kind, why: bundle.why, digest };
  const read = { ...nothing, digest, format: bundle.format, runs: bundle.artifact.kind };
  const parsed = parse(bundle);
  if (parsed.kind === "invalid") return { ...read, found: "invalid", why: "it has faults", problems: parsed.problems };
  const { name, bundleVersion, description, bindable, actions, plans } = parsed.spec;
  return {
    ...read,
    ...{ found: "bundle", name, version: bundleVersion, description, bindable, actions, problems: parsed.advice },
    plans: plans.map((plan) => ({
      ...{ name: plan.name, description: plan.description, free: plan.free, bindable: plan.bindable },
    })),
  };
}
