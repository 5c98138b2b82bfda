import { randomUUID } from "node:crypto";
import { type Attribution, defineResource, type Journal, type TypedChange } from "@osbert/journal";
import type { PushedBundles } from "../sources/push-source.js";
import { extractPushed, type PushedContent, pushedDigest, readPushed } from "../sources/pushed-content.js";
import type { Digest, ReadBundle, Ref } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";
import { defaultSourceLimits, type SourceLimits } from "../sources/source-limits.js";

/** How much may be pushed: it is kept in the journal, which is no registry. */
export const pushLimits = {
  /** Of one bundle: its manifest and all that it names. */
  bytes: 8 * 1_048_576,
  /** Bundles that are kept at a time. */
  bundles: 200,
} as const;

/** One resource for all of them: replicas of one store have the same ones. */
export const pushedKey = "bundles.pushed";

/** A tag of what was pushed, as it is kept. */
export interface PushedRef {
  readonly ref: Ref;
  readonly digest: Digest;
  readonly pushedAt: number;
  readonly by: string;
  /** When its time is over; `null`: never. */
  readonly until: number | null;
}

/** What a digest stands for. Its bytes lie in chunks beside it, and count once it is whole. */
interface ContentRecord {
  readonly whole: boolean;
  /** Of whoever is writing it. */
  readonly token: string;
  /** When it was last of use: what nothing refers to stays for a while. */
  readonly at: number;
  readonly chunks: number;
  readonly of:
    | { readonly kind: "artifact"; readonly sizes: readonly number[] }
    | { readonly kind: "image"; readonly image: string; readonly digest: Digest; readonly runtime: number };
}

interface PushedShape {
  readonly data: null;
  readonly parts: {
    readonly [ref: `ref/${string}`]: PushedRef;
    readonly [content: `content/${string}`]: ContentRecord;
    /** In base64. */
    readonly [chunk: `chunk/${string}`]: string;
  };
  readonly operations: Readonly<Record<never, never>>;
}

const pushedResource = defineResource<PushedShape>();
/** In base64 below what a part may hold. */
const chunkBytes = 524_288;
const partsAtOnce = 100;
const mostTries = 3;
const keepUnusedMs = 60 * 60_000;
const system: Attribution = { actor: { type: "system", subject: "bundles" } };

/** Someone else has pushed the same in the same moment, or more is kept than may be. */
export class PushRefused extends Error {
  override readonly name = "PushRefused";
}

/** What was pushed, in the broker's journal: encrypted where that is, and the same on every replica. */
export class PushedStore implements PushedBundles {
  readonly #limits: SourceLimits;
  #journal: Journal | undefined;

  constructor(limits: Partial<SourceLimits> = {}) {
    this.#limits = { ...defaultSourceLimits, ...limits };
  }

  /** The broker has started. */
  open(journal: Journal): void {
    this.#journal = journal;
  }

