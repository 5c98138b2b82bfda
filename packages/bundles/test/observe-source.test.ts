import { describe, expect, test } from "vitest";
import type { ParsedBundle } from "../src/formats/bundle-spec.js";
import { type ObserveLimits, observeSource } from "../src/observe/observe-source.js";
import { knownRefs } from "../src/reconcile/known-digests.js";
import type { CompiledSelection } from "../src/selection/compile-selection.js";
import type { Digest, ReadBundle, Ref, Source } from "../src/sources/source.js";
import { SourceError, type SourceFailure } from "../src/sources/source-error.js";
import { digestOf, revisionOf, SourceLab } from "./source-lab.js";

/** A registry in memory: repositories with tags, each with a text; and what goes wrong with it. */
class Registry implements Source {
  readonly repos: Record<string, Record<string, string>>;
  pages: (string[] | Error)[] | null = null;
  /** By repository: what asking for its digest, its tags or its content throws. */
  readonly faults = new Map<string, Error | "hangs">();
  readonly readFaults = new Map<string, Error>();
  probeFault: Error | null = null;
  readonly calls: string[] = [];
  running = 0;
  mostRunning = 0;

  constructor(repos: Record<string, Record<string, string>>) {
    this.repos = repos;
  }

  async *repositories() {
    for (const page of this.pages ?? [Object.keys(this.repos)]) {
      if (page instanceof Error) throw page;
      yield page;
    }
  }

  async tags(repository: string) {
    this.calls.push(`tags ${repository}`);
    await this.#answers(repository);
    return Object.keys(this.repos[repository] ?? {});
  }

  async resolve({ repository, tag }: Ref): Promise<Digest | null> {
    this.calls.push(`resolve ${repository}:${tag}`);
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    await this.#answers(repository).finally(() => {
      this.running -= 1;
    });
    const text = this.repos[repository]?.[tag];
    return text === undefined ? null : digestOf(text);
  }

  async read(repository: string, digest: Digest): Promise<ReadBundle> {
    this.calls.push(`read ${repository}`);
    const fault = this.readFaults.get(repository);
    if (fault !== undefined) throw fault;
    const text = Object.values(this.repos[repository] ?? {}).find((each) => digestOf(each) === digest) ?? "";
    if (text === "no bundle") return { kind: "not a bundle", why: "no label" };
    const artifact = { kind: "files", repository, digest } as const;
    return { kind: "bundle", format: "osbert", text, runtime: null, artifact };
  }

  async fetch() {}

  async probe() {
    this.calls.push("probe");
    if (this.probeFault !== null) throw this.probeFault;
  }

  async #answers(repository: string) {
    await new Promise((resolve) => setImmediate(resolve));
    const fault = this.faults.get(repository);
    if (fault === "hangs") await new Promise(() => undefined);
    if (fault instanceof Error) {
      if (fault instanceof SourceError && fault.failure === "rate limited") this.faults.delete(repository);
      throw fault;
    }
  }
}

/** The text is the bundle's version; "bad" is invalid. */
function parse({ text }: { text: string }): ParsedBundle {
  if (text === "throws") throw new Error("password=hunter2");
  if (text === "bad")
    return { kind: "invalid", problems: [{ path: "name", message: "is missing", line: 1, advice: false }] };
  return { kind: "valid", spec: revisionOf({ version: text }).spec, advice: [] };
}

const latest: CompiledSelection = {
  refusal: () => null,
  channels: () => [{ kind: "tag", channel: "", tag: "latest" }],
};

const fault = (failure: SourceFailure, retryAfterMs?: number) =>
  new SourceError(failure, "registry.test", null, retryAfterMs === undefined ? {} : { retryAfterMs });

/** An observation is taken in once: each has an id of its own. */
let runs = 0;

function look(registry: Source, lab = new SourceLab(), selection = latest, limits: Partial<ObserveLimits> = {}) {
  return observeSource({
    id: `run ${++runs}`,
    generation: lab.data.generation,
    source: registry,
    selection,
    known: knownRefs(lab.stored, { parserVersion: 1 }),
    parse,
    parserVersion: 1,
    limits,
    signal: new AbortController().signal,
  });
}

