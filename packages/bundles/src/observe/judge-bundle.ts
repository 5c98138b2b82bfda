import { noImageProblem, type ParsedBundle, runtime2Problem } from "../formats/bundle-spec.js";
import type { RefSeen } from "../reconcile/observation.js";
import type { Digest, ReadBundle } from "../sources/source.js";

/** Pure; whatever a bundle holds, it answers. */
export type ParseBundle = (read: ReadBundle & { readonly kind: "bundle" }) => ParsedBundle;

/** What a reading makes of bundles. */
export interface BundleJudge {
  readonly parse: ParseBundle;
  readonly parserVersion: number;
  /** What runs bundles has a cluster for classic bundles of runtime 2 to write their Secrets into. Default false. */
  readonly runsRuntime2?: boolean | undefined;
}

/** What a ref is found to be whose content was read. */
export function judgeBundle(read: ReadBundle, digest: Digest, judge: BundleJudge): RefSeen {
  const { parse, parserVersion, runsRuntime2 = false } = judge;
  if (read.kind === "not a bundle") return { kind: "not a bundle", digest, why: read.why };
  if (read.kind === "invalid") return { kind: "invalid", digest, problems: [problemOf(read.why)] };
  const parsed = parsedBy(parse, read);
  if (parsed.kind === "invalid") return { kind: "invalid", digest, problems: parsed.problems };
  // F5-36: offered, it would fail each time.
  if (parsed.spec.runtime === 2 && !runsRuntime2) return { kind: "unsupported", digest, why: runtime2Problem };
  if (parsed.spec.format === "apb" && read.artifact.kind === "files")
    return { kind: "invalid", digest, problems: [problemOf(noImageProblem)] };
  return { kind: "read", revision: { digest, spec: parsed.spec, artifact: read.artifact, parserVersion } };
}

function parsedBy(parse: ParseBundle, read: ReadBundle & { readonly kind: "bundle" }): ParsedBundle {
  try {
    return parse(read);
  } catch {
    // What it says may be the author's text, with whatever secret is in it.
    return { kind: "invalid", problems: [problemOf("it cannot be parsed")] };
  }
}

function problemOf(message: string) {
  return { path: "", message, line: null, advice: false };
}
