import { memoryStore } from "@osbert/journal/memory";
import { manualClock } from "@osbert/journal/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
import { createHandler, type Handler, type WireResponse } from "../src/http/index.js";
import { type Broker, BrokerError, createBroker, defineService, Failed, type Work } from "../src/index.js";
import type { InstanceData } from "../src/records/instance-record.js";
import { type FuzzRequest, fuzzRequests } from "./fuzz-requests.js";
import { adapters, ids, plans } from "./lab.js";

const requests = Number(process.env.OSBERT_FUZZ_REQUESTS ?? 20_000);
const batch = 20;
const secondsBetweenCleanups = 60;

/** What the service has made and not removed. Now and then it refuses, fails, takes its time, or has to be asked again. */
function unsteadyService() {
  const instances = new Set<string>();
  const bindings = new Set<string>();
  let calls = 0;
  const unsteady = (): void => {
    calls++;
    if (calls % 13 === 0) throw new BrokerError("unprocessable", "not this time");
    if (calls % 17 === 0) throw new Failed("it broke", { code: "unprocessable", instanceUsable: calls % 2 === 0 });
  };
  /** Deletes find what waits here, and cancel it. */
  const slowly = async (work: Work): Promise<void> => {
    if (calls % 4 === 0) await work.sleep("for a while", 1_000);
  };
  const service = defineService({
    id: ids.service,
    name: "unsteady",
    description: "Is hard to please",
    planUpdateable: true,
    allowContextUpdates: true,
    plans,
    prepare: ({ instance }) => ({ dashboardUrl: `https://x.example/${encodeURIComponent(instance.id)}` }),
    async provision(work, { instance }) {
      unsteady();
      await work.step("make", () => void instances.add(instance.id));
      await slowly(work);
      unsteady();
      return { state: { id: instance.id } };
    },
    async update(work) {
      await slowly(work);
      unsteady();
    },
    async bind(work, { instance, binding }) {
      unsteady();
      await work.step("grant", () => void bindings.add(`${instance.id} ${binding.id}`));
      await slowly(work);
      unsteady();
      return { credentials: { for: binding.id }, state: { id: binding.id } };
    },
    async unbind(work, { instance, binding }) {
      if (calls++ % 19 === 0) throw new Failed("the server is away", { code: "unprocessable" });
      await slowly(work);
      await work.step("revoke", () => void bindings.delete(`${instance.id} ${binding.id}`));
    },
    async deprovision(work, { instance }) {
      if (calls++ % 19 === 0) throw new Failed("the server is away", { code: "unprocessable" });
      await slowly(work);
      await work.step("remove", () => void instances.delete(instance.id));
    },
  });
  return { service, instances, bindings };
}