/** Reads and takes it in. */
async function take(registry: Source, lab: SourceLab, selection = latest) {
  const observation = await look(registry, lab, selection);
  lab.now += 600_000;
  lab.commit(lab.decideOn(observation));
  return observation;
}

const kinds = ({ refs }: Awaited<ReturnType<typeof look>>) =>
  Object.fromEntries([...refs].map(([spec, { seen }]) => [spec, seen.kind]));

describe("reading a source", () => {
  test("F3: every bundle is read once; after that, only its digest is asked for", async () => {
    const registry = new Registry({ a: { latest: "1.0.0" }, b: { latest: "bad" }, c: { latest: "no bundle" } });
    const lab = new SourceLab();
    expect(kinds(await take(registry, lab))).toEqual({ a: "read", b: "invalid", c: "not a bundle" });
    registry.calls.length = 0;
    const again = await take(registry, lab);
    expect(kinds(again)).toEqual({ a: "same", b: "same", c: "same" });
    expect(again.completeness).toBe("complete");
    expect(registry.calls).toEqual(["resolve a:latest", "resolve b:latest", "resolve c:latest"]);
    expect(lab.states).toEqual({ a: "active", b: "rejected", c: "rejected" });
  });

  test("no more repositories are looked at side by side than is set", async () => {
    const names = Array.from({ length: 50 }, (_, index) => `r${index}`);
    const registry = new Registry(Object.fromEntries(names.map((name) => [name, { latest: "1.0.0" }])));
    const { refs } = await look(registry, new SourceLab(), latest, { concurrency: 4 });
    expect(refs.size).toBe(50);
    expect(registry.mostRunning).toBe(4);
  });

  test("F1, F5-7, F5-8: what cannot be read makes the reading partial, and says why", async () => {
    const registry = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" }, c: { latest: "1.0.0" } });
    registry.faults.set("a", fault("server error"));
    registry.readFaults.set("b", fault("digest mismatch"));
    const observation = await look(registry);
    expect(kinds(observation)).toEqual({ a: "unreadable", b: "unreadable", c: "read" });
    expect(observation.completeness).toBe("partial");
    expect(observation.error).toMatch(/registry\.test: the source answered with an error of its own/);
  });

  test("F1, F5-11, F5-12: a list that breaks is failed, and what was listed until then is read", async () => {
    for (const failure of ["timeout", "foreign host", "endless pages"] as const) {
      const registry = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" } });
      registry.pages = [["a"], fault(failure)];
      const observation = await look(registry);
      expect(observation.completeness).toBe("failed");
      expect(kinds(observation)).toEqual({ a: "read" });
    }
  });

  test("a list that has no end is failed at a bound", async () => {
    const registry = new Registry({});
    registry.repositories = async function* () {
      for (let page = 0; ; page++) yield Array.from({ length: 100 }, (_, index) => `r${page}-${index}`);
    };
    const observation = await look(
      registry,
      new SourceLab(),
      { ...latest, channels: () => [] },
      { repositories: 1_000 },
    );
    expect(observation).toMatchObject({ completeness: "failed", error: expect.stringContaining("more than 1000") });
  });

  test("F5-14: a repository without its tag is absent, and a new one without it is nothing", async () => {
    const registry = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" }, c: {} });
    const lab = new SourceLab();
    await take(registry, lab);
    registry.repos.a = {};
    const observation = await take(registry, lab);
    expect(kinds(observation)).toEqual({ a: "absent", b: "same", c: "absent" });
    expect(observation.completeness).toBe("complete");
    expect(lab.states).toEqual({ a: "missing", b: "active" });
  });

  test("F5-15: a list that is refused is failed", async () => {
    const registry = new Registry({});
    registry.pages = [fault("unauthorized")];
    expect((await look(registry)).completeness).toBe("failed");
  });

  test("F5-15: what is refused or not found is absent only if the source answers and shows something else", async () => {
    const cases: readonly [SourceFailure | "null", string[], Error | null, string][] = [
      ["forbidden", ["a"], null, "absent"],
      ["unauthorized", ["a"], null, "absent"],
      ["not found", ["a"], null, "absent"],
      ["null", ["a"], null, "absent"],
      ["forbidden", ["a"], fault("unreachable"), "unreadable"],
      ["null", ["a"], fault("unauthorized"), "unreadable"],
      ["forbidden", ["a", "b"], null, "unreadable"],
      ["null", ["a", "b"], null, "unreadable"],
    ];
    for (const [failure, hit, probeFault, verdict] of cases) {
      const registry = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" } });
      const lab = new SourceLab();
      await take(registry, lab);
      registry.probeFault = probeFault;
      for (const name of hit) {
        if (failure === "null") registry.repos[name] = {};
        else registry.faults.set(name, fault(failure));
      }
      expect([failure, hit, kinds(await look(registry, lab)).a]).toEqual([failure, hit, verdict]);
    }
  });

  test("F5-15: of a source with one bundle, that it is not there has to do; that it is refused does not", async () => {
    const gone = new Registry({ a: { latest: "1.0.0" } });
    const lab = new SourceLab();
    await take(gone, lab);
    gone.repos.a = {};
    expect(kinds(await look(gone, lab))).toEqual({ a: "absent" });
    gone.faults.set("a", fault("forbidden"));
    expect(kinds(await look(gone, lab))).toEqual({ a: "unreadable" });
  });

  test("F5-16: a source without a catalog is failed with what to do, and never empty", async () => {
    const registry = new Registry({});
    registry.pages = [fault("no catalog")];
    expect(await look(registry)).toMatchObject({ completeness: "failed", error: expect.stringContaining("name them") });
  });

  test("F5-21, F5-68: what is known and not wanted any more is filtered, listed or not; what is not known is left alone", async () => {
    const registry = new Registry({
      a: { latest: "1.0.0", v1: "0.9.0" },
      b: { latest: "1.0.0" },
      c: { latest: "1.0.0" },
    });
    const lab = new SourceLab();
    const tagged: CompiledSelection = {
      refusal: (name) => (name === "c" ? "denied by ^c$" : null),
      channels: () => [
        { kind: "tag", channel: "", tag: "latest" },
        { kind: "tag", channel: "v1", tag: "v1" },
      ],
    };
    await take(registry, lab, tagged);
    expect(lab.states).toEqual({ a: "active", "a:v1": "active", b: "active" });
    registry.pages = [["a", "c"]];
    const narrowed: CompiledSelection = { ...latest, refusal: (name) => (name === "b" ? "denied by ^b$" : null) };
    expect(kinds(await look(registry, lab, narrowed))).toEqual({
      a: "same",
      "a:v1": "filtered",
      b: "filtered",
      c: "read",
    });
  });

  test("F5-69: of a range, the tag that is picked is read, and the tags are asked for once", async () => {
    const registry = new Registry({ a: { "1.0.0": "1.0.0", "1.1.0": "1.1.0" } });
    const lab = new SourceLab();
    const pick = (tags: readonly string[]) => [...tags].sort().at(-1) ?? null;
    const ranges: CompiledSelection = {
      refusal: () => null,
      channels: () => [
        { kind: "range", channel: "^1", pick },
        { kind: "range", channel: "*", pick },
      ],
    };
    await take(registry, lab, ranges);
    expect(lab.service("a:^1")).toMatchObject({ ref: { tag: "1.1.0" }, current: { version: "1.1.0" } });
    expect(registry.calls.filter((call) => call === "tags a")).toHaveLength(1);
    (registry.repos.a ?? {})["1.2.0"] = "1.2.0";
    await take(registry, lab, ranges);
    expect(lab.service("a:^1")).toMatchObject({ ref: { tag: "1.2.0" }, current: { version: "1.2.0" } });
  });

  test("a source that asks to come again soon is waited for; one that asks for long is left alone, and told so", async () => {
    const soon = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" } });
    soon.faults.set("a", fault("rate limited", 1));
    expect(kinds(await look(soon))).toEqual({ a: "read", b: "read" });
    const late = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" }, c: { latest: "1.0.0" } });
    late.faults.set("a", fault("rate limited", 3_600_000));
    const observation = await look(late, new SourceLab(), latest, { concurrency: 1 });
    expect(observation).toMatchObject({ completeness: "partial", retryAfterMs: 3_600_000 });
    expect(kinds(observation)).toEqual({ a: "unreadable", b: "unreadable", c: "unreadable" });
    expect(late.calls).toEqual(["resolve a:latest"]);
  });

  test("one ref that hangs is unreadable, and holds up nobody; a source that hangs is over at its deadline", async () => {
    const registry = new Registry({ a: { latest: "1.0.0" }, b: { latest: "1.0.0" } });
    registry.faults.set("a", "hangs");
    expect(kinds(await look(registry, new SourceLab(), latest, { refMs: 20 }))).toEqual({ a: "unreadable", b: "read" });
    registry.faults.set("b", "hangs");
    const all = await look(registry, new SourceLab(), latest, { sourceMs: 20 });
    expect(kinds(all)).toEqual({ a: "unreadable", b: "unreadable" });
    const endless = new Registry({});
    endless.repositories = async function* () {
      await new Promise(() => undefined);
    };
    expect(await look(endless, new SourceLab(), latest, { sourceMs: 20 })).toMatchObject({ completeness: "failed" });
  });

  test("how many refs are known is counted once, however many are denied", async () => {
    const registry = new Registry(Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, {}])));
    let counted = 0;
    const known = {
      get: () => undefined,
      get size() {
        counted += 1;
        return 0;
      },
      *[Symbol.iterator]() {},
    };
    const asked = { id: "run", generation: "g1", source: registry, selection: latest, known, parse, parserVersion: 1 };
    const { refs } = await observeSource({ ...asked, signal: new AbortController().signal });
    expect([...refs.values()].map(({ seen }) => seen.kind)).toEqual(Array(4).fill("absent"));
    expect(counted).toBeLessThanOrEqual(1);
  });

  test("a reading that nobody wants any more rejects, and is no observation", async () => {
    const registry = new Registry({ a: { latest: "1.0.0" } });
    registry.faults.set("a", "hangs");
    const controller = new AbortController();
    const lab = new SourceLab();
    const asked = {
      id: "run",
      generation: "g1",
      source: registry,
      selection: latest,
      known: knownRefs(lab.stored, { parserVersion: 1 }),
    };
    const observing = observeSource({ ...asked, parse, parserVersion: 1, signal: controller.signal });
    controller.abort(new Error("stopped"));
    await expect(observing).rejects.toThrow("stopped");
  });

  test("what a reading holds in memory is bounded; the next goes on where it ended", async () => {
    const names = Array.from({ length: 10 }, (_, index) => `r${index}`);
    const registry = new Registry(Object.fromEntries(names.map((name) => [name, { latest: "1.0.0" }])));
    const lab = new SourceLab();
    const first = await look(registry, lab, latest, { readLength: 20, concurrency: 1 });
    expect(first.completeness).toBe("partial");
    lab.commit(lab.decideOn(first));
    const read = lab.data.counts.active;
    expect(read).toBeGreaterThan(0);
    expect(read).toBeLessThan(10);
    lab.commit(lab.decideOn(await look(registry, lab, latest, { readLength: 20, concurrency: 1 })));
    expect(lab.data.counts.active).toBeGreaterThan(read);
  });

  test("a parser that throws makes the bundle invalid, and what it says stays inside", async () => {
    const observation = await look(new Registry({ a: { latest: "throws" } }));
    expect(kinds(observation)).toEqual({ a: "invalid" });
    expect(JSON.stringify([...observation.refs])).not.toContain("hunter2");
  });

  test("an error that is no SourceError is told by its name alone", async () => {
    const registry = new Registry({});
    registry.pages = [new TypeError("token=hunter2")];
    const { error } = await look(registry);
    expect(error).toBe("the source could not be read (TypeError)");
  });
});
