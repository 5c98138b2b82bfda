import { writeSync } from "node:fs";
import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { sqliteStore } from "@osbert/journal/sqlite";
import { serve } from "../../src/http/index.js";
import { createBroker, defineService } from "../../src/index.js";
import { traces } from "../../src/observe/index.js";
import { followContext, seenSpan } from "./spans.js";

// A broker that writes each span that has ended to its output at once, and dies in the middle of a step if told so:
// `traces-broker.ts <file> dies|lives`.

const [file = "", how = ""] = process.argv.slice(2);
const say = (what: object) => writeSync(1, `${JSON.stringify(what)}\n`);
followContext();
const provider = new BasicTracerProvider({
  spanProcessors: [
    new SimpleSpanProcessor({
      export: (spans: ReadableSpan[], done: (result: { code: number }) => void) => {
        for (const span of spans) say(seenSpan(span));
        done({ code: 0 });
      },
      shutdown: async () => undefined,
    }),
  ],
});
const service = defineService({
  id: "s",
  name: "traced",
  description: "Takes two steps",
  plans: { only: { id: "p", description: "The only one" } },
  async provision(operation) {
    await operation.step("one", () => 1);
    await operation.step("two", async () => {
      if (how === "dies") process.kill(process.pid, "SIGKILL");
      // What authors' libraries do.
      provider.getTracer("library").startSpan("query").end();
      return trace.getActiveSpan() === undefined ? "outside" : "inside";
    });
  },
});
const broker = createBroker({
  stderr: "nothing",
  services: [service],
  store: sqliteStore(file),
  tracing: traces(provider.getTracer("osbert")),
});
const { url } = await serve(broker, { port: 0, credentials: "none" });
say({ url });
