import { Permanent } from "@osbert/journal";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { Validate } from "@osbert/server/schemas";
import type { Verb } from "../service/verb.js";

/** What an operation leaves behind as state: what its function returned, else what is kept. */
export interface EndState {
  readonly returned: unknown;
  /** Read only where nothing was returned. */
  readonly kept: () => Promise<JsonObject | null>;
  /** `undefined`: there is no schema, and nothing to check. */
  readonly validate: Validate | undefined;
}

/**
 * The types of the later functions promise what the schema requires. So an operation that ends without it fails now, with a sentence
 * for its author, instead of every later one. Trying again would not help.
 */
export async function checkState(verb: Verb, { returned, kept, validate }: EndState): Promise<void> {
  if (returned !== undefined && !isJsonObject(returned))
    throw new Permanent(`${verb} returned a state that cannot be kept: it must be an object`);
  if (validate === undefined) return;
  if (returned !== undefined) {
    const wrong = validate(returned);
    if (wrong !== null) throw new Permanent(`${verb} returned a state that its schema refuses: ${wrong}`);
    return;
  }
  const wrong = validate((await kept()) ?? {});
  if (wrong !== null) throw new Permanent(`${verb} returned no state, and its schema refuses what is kept: ${wrong}`);
}
