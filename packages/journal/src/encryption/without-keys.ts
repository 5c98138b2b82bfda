import { JournalError } from "../errors.js";
import { keyRegisterKey } from "../names.js";
import type { Store } from "../store.js";
import { readRegister } from "./register-text.js";

/**
 * Why a journal must not work on this store as it is given: what is in it is encrypted, and the keys are not there. Undefined where
 * nothing is encrypted, or the store has the keys: an encrypted store does not show its register.
 */
export async function lackOfKeys(store: Store): Promise<JournalError | undefined> {
  const register = await store.read(keyRegisterKey, []);
  if (register === undefined) return undefined;
  const ids = Array.from(readRegister(register.record.state).keys(), (id) => JSON.stringify(id));
  return new JournalError(
    "key-missing",
    `the ${store.name} store is encrypted under the keys ${ids.join(", ")}, and this journal was given none; nothing was changed: open it through encryptedStore with these keys`,
  );
}
