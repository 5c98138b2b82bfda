import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Attribution, Journal } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import type { NewPush, PushedView, PushPorts } from "../admin/pushes.js";
import { iso } from "../admin/views.js";
import { runtime2Problem, type SpecProblem } from "../formats/bundle-spec.js";
import { parseBundle } from "../formats/parse-bundle.js";
import { pushedSpecId } from "../observe/observe-pushed.js";
import { type AdminDecision, removePushed } from "../reconcile/admin-decisions.js";
import type { StoredSource } from "../reconcile/records.js";
import { isRepositoryName } from "../sources/names.js";
import { extractPushed, type PushedContent, readPushed } from "../sources/pushed-content.js";
import { SourceError } from "../sources/source-error.js";
import { defaultSourceLimits } from "../sources/source-limits.js";
import { hasInstances } from "./in-use.js";
import { type PushedRef, type PushedStore, PushRefused, pushLimits } from "./pushed-store.js";

/** The source of what is pushed, as this process is configured with it. */
export interface PushSource {
  readonly name: string;
  /** What runs bundles can run classic ones of runtime 2. */
  readonly runsRuntime2: boolean;
  /** As it is stored, at least as new as this call. */
  stored(): Promise<StoredSource | undefined>;
  decide(decision: (stored: StoredSource) => AdminDecision, by: Attribution): Promise<AdminDecision | undefined>;
  /** Has it read now, by whichever process follows it. */
  refresh(by: Attribution): Promise<void>;
}

export interface BundlePushesPorts {
  readonly journal: () => Journal;
  readonly pushed: PushedStore | undefined;
  /** `undefined`: none is configured. */
  readonly source: () => PushSource | undefined;
}

/** Bundles that are pushed to the broker itself (F5-64, 65): taken, listed, and taken back. */
export function bundlePushes(ports: BundlePushesPorts): PushPorts {
  return {
    async list() {
      const { source, pushed } = opened(ports);
      return (await pushed.list()).map((each) => viewOf(source.name, each));
    },
    /** First it is kept, then the source is read: killed in between, the next reading finds it. */
    async push(push, by) {
      const { source, pushed } = opened(ports);
      const repository = await checkPush(push, source);
      const ref = { repository, tag: push.tag };
      const kept = await pushed.add(push.content, ref, push.ttlMs, by).catch(refusal);
      await source.refresh(by);
      return viewOf(source.name, kept);
    },
    /**
     * First it is seen whether it may be, then the tags go, then the specs retire. Killed in between, the next reading lets those retire
     * whose tags are not there; the other way round it would bring them back.
     */
    async remove(specs, force, by) {
      const { source, pushed } = opened(ports);
      const stored = await source.stored();
      const kept = await pushed.list();
      const wanted = specs === "all" ? kept : kept.filter(({ ref }) => specs.includes(pushedSpecId(ref)));
      const known = (specs === "all" ? kept.map(({ ref }) => pushedSpecId(ref)) : specs).filter((spec) =>
        stored?.specs.has(spec),
      );
      if (specs !== "all" && wanted.length === 0 && known.length === 0)
        throw new BrokerError("not-found", `nothing of that name is pushed; \`osbert bundles pushed\` lists what is`);
      const servicesInUse = await inUse(ports.journal(), stored, known);
      const decide = (now: StoredSource) =>
        removePushed(
          now,
          known,
          { by: by.actor.subject, why: by.why, now: ports.journal().now() },
          { servicesInUse, force },
        );
      const first = stored && decide(stored);
      if (first?.kind === "refused") throw new BrokerError("conflict", first.why);
      await pushed.remove(
        wanted.map(({ ref }) => ref),
        by,
      );
      const decided = await source.decide(decide, by);
      if (decided?.kind === "refused") throw new BrokerError("conflict", decided.why);
      return wanted.length;
    },
  };
}

function opened({ source, pushed }: BundlePushesPorts): { readonly source: PushSource; readonly pushed: PushedStore } {
  const found = source();
  if (found === undefined || pushed === undefined)
    throw new BrokerError(
      "not-found",
      "nothing can be pushed: no source of type push is configured under bundles.sources",
    );
  return { source: found, pushed };
}

/** By the same rules as what comes from a registry: read, parsed and unpacked. Answers what it is called. */
async function checkPush(
  { repository, content }: NewPush,
  { runsRuntime2 }: Pick<PushSource, "runsRuntime2">,
): Promise<string> {
  const size = sizeOf(content);
  if (size > pushLimits.bytes)
    throw new BrokerError(
      "too-large",
      `the bundle has ${size} bytes, and at most ${pushLimits.bytes} can be pushed; use a registry`,
    );
  const place = repository ?? "the bundle";
  const refuse = (error: unknown) => {
    if (error instanceof SourceError) throw new BrokerError("bad-request", error.message, { cause: error });
    throw error;
  };
  const read = await readPushed(content, repository ?? "pushed", defaultSourceLimits, place).catch(refuse);
  if (read.kind !== "bundle") throw new BrokerError("bad-request", `${place} cannot be used: ${read.why}`);
  const parsed = parseBundle(read);
  if (parsed.kind === "invalid")
    throw new BrokerError("bad-request", `${place} cannot be used: ${sentenceOf(parsed.problems)}`);
  // F5-36: kept, it would be refused at each reading.
  if (parsed.spec.runtime === 2 && !runsRuntime2)
    throw new BrokerError("bad-request", `image.runtime must be 1: ${runtime2Problem}`);
  if (content.kind === "artifact") await tryExtract(content, place).catch(refuse);
  const name = repository ?? parsed.spec.name;
  if (!isRepositoryName(name))
    throw new BrokerError("bad-request", "its name cannot be that of a repository; give one, such as team/postgres");
  return name;
}

function sizeOf(content: PushedContent): number {
  if (content.kind === "image") return Buffer.byteLength(content.text);
  return [content.manifest, ...content.blobs].reduce((sum, { length }) => sum + length, 0);
}

async function tryExtract(content: PushedContent, place: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-push-"));
  try {
    await extractPushed(content, folder, defaultSourceLimits, place);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const mostProblems = 20;

function sentenceOf(problems: readonly SpecProblem[]): string {
  return problems
    .filter(({ advice }) => !advice)
    .slice(0, mostProblems)
    .map(({ path, line, message }) =>
      [line === null ? "" : `line ${line}:`, path, message].filter((word) => word !== "").join(" "),
    )
    .join("; ");
}

function refusal(error: unknown): never {
  throw error instanceof PushRefused ? new BrokerError("conflict", error.message, { cause: error }) : error;
}

async function inUse(
  journal: Journal,
  stored: StoredSource | undefined,
  specs: readonly string[],
): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  for (const spec of specs) {
    const record = stored?.specs.get(spec);
    if (record?.kind === "service" && (await hasInstances(journal, "service", record.serviceId)))
      used.add(record.serviceId);
  }
  return used;
}

function viewOf(source: string, { ref, digest, pushedAt, by, until }: PushedRef): PushedView {
  return {
    ...{ source, spec: pushedSpecId(ref), repository: ref.repository, tag: ref.tag, digest },
    ...{ pushed_at: iso(pushedAt), by, expires_at: until === null ? null : iso(until) },
  };
}
