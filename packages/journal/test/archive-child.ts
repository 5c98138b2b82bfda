import { appendFileSync } from "node:fs";
import { openJournal } from "../src/open-journal.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";

/** Prunes what it accepts at once, and keeps it in a file. With `die` it is killed after that, before anything is removed. */
const [path = "", file = "", die = ""] = process.argv.slice(2);
const by = { actor: { type: "user", subject: "ann" } } as const;
const journal = await openJournal({
  store: sqliteStore(path),
  kinds: { work: { run: async () => "done" } },
  observe: ({ kind }) => {
    if (kind === "pruned") process.stdout.write("pruned\n");
  },
  retention: {
    succeededMs: 1,
    archive: async (key, entries) => {
      for (const { seq, kind } of entries) appendFileSync(file, `${key} ${seq} ${kind}\n`);
      if (die !== "") process.kill(process.pid, "SIGKILL");
    },
  },
});
if (die !== "") await journal.transact("k", () => ({ result: null, change: { accept: [{ kind: "work" }] } }), { by });
await journal.start();