  async list(): Promise<readonly PushedRef[]> {
    const now = this.#open().now();
    return (await this.#refs()).filter(({ until }) => until === null || until > now);
  }

  async read(repository: string, digest: Digest): Promise<ReadBundle | null> {
    const content = await this.#content(digest);
    return content && readPushed(content, repository, this.#limits, placeOf(repository, digest));
  }

  async fetch(repository: string, digest: Digest, folder: string): Promise<void> {
    const place = placeOf(repository, digest);
    const content = await this.#content(digest);
    if (content === null) throw new SourceError("not found", place, "it was removed");
    await extractPushed(content, folder, this.#limits, place);
  }

  /**
   * Keeps what was pushed. The order: first the bytes, which nothing refers to, some at a time; then, in one commit, that they are whole and
   * which tag they have. Killed before that, the tag is what it was, and the bytes are swept away.
   */
  async add(content: PushedContent, ref: Ref, ttlMs: number | null, by: Attribution): Promise<PushedRef> {
    const kept = (await this.#refs()).filter((each) => refPart(each.ref) !== refPart(ref));
    if (kept.length >= pushLimits.bundles)
      throw new PushRefused(`${pushLimits.bundles} bundles are kept already, and no more are; remove one`);
    for (let tries = 0; tries < mostTries; tries++) {
      const pushed = await this.#tryAdd(content, ref, ttlMs, by);
      if (pushed !== null) return pushed;
    }
    throw new PushRefused("the same bundle is being pushed by someone else; try again");
  }

  async #tryAdd(content: PushedContent, ref: Ref, ttlMs: number | null, by: Attribution): Promise<PushedRef | null> {
    const journal = this.#open();
    const digest = pushedDigest(content);
    const part = contentPart(digest);
    const bytes = bytesOf(content);
    const chunks = Math.ceil(bytes.length / chunkBytes);
    const token = randomUUID();
    const begin = pushedResource.decide((resource, now) => {
      const there = resource?.parts.get(part);
      const isThere = there?.whole === true;
      const record = isThere ? { ...there, at: now } : { whole: false, token, at: now, chunks, of: describe(content) };
      return { result: isThere, change: { data: null, parts: partsOf([part, record]) } };
    });
    const { result: isThere } = await journal.transact(pushedKey, begin, { by, parts: [part] });
    for (let at = 0; at < chunks && !isThere; at++) {
      const chunk = bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes).toString("base64");
      const write = pushedResource.decide(() => ({
        result: null,
        change: { parts: partsOf([chunkPart(digest, at), chunk]) },
      }));
      await journal.transact(pushedKey, write, { by });
    }
    const end = pushedResource.decide<PushedRef | null>((resource, now) => {
      const there = resource?.parts.get(part);
      // Begun anew by someone else, or swept away: nobody knows whether all of it is there.
      if (there === undefined || (!there.whole && there.token !== token)) return { result: null };
      const until = ttlMs === null ? null : now + ttlMs;
      const pushed: PushedRef = { ref, digest, pushedAt: now, by: by.actor.subject, until };
      const parts = partsOf([part, { ...there, whole: true, at: now }], [refPart(ref), pushed]);
      return { result: pushed, change: { parts } };
    });
    return (await journal.transact(pushedKey, end, { by, parts: [part] })).result;
  }

  /** Takes tags back. What they stood for stays as long as an instance may need it: see `sweep`. */
  async remove(refs: readonly Ref[], by: Attribution): Promise<void> {
    for (const ref of refs) {
      const found = (await this.#refs()).find((each) => refPart(each.ref) === refPart(ref));
      if (found !== undefined) await this.#remove(found, by, () => true);
    }
  }

  /** Only if the tag, as it is when that is committed, is one to remove. */
  async #remove({ ref, digest }: PushedRef, by: Attribution, isMeant: (tag: PushedRef) => boolean): Promise<void> {
    const part = refPart(ref);
    const decide = pushedResource.decide((resource, now) => {
      const tag = resource?.parts.get(part);
      if (tag === undefined || !isMeant(tag)) return { result: null };
      const content = resource?.parts.get(contentPart(digest));
      const used: readonly PartEntry[] = content === undefined ? [] : [[contentPart(digest), { ...content, at: now }]];
      return { result: null, change: { parts: partsOf([part, null], ...used) } };
    });
    await this.#open().transact(pushedKey, decide, { by, parts: [part, contentPart(digest)] });
  }

  /** Removes tags whose time is over, and, an hour after its last use, what neither a tag nor one of these digests stands for. */
  async sweep(digests: ReadonlySet<string>): Promise<void> {
    const journal = this.#open();
    const [all, kept] = [await this.#refs(), await this.list()];
    const over = all.filter(
      (each) => !kept.includes(each) && !kept.some(({ ref }) => refPart(ref) === refPart(each.ref)),
    );
    // One that was pushed again since is another tag of the same name.
    for (const seen of over)
      await this.#remove(seen, system, (tag) => tag.pushedAt === seen.pushedAt && tag.until === seen.until);
    const used = new Set<string>([...digests, ...kept.map(({ digest }) => digest)]);
    for await (const { id, value } of this.#parts("content/")) {
      const digest = id.slice("content/".length);
      if (used.has(digest) || journal.now() - value.at < keepUnusedMs) continue;
      const chunks = Array.from({ length: value.chunks }, (_, at) => [chunkPart(digest, at), null] as const);
      const decide = pushedResource.decide((resource) => {
        const isSame = resource?.parts.get(contentPart(digest))?.at === value.at;
        // All in one commit: bytes without a record would never be found again.
        return isSame ? { result: null, change: { parts: partsOf([id, null], ...chunks) } } : { result: null };
      });
      await journal.transact(pushedKey, decide, { by: system, parts: [id] });
    }
  }

  async #refs(): Promise<readonly PushedRef[]> {
    const refs: PushedRef[] = [];
    for await (const { value } of this.#parts("ref/")) refs.push(value);
    return refs;
  }

  async *#parts<Prefix extends "ref/" | "content/">(prefix: Prefix) {
    for (let after: string | undefined; ; ) {
      const range = { limit: partsAtOnce, ...(after !== undefined && { after }) };
      const page = pushedResource.partsUnder(prefix, await this.#open().parts(pushedKey, prefix, range));
      yield* page.items;
      if (page.next === null) return;
      after = page.next;
    }
  }

  async #content(digest: Digest): Promise<PushedContent | null> {
    const part = contentPart(digest);
    const record = pushedResource.resource(await this.#open().read(pushedKey, [part]))?.parts.get(part);
    if (record?.whole !== true) return null;
    const wanted = Array.from({ length: record.chunks }, (_, at) => chunkPart(digest, at));
    const resource = pushedResource.resource(await this.#open().read(pushedKey, wanted));
    const bytes = Buffer.concat(wanted.map((id) => Buffer.from(resource?.parts.get(id) ?? "", "base64")));
    const content = contentOf(record, bytes);
    if (pushedDigest(content) !== digest) throw new SourceError("digest mismatch", `push@${digest}`);
    return content;
  }

  #open(): Journal {
    if (this.#journal === undefined) throw new Error("pushed bundles are read when their broker has started");
    return this.#journal;
  }
}

function bytesOf(content: PushedContent): Buffer {
  return content.kind === "image" ? Buffer.from(content.text) : Buffer.concat([content.manifest, ...content.blobs]);
}

function describe(content: PushedContent): ContentRecord["of"] {
  if (content.kind === "artifact")
    return { kind: "artifact", sizes: [content.manifest, ...content.blobs].map(({ length }) => length) };
  const { kind, image, digest, runtime } = content;
  return { kind, image, digest, runtime };
}

function contentOf({ of }: ContentRecord, bytes: Buffer): PushedContent {
  if (of.kind === "image") return { ...of, text: bytes.toString("utf8") };
  const ends = of.sizes.map((_, at) => of.sizes.slice(0, at + 1).reduce((sum, size) => sum + size, 0));
  const [manifest = Buffer.alloc(0), ...blobs] = ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
  return { kind: "artifact", manifest, blobs };
}

function refPart({ repository, tag }: Ref): `ref/${string}` {
  return `ref/${repository}:${tag}`;
}

function contentPart(digest: string): `content/${string}` {
  return `content/${digest}`;
}

function chunkPart(digest: string, at: number): `chunk/${string}` {
  return `chunk/${digest}/${at}`;
}

type Parts = NonNullable<TypedChange<PushedShape>["parts"]>;
type PartEntry =
  | readonly [`ref/${string}`, PushedRef | null]
  | readonly [`content/${string}`, ContentRecord | null]
  | readonly [`chunk/${string}`, string | null];

/** TypeScript forgets of a computed name that it has a form. */
function partsOf(...entries: readonly PartEntry[]): Parts {
  return Object.fromEntries(entries) as Parts;
}

function placeOf(repository: string, digest: Digest): string {
  return `push/${repository}@${digest}`;
}
