import type { Change, StoredRecord, StoredResource } from "../../store.js";
import { leaseAfter } from "../lease-after.js";
import type { Request, WriterAnswer } from "./protocol.js";

/** So many resources in each of two generations, and so many characters of theirs. */
const mostResources = 4_096;
const mostCharacters = 8_388_608;
/** Of one resource. */
const mostParts = 16;

interface Known {
  readonly record: StoredRecord;
  /** Parts that were read along; `null`: there is none of that name. */
  readonly parts: ReadonlyMap<string, string | null>;
  readonly characters: number;
}

/**
 * What was read last, for as long as nobody changes it: platforms poll the same instances again and again. The file has one owner
 * process, so that all changes are made by this store, and it learns of each before that is told to the one who asked. While a change is
 * under way the file is asked: parts and versions are read from there, and whoever has seen them must not be given an older record.
 *
 * Two generations instead of an order of use: when the young one is full it becomes the old one, and what is read again comes back.
 */
export class Recent {
  #young = new Map<string, Known>();
  #old = new Map<string, Known>();
  #characters = 0;
  /** Resources of which changes are under way, and how many. */
  readonly #underWay = new Map<string, number>();

  read(key: string, parts: readonly string[], load: () => StoredResource | undefined): StoredResource | undefined {
    if (this.#underWay.has(key)) return load();
    const known = this.#young.get(key) ?? this.#recall(key);
    if (known !== undefined && parts.every((id) => known.parts.has(id))) return select(known, parts);
    const resource = load();
    if (resource !== undefined) {
      const read = new Map(parts.map((id) => [id, resource.parts.get(id) ?? null]));
      this.#remember(key, toKnown(resource.record, read));
    }
    return resource;
  }

  /** Called with each request before it is carried out. Claims and leases leave the seq and the parts alone. */
  begin(request: Request): void {
    const key = keyOf(request);
    if (key !== undefined) this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1);
  }

  /** Called in their order with all requests that were carried out, or may have been, before they are answered. */
  note(request: Request, answer: WriterAnswer | undefined): void {
    this.#end(keyOf(request));
    switch (request.kind) {
      case "commit":
        if (answer === true) this.#learn(request.change);
        else this.#forget(request.change.key);
        break;
      case "claim":
        if (typeof answer === "object" && "claimed" in answer) this.#forgetEach(answer.claimed);
        else this.#forgetAll();
        break;
      case "renew":
      case "release":
        this.#forgetEach(request.held);
        break;
      case "reap":
        this.#forgetAll();
        break;
      case "remove":
      case "set aside":
      case "restore":
      case "replace texts":
        this.#forget(request.key);
        break;
    }
  }

  #end(key: string | undefined): void {
    if (key === undefined) return;
    const others = (this.#underWay.get(key) ?? 1) - 1;
    if (others > 0) this.#underWay.set(key, others);
    else this.#underWay.delete(key);
  }

  /** What was just written is read next: by the engine that runs it, by the platform that polls it. */
  #learn(change: Change): void {
    const { key, expected, lane, state, epoch } = change;
    const before = this.#young.get(key) ?? this.#old.get(key);
    this.#forget(key);
    // Read after a later change was made, but before this one was told of: the older one must not come back.
    const isBefore = before?.record.seq === expected?.seq && before?.record.epoch === expected?.epoch;
    const known = isBefore ? before : undefined;
    if (before !== undefined && known === undefined) return;
    // Lease and due time may be what they were.
    if (known === undefined && expected !== null) return;
    const record: StoredRecord = {
      key,
      seq: (expected?.seq ?? 0) + change.entries.length,
      epoch,
      state,
      lane,
      ...leaseAfter(change, known?.record),
    };
    const parts = new Map(known?.parts);
    for (const id of change.deleteParts) parts.set(id, null);
    for (const { id, body } of change.putParts) parts.set(id, body);
    if (parts.size <= mostParts) this.#remember(key, toKnown(record, parts));
  }

  #recall(key: string): Known | undefined {
    const known = this.#old.get(key);
    if (known === undefined) return undefined;
    this.#old.delete(key);
    this.#remember(key, known);
    return known;
  }

  #remember(key: string, known: Known): void {
    if (this.#young.size >= mostResources || this.#characters + known.characters > mostCharacters) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#characters = 0;
    }
    // One that is too large for a generation would push all others out.
    if (known.characters > mostCharacters / 64) return;
    this.#young.set(key, known);
    this.#characters += known.characters;
  }

  #forget(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #forgetEach(resources: readonly { readonly key: string }[]): void {
    for (const { key } of resources) this.#forget(key);
  }

  #forgetAll(): void {
    this.#young.clear();
    this.#old.clear();
    this.#characters = 0;
  }
}

/** The resource that a request changes, if it is one that was named. */
function keyOf(request: Request): string | undefined {
  if (request.kind === "commit") return request.change.key;
  return "key" in request ? request.key : undefined;
}

function toKnown(record: StoredRecord, parts: ReadonlyMap<string, string | null>): Known {
  let characters = record.key.length + record.state.length;
  for (const [id, body] of parts) characters += id.length + (body?.length ?? 0);
  return { record, parts, characters };
}

/** The record is always the same object, so that what was made of its text may be kept with it (see stateOf). */
function select({ record, parts }: Known, wanted: readonly string[]): StoredResource {
  const found = new Map<string, string>();
  for (const id of wanted) {
    const body = parts.get(id);
    if (typeof body === "string") found.set(id, body);
  }
  return { record, parts: found };
}
