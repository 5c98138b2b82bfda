import { lackOfKeys } from "./encryption/without-keys.js";
import type { Journal, JournalOptions } from "./journal.js";
import type { Store } from "./store.js";
import { StoreJournal } from "./store-journal.js";

/** Opens the store and answers the journal on it. It accepts and tells at once; it runs operations after `start`. */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { store } = options;
  await store.open();
  await refuseWithoutKeys(store);
  const journal = new StoreJournal(options);
  await journal.learnTime();
  return journal;
}

/** Before anything is read: without its keys every resource of the store would look damaged. */
async function refuseWithoutKeys(store: Store): Promise<void> {
  const lack = await lackOfKeys(store);
  if (lack === undefined) return;
  await store.close().catch(() => undefined);
  throw lack;
}
