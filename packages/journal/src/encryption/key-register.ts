import { randomBytes } from "node:crypto";
import { JournalError } from "../errors.js";
import { keyRegisterKey } from "../names.js";
import type { Change, Store, StoredRecord } from "../store.js";
import { type RegisteredKey, type RegisteredKeys, readRegister, registerText } from "./register-text.js";
import type { TextCipher } from "./text-cipher.js";

/** How often others may be faster: each of them has got its own change in. */
const mostTries = 100;

/**
 * Sees to it that the ring has every key that is in use in the store, with the right bytes, and that its active key is registered
 * there. Throws `key-missing` or `key-wrong` otherwise, and has changed nothing.
 *
 * It comes before the first text is written, so that there is never a text whose key the store does not name. Killed in between, it
 * has registered a key that nothing is encrypted under, and the next start finds it so.
 */
export async function registerActiveKey(store: Store, cipher: TextCipher): Promise<void> {
  await change(store, (before) => {
    const after = new Map<string, RegisteredKey>();
    for (const [id, key] of before) {
      const { kind } = cipher.open(key.check, { kind: "check", id });
      // It was taken out of the ring after a rotation had found it unused: from now on nobody is asked for it.
      if (kind === "locked" && key.unused) continue;
      if (kind === "locked") throw missing(id, store);
      if (kind !== "opened") throw wrong(id, store);
      after.set(id, id === cipher.active ? { ...key, unused: false } : key);
    }
    if (!after.has(cipher.active)) {
      const check = cipher.seal("osbert", { kind: "check", id: cipher.active });
      after.set(cipher.active, { check, unused: false });
    }
    return after;
  });
}

/** Notes which keys a rotation found in use; the others are unused from now on. Answers the ids of these. */
export async function noteUse(store: Store, inUse: ReadonlySet<string>): Promise<readonly string[]> {
  const keys = await change(store, (before) => {
    return new Map(Array.from(before, ([id, key]) => [id, { ...key, unused: !inUse.has(id) }]));
  });
  return Array.from(keys).flatMap(([id, { unused }]) => (unused ? [id] : []));
}

/** Compare and append, as with every resource: of processes that start at once each sees what the one before it registered. */
async function change(store: Store, decide: (before: RegisteredKeys) => RegisteredKeys): Promise<RegisteredKeys> {
  for (let tries = 0; tries < mostTries; tries++) {
    const record = (await store.read(keyRegisterKey, []))?.record;
    const keys = decide(record === undefined ? new Map() : readRegister(record.state));
    const text = registerText(keys);
    if (text === record?.state) return keys;
    const { kind } = await store.commit(changeOf(record, text, [...keys.keys()]));
    if (kind === "committed") return keys;
  }
  throw new JournalError("contention", "others kept changing the register of encryption keys");
}

/** Not due and not leased, so that nobody claims it. It keeps its newest entry alone. */
function changeOf(record: StoredRecord | undefined, state: string, ids: readonly string[]): Change {
  return {
    key: keyRegisterKey,
    expected: record === undefined ? null : { seq: record.seq, epoch: record.epoch },
    token: randomBytes(10).toString("hex"),
    state,
    lane: "",
    epoch: record?.epoch ?? 0,
    lease: null,
    dueAt: null,
    entries: [{ kind: "keys registered", operation: null, body: JSON.stringify({ keys: ids }) }],
    putParts: [],
    deleteParts: [],
    addLabels: [],
    removeLabels: [],
    deleteEntries: record === undefined ? [] : [record.seq],
    wake: false,
  };
}

function missing(id: string, { name }: Store): JournalError {
  return new JournalError(
    "key-missing",
    `the ${name} store holds texts under the encryption key ${JSON.stringify(id)}, which is not in the key ring; nothing was changed: add the key, or rotate with it before you take it out`,
  );
}

function wrong(id: string, { name }: Store): JournalError {
  return new JournalError(
    "key-wrong",
    `the key ring has another key under the id ${JSON.stringify(id)} than the ${name} store was encrypted with; nothing was changed: put the right key there, and give a new key an id of its own`,
  );
}
