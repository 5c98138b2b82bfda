import { openJournal } from "../src/open-journal.js";
import { memoryStore } from "../src/stores/memory.js";

// Run as a process of its own: an author has forgotten to await steps, and they fail in every way and at every time.
const journal = await openJournal({
  store: memoryStore(),
  graceMs: 50,
  kinds: {
    forgetful: {
      async run(operation) {
        void operation.step("fails at once", () => {
          throw new Error("at once");
        });
        void operation.step("fails soon", async () => {
          await new Promise((resolve) => setTimeout(resolve, 20));
          throw new Error("soon");
        });
        void operation.step("ends too late", () => new Promise((resolve) => setTimeout(resolve, 40)));
        return "done";
      },
    },
    sleepy: {
      async run(operation) {
        void operation.sleep("nap", 10);
        return "done";
      },
    },
    cancelled: {
      async run(operation) {
        void operation.step("hangs", () => new Promise((resolve) => setTimeout(resolve, 60)));
        await new Promise((resolve) => setTimeout(resolve, 30));
        return "done";
      },
    },
  },
});
await journal.start();
const by = { actor: { type: "user", subject: "child" } } as const;
for (const kind of ["forgetful", "sleepy", "cancelled"]) {
  const decide = () => ({ result: null, change: { accept: [{ kind }] } });
  const { accepted } = await journal.transact(kind, decide, { by });
  if (kind === "cancelled") await journal.cancel(kind, accepted[0]?.id ?? "", "not wanted", by);
}
await new Promise((resolve) => setTimeout(resolve, 300));
await journal.stop({ drainMs: 100 });
process.stdout.write("still here\n");
