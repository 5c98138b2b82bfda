import { type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import { checkPartId } from "../names.js";
import { queuePrefix } from "./queue.js";

/** Thrown out of a draft that must see parts which were not read, or ("queue") all operations that wait in parts: read them and draft again. */
export class NeedsParts {
  readonly ids: readonly string[] | "queue";
  constructor(ids: readonly string[] | "queue") {
    this.ids = ids;
  }
}

/** The parts of a resource in the making of one change: as they were read, and what becomes of them. */
export class DraftParts {
  /** Made when there is something for them: most changes leave all parts as they are. */
  #put: Map<string, string> | undefined;
  #deleted: Set<string> | undefined;
  readonly #read: ReadonlyMap<string, string | null>;
  readonly #hasQueue: boolean;

  /** `read`: id → body, `null` for one that does not exist. `hasQueue`: all operations that wait in parts are among them. */
  constructor(read: ReadonlyMap<string, string | null>, hasQueue: boolean) {
    this.#read = read;
    this.#hasQueue = hasQueue;
  }

  get put(): ReadonlyMap<string, string> {
    return this.#put ?? nonePut;
  }

  get deleted(): ReadonlySet<string> {
    return this.#deleted ?? noneDeleted;
  }

  /** What is needed is asked for at once: each time that something is missing is a read and a new draft. */
  need(ids: readonly string[]): void {
    if (ids.every((id) => this.#isKnown(id))) return;
    throw new NeedsParts([...new Set(ids.filter((id) => !this.#isKnown(id)))]);
  }

  text(id: string): string | null {
    if (!this.#isKnown(id)) throw new NeedsParts([id]);
    if (this.deleted.has(id)) return null;
    return this.put.get(id) ?? this.#read.get(id) ?? null;
  }

  /** Texts of the operations that wait, all of them. */
  queue(): readonly string[] {
    if (!this.#hasQueue) throw new NeedsParts("queue");
    const texts: string[] = [];
    for (const [id, body] of new Map([...this.#read, ...this.put])) {
      if (id.startsWith(queuePrefix) && body !== null && !this.deleted.has(id)) texts.push(body);
    }
    return texts;
  }

  /** A part of the user's; `null` removes it. */
  write(id: string, value: Json): void {
    checkPartId(id);
    if (value === null) {
      this.remove(id);
      return;
    }
    const text = toJsonText(value, limits.jsonBytes, `the part ${JSON.stringify(id)}`);
    this.writeText(id, text);
    // What stands there already is not written again: the end of an operation often leaves its part as it is.
    if (this.#read.get(id) === text) this.#put?.delete(id);
  }

  /** A part of the journal's own. */
  writeText(id: string, text: string): void {
    this.#deleted?.delete(id);
    this.#put ??= new Map();
    this.#put.set(id, text);
  }

  remove(id: string): void {
    this.#put?.delete(id);
    this.#deleted ??= new Set();
    this.#deleted.add(id);
  }

  #isKnown(id: string): boolean {
    if (this.put.has(id) || this.deleted.has(id) || this.#read.has(id)) return true;
    return this.#hasQueue && id.startsWith(queuePrefix);
  }

  /** Answers how to go back to what it is now. */
  mark(): () => void {
    const put = this.#put && new Map(this.#put);
    const deleted = this.#deleted && new Set(this.#deleted);
    return () => {
      this.#put = put;
      this.#deleted = deleted;
    };
  }
}

const nonePut: ReadonlyMap<string, string> = new Map();
const noneDeleted: ReadonlySet<string> = new Set();
