import fc from "fast-check";
import { expect, test } from "vitest";
import { apiRoutes } from "../../src/api/index.js";
import { apiLab } from "./api-lab.js";
import { memoryPlatform } from "./memory-platform.js";

/** More than by default with OSBERT_FUZZ_RUNS. */
const numRuns = Number(process.env.OSBERT_FUZZ_RUNS ?? 1_000);

const odd = fc.oneof(
  fc.constantFrom("db", "team", "op-1", "..", "%2e%2e", "%", "%00", "a%2Fb", "%ud800", "__proto__", "constructor", "*"),
  fc.string().map((text) => encodeURIComponent(text)),
);
const queryNames = [
  "limit",
  "after",
  "before",
  "phase",
  "mode",
  "dry_run",
  "cascade",
  "state",
  "broker",
  "reason",
  "x",
];
const query = fc.array(
  fc.tuple(fc.constantFrom(...queryNames), fc.oneof(odd, fc.constantFrom("1", "true", "-1", "1e9"))),
  {
    maxLength: 3,
  },
);
const bodyNames = [
  "offering",
  "plan",
  "parameters",
  "policy",
  "reason",
  "url",
  "authentication",
  "until",
  "__proto__",
  "after",
];
const body = fc.oneof(
  fc.dictionary(fc.constantFrom(...bodyNames), fc.jsonValue()).map((value) => JSON.stringify(value)),
  fc.constant('{"offering":"database","plan":"small"}'),
  fc.constant('{"reason":"x","until":"never"}'),
  fc.constant(`{"parameters":${"[".repeat(90)}1e999${"]".repeat(90)}}`),
  fc.json(),
  fc.string(),
);
const headers = fc.record(
  {
    "if-match": fc.oneof(fc.string(), fc.constant('"1"')),
    "if-none-match": fc.string(),
    "idempotency-key": fc.string(),
    "last-event-id": fc.string(),
    "content-type": fc.constantFrom("application/json", "text/plain", "application/json; charset=x"),
  },
  { requiredKeys: [] },
);

test("no request is answered as the platform's own fault, or differently from what the document says", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...apiRoutes),
      fc.array(odd, { minLength: 5, maxLength: 5 }),
      fc.record({
        query,
        body,
        headers,
        instance: fc.oneof({ weight: 9, arbitrary: fc.constant("db") }, odd),
        // Mostly what gets far: what is refused at the door tells little.
        space: fc.oneof({ weight: 9, arbitrary: fc.constant("team") }, odd),
        as: fc.constantFrom("root", "root", "root", "alice", "bob", "eve"),
      }),
      async ([method, pattern], values, asked) => {
        const { ask } = apiLab(memoryPlatform().platform);
        await ask("PUT", "/spaces/team/instances/db", { body: { offering: "database", plan: "small" } });
        let next = 0;
        const path = pattern
          .replace("/api/v1", "")
          .replace(":space", asked.space)
          .replace(":instance", asked.instance)
          .replaceAll(/:\w+/g, () => values[next++] ?? "x");
        const search = asked.query.map(([name, value]) => `${name}=${value}`).join("&");
        const sends = method === "GET" || method === "DELETE" ? {} : { body: asked.body };
        const told = await ask(method, `${path}${search === "" ? "" : `?${search}`}`, {
          ...asked,
          body: undefined,
          ...sends,
        } as never);
        expect(told.status).toBeLessThan(500);
      },
    ),
    { numRuns },
  );
});
