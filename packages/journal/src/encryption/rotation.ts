import { keyRegisterKey } from "../names.js";
import type { Store, StoredEntry, StoredPart, StoredRecord, TextPlace, TextReplacement } from "../store.js";
import { noteUse, registerActiveKey } from "./key-register.js";
import type { Opened, Place, TextCipher } from "./text-cipher.js";

export interface RotationOptions {
  /** Called after every page of resources. */
  readonly onProgress?: (progress: RotationProgress) => void;
  /** Ends it after the resources that it is at. */
  readonly signal?: AbortSignal;
}

export interface RotationProgress {
  /** It goes through all resources until it has nothing more to do: 1 the first time. */
  readonly walk: number;
  /** Resources seen in this walk. */
  readonly resources: number;
  /** Texts that were encrypted anew, in all walks. */
  readonly texts: number;
  /** The last resource of the page. */
  readonly key: string;
}

export interface Rotation {
  readonly resources: number;
  /** Texts that were encrypted anew. */
  readonly texts: number;
  /**
   * Texts that are not under the active key after all: they cannot be read, or some process still writes under another key. 0 is what one
   * wants.
   */
  readonly left: number;
  /** Of these, how many are not encrypted at all. */
  readonly leftPlain: number;
  /** Ids of keys that nothing is encrypted under any more: once no process has one of them as its active key, it may be taken out. */
  readonly unused: readonly string[];
}

const resourcesOfPage = 100;
const textsOfPage = 50;
/** Resources at a time: enough to share durable writes, few enough to leave room for the work of others. */
const atOnce = 4;
const mostWalks = 3;

/** What a walk found that was not under the active key. */
class Finds {
  resources = 0;
  texts = 0;
  plain = 0;
  readonly keyIds = new Set<string>();

  note(opened: Opened): void {
    this.texts++;
    if (opened.kind === "plain") this.plain++;
    else if (opened.keyId !== null) this.keyIds.add(opened.keyId);
  }
}

/**
 * Re-encrypts in place, text by text, each only if it is still what was read: a commit in between wins, and nobody else notices. Nothing
 * is remembered on the way; after a kill the next rotation reads everything again, and writes what is left.
 *
 * A key counts as unused only after a walk from the first to the last resource that found nothing under it. So after a walk that had
 * something to do there is another one, which would meet what a process with an older ring has written since.
 */
export async function rotate(store: Store, cipher: TextCipher, options: RotationOptions): Promise<Rotation> {
  // The ring may be too old by now: another process may have registered a key that is not in it.
  await registerActiveKey(store, cipher);
  const rotator = new Rotator(store, cipher, options);
  let finds = await rotator.walk();
  for (let replaced = 0; finds.texts > 0 && rotator.replaced > replaced && rotator.walks < mostWalks; ) {
    replaced = rotator.replaced;
    finds = await rotator.walk();
  }
  const unused = await noteUse(store, new Set([cipher.active, ...finds.keyIds]));
  const { resources, texts: left, plain: leftPlain } = finds;
  return { resources, texts: rotator.replaced, left, leftPlain, unused };
}

interface StoredText {
  readonly text: string;
  readonly at: TextPlace;
  readonly place: Place;
}

class Rotator {
  readonly #store: Store;
  readonly #cipher: TextCipher;
  readonly #options: RotationOptions;
  walks = 0;
  replaced = 0;

  constructor(store: Store, cipher: TextCipher, options: RotationOptions) {
    this.#store = store;
    this.#cipher = cipher;
    this.#options = options;
  }

  async walk(): Promise<Finds> {
    const finds = new Finds();
    this.walks++;
    for (let after: string | null = null; ; ) {
      const page: readonly StoredRecord[] = await this.#store.find({ after, limit: resourcesOfPage });
      for (let from = 0; from < page.length; from += atOnce) {
        this.#options.signal?.throwIfAborted();
        await Promise.all(page.slice(from, from + atOnce).map((record) => this.#resource(record, finds)));
      }
      const last = page.at(-1);
      if (last !== undefined) this.#tell(finds, last.key);
      if (last === undefined || page.length < resourcesOfPage) return finds;
      after = last.key;
    }
  }

  #tell({ resources }: Finds, key: string): void {
    this.#options.onProgress?.({ walk: this.walks, resources, texts: this.replaced, key });
  }

  async #resource(record: StoredRecord, finds: Finds): Promise<void> {
    const { key, seq, state } = record;
    if (key === keyRegisterKey) return;
    finds.resources++;
    await this.#replace(key, finds, [{ text: state, at: { kind: "state", seq }, place: { kind: "state", key, seq } }]);
    await this.#parts(key, finds);
    await this.#entries(key, finds);
  }

  async #parts(key: string, finds: Finds): Promise<void> {
    for (let after: string | null = null; ; ) {
      const page: readonly StoredPart[] = await this.#store.parts(key, { prefix: "", after, limit: textsOfPage });
      await this.#replace(
        key,
        finds,
        page.map(({ id, body }) => ({ text: body, at: { kind: "part", id }, place: { kind: "part", key, id } })),
      );
      const last = page.at(-1);
      if (last === undefined || page.length < textsOfPage) return;
      after = last.id;
    }
  }

  async #entries(key: string, finds: Finds): Promise<void> {
    for (let after = 0; ; ) {
      const page: readonly StoredEntry[] = await this.#store.entries(key, { kind: "after", after, limit: textsOfPage });
      await this.#replace(
        key,
        finds,
        page.map(({ seq, kind, body }) => ({
          text: body,
          at: { kind: "entry", seq },
          place: { kind: "entry", key, seq, entryKind: kind },
        })),
      );
      const last = page.at(-1);
      if (last === undefined || page.length < textsOfPage) return;
      after = last.seq;
    }
  }

  /** What a commit has written since it was read is not replaced: it is under the key of whoever wrote it, and the next walk sees it. */
  async #replace(key: string, finds: Finds, texts: readonly StoredText[]): Promise<void> {
    const replacements = texts.flatMap((text) => this.#resealed(text, finds));
    if (replacements.length === 0) return;
    const replaced = await this.#store.replaceTexts(key, replacements);
    this.replaced += replaced;
  }

  #resealed({ text, at, place }: StoredText, finds: Finds): readonly TextReplacement[] {
    const opened = this.#cipher.open(text, place);
    if (opened.kind === "opened" && opened.keyId === this.#cipher.active) return [];
    finds.note(opened);
    // What cannot be read stays as it is: someone may bring the key, or mend it.
    if (opened.kind === "locked" || opened.kind === "broken") return [];
    return [{ place: at, from: text, to: this.#cipher.seal(opened.text, place) }];
  }
}