test(
  `ROB-01, ROB-02, ROB-12, ROB-13, B13: ${requests} random requests: no 5xx, every error has a description, and all can be cleaned up`,
  async () => {
    const clock = manualClock();
    const retentionMs = (secondsBetweenCleanups * 1_000) / 2;
    const retention = {
      succeededMs: retentionMs,
      failedMs: retentionMs,
      cancelledMs: retentionMs,
      notesMs: retentionMs,
    };
    const { service, instances, bindings } = unsteadyService();
    const store = memoryStore({ clock: clock.wallMs });
    const broker = createBroker({
      stderr: "nothing",
      services: [service],
      store,
      syncTimeoutMs: 5_000,
      journal: { clock, retention },
    });
    await broker.start();
    const options = { credentials: "none" } as const;
    const wires: Handler[] = [createHandler(broker, options)];
    for (const adapter of Object.values(adapters)) wires.push(adapter(broker, options));
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => void unhandled.push(error);
    process.on("unhandledRejection", onUnhandled);
    const catalog = broker.catalog.body;
    const counts = new Map<number, number>();

    const send = async ({ method, url, headers, body, wire }: FuzzRequest): Promise<void> => {
      const request = { method, url, body, header: (name: string) => headers[name.toLowerCase()] };
      // A path that the test's own client cannot send goes straight to the handler: a server might see it.
      const answer = await Promise.resolve((wires[wire] as Handler)(request)).catch(
        (error: { readonly code?: string }) => {
          if (error.code !== "ERR_INVALID_URL") throw error;
          return (wires[0] as Handler)(request);
        },
      );
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      const text = textOf(answer);
      const said = `${method} ${url} → ${answer.status} ${text.slice(0, 200)}`;
      // ERR-07: the author's own refusals after a step was recorded, and nothing else.
      if (
        answer.status >= 500 &&
        !/"OperationFailed","description":"(not this time|it broke)"/.test(String(answer.body))
      )
        throw new Error(said);
      if (method === "HEAD" || answer.status === 304) return expect(text, said).toBe("");
      const told = JSON.parse(text) as { description?: unknown };
      if (typeof told !== "object" || told === null || Array.isArray(told)) throw new Error(said);
      if (answer.status >= 400 && !(typeof told.description === "string" && told.description.trim() !== "")) {
        throw new Error(said);
      }
    };

    let sent = 0;
    const together = fc.array(fuzzRequests, { minLength: batch, maxLength: batch });
    const property = fc.asyncProperty(together, async (asked) => {
      const answered = Promise.all(asked.map(send));
      answered.catch(() => undefined);
      await clock.advance(2_500);
      await answered;
      sent += asked.length;
      if (sent % 5_000 < batch) await clock.advance(secondsBetweenCleanups * 1_000);
    });
    // A broker that has seen what came before is another one: shrinking would tell nothing.
    const numRuns = Math.ceil(requests / batch);
    const seed = propertySeed();
    await fc.assert(property, { numRuns, ...seed, endOnFailure: true, asyncReporter: async (run) => report(run) });
    await clock.advance(secondsBetweenCleanups * 1_000);

    if (process.env.OSBERT_FUZZ_REQUESTS !== undefined)
      console.log(`answers by status: ${JSON.stringify([...counts].sort(([a], [b]) => a - b))}`);
    expect(unhandled).toEqual([]);
    process.off("unhandledRejection", onUnhandled);
    // Enough came through for the rest to mean something.
    for (const status of [200, 201, 202, 400, 404, 409, 410, 422]) {
      expect(counts.get(status) ?? 0, `answers with ${status}: ${JSON.stringify([...counts])}`).toBeGreaterThan(0);
    }
    expect(broker.catalog.body).toBe(catalog);
    await cleanUp(wires[0] as Handler, broker, () => clock.advance(2_500));
    expect([...instances]).toEqual([]);
    expect([...bindings]).toEqual([]);
    await broker.stop({ drainMs: 0 }).catch(() => undefined);
  },
  Math.max(60_000, requests * 10),
);

/** The catalog's body is bytes already. */
function textOf({ body }: WireResponse): string {
  return typeof body === "string" ? body : Buffer.from(body).toString();
}

/** What went wrong and how to see it again, without the thousands of bytes that were sent. */
function report({ failed, errorInstance, seed, numRuns }: fc.RunDetails<[FuzzRequest[]]>): void {
  if (failed)
    throw new Error(`OSBERT_FUZZ_SEED=${seed}, batch ${numRuns}: ${String(errorInstance).slice(0, 2_000)}`, {
      cause: errorInstance,
    });
}

/** Deletes all that is there, as a platform would: asking again when the service is away. */
async function cleanUp(handle: Handler, broker: Broker, goOn: () => Promise<void>): Promise<void> {
  const remove = async (path: string): Promise<void> => {
    const url = `${path}?service_id=${ids.service}&plan_id=${ids.small}`;
    const header = (name: string) => (name.toLowerCase() === "x-broker-api-version" ? "2.17" : undefined);
    for (let time = 0; time < 20; time++) {
      const answered = handle({ method: "DELETE", url, header, body: new Uint8Array() });
      await goOn();
      const { status, body } = await answered;
      if (status === 200 || status === 410) return;
      if (status !== 422) throw new Error(`${path} cannot be deleted: ${status} ${body}`);
    }
    throw new Error(`${path} cannot be deleted`);
  };
  for (let after: string | undefined; ; ) {
    const page = await broker.journal.find({ limit: 1_000, ...(after !== undefined && { after }) });
    for (const { key, data } of page.items) {
      const path = `/v2/service_instances/${encodeURIComponent(key.slice(1))}`;
      if ((data as InstanceData | null)?.phase === "gone") continue;
      const parts = await broker.journal.parts(key, "binding/", { limit: 1_000 });
      for (const { id } of parts.items) await remove(`${path}/service_bindings/${encodeURIComponent(id.slice(8))}`);
      await remove(path);
    }
    if (page.next === null) return;
    after = page.next;
  }
}
