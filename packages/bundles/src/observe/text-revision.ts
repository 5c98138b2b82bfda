import type { BundleSpec } from "../formats/bundle-spec.js";
import type { Revision } from "../reconcile/observation.js";
import type { TextShelf } from "./text-shelf.js";

/**
 * A revision whose description is kept as the bytes of its JSON, and made anew each time that it is asked for: a first reading holds those of thousands of
 * bundles until it has ended, and they are looked at one after the other then.
 */
export class TextRevision implements Revision {
  readonly digest: Revision["digest"];
  readonly artifact: Revision["artifact"];
  readonly parserVersion: number;
  readonly #spec: Buffer;

  constructor({ digest, artifact, parserVersion, spec }: Revision, shelf: TextShelf) {
    this.digest = digest;
    this.artifact = artifact;
    this.parserVersion = parserVersion;
    this.#spec = shelf.put(spec);
  }

  get spec(): BundleSpec {
    return JSON.parse(this.#spec.toString());
  }
}
