import { createPool } from "mysql2/promise";
import { mysqlStore } from "../src/stores/mysql/index.js";

// A process of its own for mysql-presence.test.ts: claims what is due, says so, and lives until it is killed.
const [url = "", prefix = "", owner = ""] = process.argv.slice(2);
const store = mysqlStore(createPool(url), { prefix });
await store.open();
await store.attend(owner, () => {});
const { claimed } = await store.claim({ owner, leaseMs: 600_000, limit: 100, laneRoom: 100, rooms: new Map() });
console.log(`${claimed.length} claimed`);
