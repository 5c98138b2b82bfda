import { encryptedStore, parseKeyRing } from "../src/encryption/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";

/**
 * Encrypts a SQLite file anew and kills itself after so many pages, while the next texts are on their way to the file. The keys come by
 * the environment.
 */
const [path = "", pages] = process.argv.slice(2);
const store = encryptedStore(sqliteStore(path), parseKeyRing(process.env.KEYS ?? ""));
await store.open();
let told = 0;
await store.rotate({
  onProgress() {
    if (++told === Number(pages)) setImmediate(() => process.kill(process.pid, "SIGKILL"));
  },
});
