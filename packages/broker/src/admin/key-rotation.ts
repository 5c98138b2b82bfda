import type { Store } from "@osbert/journal";
import type { EncryptedStore, Rotation } from "@osbert/journal/encryption";
import { BrokerError } from "@osbert/protocol";

/** How far the rotation of keys is that this process was last asked for. */
export type RotationView =
  | { readonly state: "none" }
  | { readonly state: "running"; readonly walk: number; readonly resources: number; readonly texts: number }
  | { readonly state: "failed"; readonly description: string }
  | {
      readonly state: "succeeded";
      readonly resources: number;
      readonly texts: number;
      readonly left: number;
      readonly left_plain: number;
      readonly unused: readonly string[];
    };

/**
 * Encrypts the store anew from within the process that has it open: a SQLite file lets no other one in. What was done stays done if the
 * process dies; the next rotation does the rest.
 */
export class KeyRotation {
  readonly #store: EncryptedStore | undefined;
  readonly #stopping = new AbortController();
  #view: RotationView = { state: "none" };

  constructor(store: Store) {
    this.#store = isEncrypted(store) ? store : undefined;
  }

  get view(): RotationView {
    return this.#view;
  }

  /** Refused before anything is noted in the journal. */
  check(): void {
    if (this.#store === undefined) throw new BrokerError("unprocessable", "the store of this broker has no keys");
  }

  /** Begins one, unless one is under way. Nobody waits for it. */
  begin(): RotationView {
    if (this.#view.state !== "running" && this.#store !== undefined) {
      this.#view = { state: "running", walk: 1, resources: 0, texts: 0 };
      this.#run(this.#store).then(
        (view) => {
          this.#view = view;
        },
        (error: unknown) => {
          const description = error instanceof Error ? error.message : String(error);
          this.#view = { state: "failed", description };
        },
      );
    }
    return this.#view;
  }

  end(): void {
    this.#stopping.abort();
  }

  async #run(store: EncryptedStore): Promise<RotationView> {
    const rotation = await store.rotate({
      signal: this.#stopping.signal,
      onProgress: ({ walk, resources, texts }) => {
        this.#view = { state: "running", walk, resources, texts };
      },
    });
    return viewOf(rotation);
  }
}

function viewOf({ resources, texts, left, leftPlain, unused }: Rotation): RotationView {
  return { state: "succeeded", resources, texts, left, left_plain: leftPlain, unused };
}

function isEncrypted(store: Store): store is EncryptedStore {
  return "rotate" in store && typeof store.rotate === "function";
}
