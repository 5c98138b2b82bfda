import { describe, expect, test } from "vitest";
import { BrokerError, Failed, RetryLater } from "../src/index.js";
import {
  type AdminLab,
  adminCredential,
  adminLab,
  deletion,
  hasEnded,
  places,
  platformCredential,
} from "./admin-lab.js";
import { gate, hang, ids, lab, provisionBody, untilStopped } from "./lab.js";

const reason = "the disk was full";

/** The entries that the operator has left in an instance's journal, oldest first. */
async function operatorEntries({ admin }: AdminLab, instance: string) {
  const { body } = await admin("GET", `/instances/${instance}/journal`);
  // biome-ignore lint/suspicious/noExplicitAny: as it comes.
  return body.items.filter(({ kind }: any) => kind === "operator").reverse();
}

describe.each(Object.keys(places))("%s:", (place) => {
  const newStore = async () =>
    (await places[place]?.())?.() as ReturnType<Awaited<ReturnType<(typeof places)[string]>>>;

  test("the admin API has credentials of its own: no platform's opens it, and it opens nothing else", async () => {
    const { ask } = await adminLab(lab(), await newStore());
    const path = "/admin/v1/instances";
    expect(await ask("GET", path)).toMatchObject({ status: 401, body: { error: "Unauthorized" } });
    expect((await ask("GET", path, { credential: platformCredential })).status).toBe(401);
    expect((await ask("GET", path, { credential: { ...adminCredential, password: "x" } })).status).toBe(401);
    expect((await ask("GET", path, { credential: adminCredential })).status).toBe(200);
    expect((await ask("GET", "/v2/catalog", { credential: adminCredential })).status).toBe(401);
    expect((await ask("GET", "/v2/catalog", { credential: platformCredential })).status).toBe(200);
  });

  test("a waiting operation runs now, with an entry that says who and why", async () => {
    const laboratory = lab();
    let tries = 0;
    laboratory.behave.provision = () => {
      if (++tries === 1) throw new RetryLater("the host boots", { afterMs: 3_600_000 });
    };
    const broker = await adminLab(laboratory, await newStore());
    const asked = await broker.platform("PUT", "/v2/service_instances/i1?accepts_incomplete=true", provisionBody);
    const { operation } = asked.body;
    await broker.until("i1", operation, ({ state }) => state === "waiting");
    const path = `/instances/i1/operations/${operation}/retry`;
    expect(await broker.admin("POST", path, { reason })).toEqual({ status: 200, body: { operation } });
    expect(await broker.until("i1", operation, hasEnded)).toMatchObject({ state: "succeeded" });
    expect(await operatorEntries(broker, "i1")).toMatchObject([
      { actor: { type: "operator", subject: "ops" }, cause: reason, details: { action: "retry", reason, operation } },
    ]);
    expect(await broker.admin("POST", path, { reason })).toMatchObject({ status: 409 });
  });

  test("what failed begins anew with what it was asked: provision, update, bind, unbind, deprovision", async () => {
    const laboratory = lab();
    const { behave, done } = laboratory;
    const broker = await adminLab(laboratory, await newStore());
    const { platform, admin, until } = broker;
    const retried = async (verb: keyof typeof behave, method: string, path: string, body?: object) => {
      behave[verb] = () => {
        throw new Failed("no");
      };
      const { operation } = (await platform(method, path, body)).body;
      expect(await until("i1", operation, hasEnded)).toMatchObject({ state: "failed", message: "no" });
      delete behave[verb];
      const again = await admin("POST", `/instances/i1/operations/${operation}/retry`, { reason });
      expect(again.status, JSON.stringify(again.body)).toBe(200);
      expect(again.body.operation).not.toBe(operation);
      expect(await until("i1", again.body.operation, hasEnded)).toMatchObject({ state: "succeeded", verb });
      expect(await admin("POST", `/instances/i1/operations/${operation}/retry`, { reason })).toMatchObject({
        status: expect.toSatisfy((status: number) => status === 409 || status === 404),
      });
    };
    const [instance, binding] = ["/v2/service_instances/i1", "/v2/service_instances/i1/service_bindings/b1"];
    const later = "accepts_incomplete=true";
    await retried("provision", "PUT", `${instance}?${later}`, { ...provisionBody, parameters: { size: 3 } });
    expect((await platform("GET", instance)).body.parameters).toEqual({ size: 3 });
    await retried("update", "PATCH", `${instance}?${later}`, { service_id: ids.service, parameters: { size: 9 } });
    expect((await platform("GET", instance)).body.parameters).toEqual({ size: 9 });
    const bindBody = { service_id: ids.service, plan_id: ids.small, parameters: { role: "reader" } };
    await retried("bind", "PUT", `${binding}?${later}`, bindBody);
    expect((await platform("GET", binding)).body.credentials).toMatchObject({ role: "reader" });
    expect((await admin("GET", "/instances/i1")).body.bindings).toBe(1);
    await retried("unbind", "DELETE", `${binding}?${later}&${deletion}`);
    await retried("deprovision", "DELETE", `${instance}?${later}&${deletion}`);
    expect(done.filter((line) => line.startsWith("update")).at(-1)).toBe('update i1 small {"size":9}');
    expect((await platform("DELETE", `${instance}?${deletion}`)).status).toBe(410);
  });

  test("an operation that runs is cancelled, and the platform is told why", async () => {
    const laboratory = lab();
    laboratory.behave.provision = untilStopped;
    const broker = await adminLab(laboratory, await newStore());
    const { platform, admin, until } = broker;
    const asked = await platform("PUT", "/v2/service_instances/i1?accepts_incomplete=true", provisionBody);
    const { operation } = asked.body;
    await until("i1", operation, ({ state, open }) => state === "running" && open.steps === 1);
    const path = `/instances/i1/operations/${operation}/cancel`;
    expect((await admin("POST", path, { reason })).status).toBe(200);
    expect(await until("i1", operation, hasEnded)).toMatchObject({ state: "cancelled" });
    expect((await platform("GET", "/v2/service_instances/i1/last_operation")).body).toMatchObject({
      state: "failed",
      description: expect.stringContaining(reason),
    });
    expect(await operatorEntries(broker, "i1")).toMatchObject([{ details: { action: "cancel", operation, reason } }]);
    expect((await admin("POST", path, { reason })).status).toBe(409);
    expect((await admin("GET", "/instances?phase=failed")).body.items).toMatchObject([{ id: "i1" }]);
  });

  test("many operations are retried or cancelled at once, each with an entry of its own, in pages, and first as a dry run", async () => {
    const laboratory = lab();
    const { behave, done } = laboratory;
    const broker = await adminLab(laboratory, await newStore());
    const { platform, admin, until } = broker;
    const instances = ["i1", "i2", "i3"];
    const ask = async (id: string, plan = ids.small) =>
      (
        await platform("PUT", `/v2/service_instances/${id}?accepts_incomplete=true`, {
          ...provisionBody,
          plan_id: plan,
        })
      ).body.operation as string;
    /** All pages of one. */
    const bulk = async (path: string, body: object) => {
      const items: { instance: string; result: string; goes_on?: string; error?: string }[] = [];
      for (let after = ""; ; ) {
        const { status, body: page } = await admin("POST", `/operations/${path}&limit=1${after}`, { reason, ...body });
        expect(status, JSON.stringify(page)).toBe(200);
        items.push(...page.items);
        if (page.next === null) return items;
        after = `&after=${encodeURIComponent(page.next)}`;
      }
    };
    const resultsOf = (items: readonly { instance: string; result: string }[]) =>
      items.map(({ instance, result }) => `${instance} ${result}`).sort();

    // Those that wait for their next attempt.
    behave.provision = () => {
      throw new RetryLater("no disks", { afterMs: 3_600_000 });
    };
    const waiting = await Promise.all(instances.map((id) => ask(id)));
    const other = await ask("other", ids.large);
    for (const [index, id] of [...instances, "other"].entries())
      await until(id, waiting[index] ?? other, ({ state }) => state === "waiting");
    const which = "retry?service=lab&plan=small";
    expect(resultsOf(await bulk(which, { dry_run: true }))).toEqual(instances.map((id) => `${id} not tried`));
    expect(await operatorEntries(broker, "i1")).toEqual([]);
    expect(await bulk("retry?service=lab&older_than_seconds=3600", {})).toEqual([]);
    // One that is refused does not stop the others.
    expect((await admin("POST", "/services/lab/pause", { reason })).status).toBe(200);
    const refused = await bulk(which, {});
    expect(resultsOf(refused)).toEqual(instances.map((id) => `${id} refused`));
    for (const { error } of refused) expect(error).toContain("paused");
    expect((await admin("POST", "/services/lab/resume", { reason })).status).toBe(200);
    delete behave.provision;
    expect(resultsOf(await bulk(which, {}))).toEqual(instances.map((id) => `${id} done`));
    for (const [index, id] of instances.entries()) {
      await until(id, waiting[index] ?? "", hasEnded);
      expect(await operatorEntries(broker, id)).toMatchObject([
        { actor: { subject: "ops" }, details: { action: "retry", reason, operation: waiting[index] } },
      ]);
    }
    expect(await bulk("cancel?state=waiting", {})).toMatchObject([
      { instance: "other", result: "done", goes_on: null },
    ]);
    await until("other", other, hasEnded);

    // Those that failed, of any verb.
    behave.deprovision = () => {
      throw new Failed("no");
    };
    const deleting = await platform("DELETE", `/v2/service_instances/i1?accepts_incomplete=true&${deletion}`);
    await until("i1", deleting.body.operation, hasEnded);
    const failed = await bulk("retry?state=failed", { dry_run: true });
    expect(resultsOf(failed)).toEqual(["i1 not tried", "other not tried"]);
    delete behave.deprovision;
    const begun = await bulk("retry?state=failed&service=lab", {});
    expect(resultsOf(begun)).toEqual(["i1 done", "other done"]);
    for (const { instance, goes_on } of begun) await until(instance, goes_on ?? "", hasEnded);
    expect(done.filter((line) => line === "deprovision i1")).toHaveLength(2);

    // Without a word about which, nothing is done.
    for (const path of ["retry", "cancel", "retry?state=running", "cancel?state=failed"])
      expect((await admin("POST", `/operations/${path}`, { reason })).status).toBe(400);
    expect((await admin("POST", "/operations/cancel?service=lab", {})).status).toBe(400);
    // What was left empty is not said, and must not mean all.
    for (const empty of ["state=", "older_than_seconds=", "service=", "failing="])
      expect((await admin("POST", `/operations/cancel?${empty}`, { reason })).status).toBe(400);
    expect((await admin("POST", "/operations/cancel?service=lab", { reason, dry_run: "yes" })).status).toBe(400);
  });

  test("a purge forgets an instance and its bindings without a call, and not while an operation is open", async () => {
    const laboratory = lab();
    const broker = await adminLab(laboratory, await newStore());
    const { platform, admin } = broker;
    await broker.provision("i1");
    for (const binding of ["b1", "b2", "b3"]) await broker.bind("i1", binding);
    expect((await admin("POST", "/instances/i1/bindings/b2/purge", { reason })).status).toBe(200);
    expect((await admin("POST", "/instances/i1/bindings/b2/purge", { reason })).status).toBe(404);
    expect((await admin("GET", "/instances/i1")).body.bindings).toBe(2);
    expect((await platform("GET", "/v2/service_instances/i1/service_bindings/b2")).status).toBe(404);
    const held = gate();
    laboratory.behave.update = held.wait;
    const body = { service_id: ids.service, parameters: { size: 2 } };
    const updating = await platform("PATCH", "/v2/service_instances/i1?accepts_incomplete=true", body);
    expect(await admin("POST", "/instances/i1/purge", { reason })).toMatchObject({
      status: 409,
      body: { description: expect.stringContaining(updating.body.operation) },
    });
    held.open();
    await broker.until("i1", updating.body.operation, hasEnded);
    const before = [...laboratory.done];
    expect((await admin("POST", "/instances/i1/purge", { reason })).status).toBe(200);
    expect(laboratory.done).toEqual(before);
    expect((await admin("GET", "/instances/i1/bindings")).body.items).toEqual([]);
    expect((await admin("GET", "/instances/i1")).body).toMatchObject({ phase: "gone", parameters: null });
    expect((await platform("DELETE", `/v2/service_instances/i1?${deletion}`)).status).toBe(410);
    expect((await admin("POST", "/instances/i1/purge", { reason })).status).toBe(404);
    const entries = await operatorEntries(broker, "i1");
    expect(entries.map(({ details }: { details: object }) => details)).toMatchObject([
      { action: "purge", binding: "b2" },
      { action: "purge", bindings: 2 },
      { action: "purge", reason },
    ]);
    await broker.provision("i1");
  });

  test("a forced deletion cancels what runs, calls each function once, and says what it passed over", async () => {
    const laboratory = lab();
    const broker = await adminLab(laboratory, await newStore());
    const { platform, admin, until } = broker;
    await broker.provision("i1");
    await broker.bind("i1", "b1");
    laboratory.behave.update = untilStopped;
    laboratory.behave.unbind = () => {
      throw new RetryLater("not yet", { afterMs: 1_000 });
    };
    laboratory.behave.deprovision = () => {
      throw new Error("no route to host");
    };
    const body = { service_id: ids.service, parameters: { size: 2 } };
    const updating = await platform("PATCH", "/v2/service_instances/i1?accepts_incomplete=true", body);
    await until("i1", updating.body.operation, ({ state }) => state === "running");
    const { operation } = (await admin("POST", "/instances/i1/force-delete", { reason })).body;
    expect(await until("i1", operation, hasEnded)).toMatchObject({
      state: "succeeded",
      passed_over: [
        { call: "unbind b1", error: "not yet" },
        { call: "deprovision", error: "no route to host" },
      ],
    });
    expect(await until("i1", updating.body.operation, hasEnded)).toMatchObject({ state: "cancelled" });
    expect(laboratory.done.filter((line) => /^(unbind|deprovision)/.test(line))).toHaveLength(2);
    // It reads so to the platform, in the list, in the journal and in the log.
    const told = /deleted by force; .*passed over.*: unbind b1, deprovision$/;
    const asked = `/v2/service_instances/i1/last_operation?operation=${operation}`;
    expect((await platform("GET", asked)).body).toMatchObject({ description: expect.stringMatching(told) });
    expect((await admin("GET", "/instances?phase=gone")).body.items).toMatchObject([
      { id: "i1", last_operation: { description: expect.stringMatching(told) } },
    ]);
    expect((await admin("GET", "/instances")).body.items).toEqual([]);
    const settled = (await admin("GET", "/instances/i1/journal")).body.items.find(
      (entry: { kind: string; operation: string }) => entry.kind === "settled" && entry.operation === operation,
    );
    expect(settled.details.passed_over).toEqual(["unbind b1: not yet", "deprovision: no route to host"]);
    expect((await platform("DELETE", `/v2/service_instances/i1?${deletion}`)).status).toBe(410);
    expect(await operatorEntries(broker, "i1")).toMatchObject([
      { details: { action: "force-delete", reason, cancelled: [updating.body.operation] } },
    ]);
    expect((await admin("POST", "/instances/i1/force-delete", { reason })).status).toBe(404);
  });

  test("a forced deletion gives up a function that hangs, and one that waits", async () => {
    const laboratory = lab();
    const broker = await adminLab(laboratory, await newStore());
    const sleeps = (work: Parameters<typeof untilStopped>[0]) => work.sleep("a day", 86_400_000);
    const polls = (work: Parameters<typeof untilStopped>[0]) =>
      work.poll("never", (): null | undefined => undefined, { everyMs: 86_400_000 });
    for (const behaviour of [hang, sleeps, polls]) {
      await broker.provision("i1");
      laboratory.behave.deprovision = behaviour;
      const asked = await broker.admin("POST", "/instances/i1/force-delete", { reason, within_seconds: 0.2 });
      const ended = await broker.until("i1", asked.body.operation, hasEnded);
      expect(ended).toMatchObject({ state: "succeeded", passed_over: [{ call: "deprovision" }] });
    }
  });

  test("a forced deletion that is interrupted goes on in the next process", async () => {
    const laboratory = lab();
    const reopen = await places[place]?.();
    const open = () => reopen?.() as Awaited<ReturnType<typeof newStore>>;
    const first = await adminLab(laboratory, open());
    await first.provision("i1");
    laboratory.behave.deprovision = untilStopped;
    const { operation } = (await first.admin("POST", "/instances/i1/force-delete", { reason })).body;
    await first.until("i1", operation, ({ open: seen }) => seen?.steps === 1);
    await first.served.close({ drainMs: 0 });
    laboratory.behave.deprovision = () => {
      throw new Error("no route to host");
    };
    const second = await adminLab(laboratory, open());
    expect(await second.until("i1", operation, hasEnded)).toMatchObject({
      state: "succeeded",
      passed_over: [{ call: "deprovision", error: "no route to host" }],
    });
    expect(laboratory.done.filter((line) => line.startsWith("deprovision"))).toHaveLength(1);
  });

  test("a purge forgets more bindings than one commit takes", async () => {
    const broker = await adminLab(lab(), await newStore());
    await broker.provision("i1");
    const bindings = Array.from({ length: 205 }, (_, index) => `b${index}`);
    await Promise.all(bindings.map((binding) => broker.bind("i1", binding)));
    const pages: string[] = [];
    for (let after = ""; ; ) {
      const { body } = await broker.admin("GET", `/instances/i1/bindings?limit=500${after}`);
      expect(body.items.length).toBeLessThanOrEqual(100);
      pages.push(...body.items.map(({ id }: { id: string }) => id));
      if (body.next === null) break;
      after = `&after=${encodeURIComponent(body.next)}`;
    }
    expect(new Set(pages)).toEqual(new Set(bindings));
    expect((await broker.admin("POST", "/instances/i1/purge", { reason })).status).toBe(200);
    expect((await broker.admin("GET", "/instances/i1/bindings")).body.items).toEqual([]);
    const entries = await operatorEntries(broker, "i1");
    expect(entries.map(({ details }: { details: { bindings?: number } }) => details.bindings)).toEqual([
      200,
      5,
      undefined,
    ]);
  });

  test("an instance of a service that is not offered any more can be deleted by force", async () => {
    const laboratory = lab();
    const reopen = await places[place]?.();
    const open = () => reopen?.() as Awaited<ReturnType<typeof newStore>>;
    const broker = await adminLab(laboratory, open());
    await broker.provision("i1");
    await broker.bind("i1", "b1");
    await broker.served.close({ drainMs: 0 });
    const other = lab({ id: "other", plans: { only: { id: "other-only", description: "Another" } } });
    const again = await adminLab(other, open());
    expect((await again.admin("GET", "/instances/i1")).body.service).toEqual({ id: ids.service, name: null });
    const { operation } = (await again.admin("POST", "/instances/i1/force-delete", { reason })).body;
    const ended = await again.until("i1", operation, hasEnded);
    expect(ended).toMatchObject({ state: "succeeded", passed_over: [{ error: expect.stringContaining("service") }] });
    expect((await again.admin("GET", "/instances/i1/bindings")).body.items).toEqual([]);
    expect(laboratory.done.some((line) => line.startsWith("deprovision"))).toBe(false);
  });

  test("a paused service takes orders that wait, refuses who cannot wait, and goes on after a restart and a resume", async () => {
    const laboratory = lab();
    const reopen = await places[place]?.();
    const store = reopen?.() as Awaited<ReturnType<typeof newStore>>;
    const first = await adminLab(laboratory, store);
    expect(await first.admin("POST", "/services/lab/pause", { reason })).toMatchObject({
      status: 200,
      body: { id: ids.service, name: "lab", paused: { reason, by: "ops" }, was_paused: false },
    });
    expect((await first.admin("POST", "/services/lab/pause", { reason: "once more" })).body).toMatchObject({
      paused: { reason, by: "ops" },
      was_paused: true,
    });
    const path = "/v2/service_instances/i1";
    expect(await first.platform("PUT", path, provisionBody)).toMatchObject({
      status: 422,
      body: { description: expect.stringContaining("paused") },
    });
    const asked = await first.platform("PUT", `${path}?accepts_incomplete=true`, provisionBody);
    expect(asked.status).toBe(202);
    const { operation } = asked.body;
    expect((await first.platform("GET", `${path}/last_operation`)).body).toMatchObject({
      state: "in progress",
      description: expect.stringContaining("paused"),
    });
    expect((await first.admin("GET", "/operations")).body.items).toMatchObject([{ id: operation, state: "paused" }]);
    expect((await first.admin("POST", `/instances/i1/operations/${operation}/retry`, { reason })).status).toBe(409);
    await first.served.close({ drainMs: 0 });

    const second = await adminLab(laboratory, reopen?.() as typeof store);
    expect((await second.admin("GET", "/services")).body.items).toMatchObject([{ paused: { reason, by: "ops" } }]);
    expect((await second.admin("GET", "/operations")).body.items).toMatchObject([{ id: operation, state: "paused" }]);
    expect(laboratory.done).toEqual([]);
    expect((await second.admin("POST", `/services/${ids.service}/resume`, { reason })).status).toBe(200);
    await second.until("i1", operation, hasEnded);
    expect(laboratory.done).toEqual(["provision i1"]);
    expect((await second.admin("POST", `/services/${ids.service}/resume`, { reason })).status).toBe(409);
    expect((await second.admin("POST", "/services/none/pause", { reason })).status).toBe(404);
    // What is paused is kept beside the instances, and is none of them.
    expect((await second.admin("GET", "/instances")).body.items.map(({ id }: { id: string }) => id)).toEqual(["i1"]);
  });

  test("a forced deletion in a paused service is refused, instead of waiting unseen", async () => {
    const broker = await adminLab(lab(), await newStore());
    await broker.provision("i1");
    expect((await broker.admin("POST", "/services/lab/pause", { reason })).status).toBe(200);
    const refusal = await broker.admin("POST", "/instances/i1/force-delete", { reason });
    expect(refusal).toMatchObject({ status: 409, body: { description: expect.stringMatching(/paused; resume it/) } });
    expect((await broker.admin("POST", "/services/lab/resume", { reason })).status).toBe(200);
    expect((await broker.admin("POST", "/instances/i1/force-delete", { reason })).status).toBe(200);
  });

  test("an instance that was set aside is listed and restored", async () => {
    const broker = await adminLab(lab(), await newStore());
    await broker.provision("i1");
    expect((await broker.admin("GET", "/set-aside")).body).toEqual({ items: [], next: null });
    await broker.store.setAside("/i1");
    const listed = await broker.admin("GET", "/set-aside");
    expect(listed.body.items).toEqual([{ platform: "", instance: "i1" }]);
    expect((await broker.admin("POST", "/instances/i1/restore", { reason })).status).toBe(200);
    expect((await broker.admin("GET", "/set-aside")).body.items).toEqual([]);
    expect(await operatorEntries(broker, "i1")).toMatchObject([{ details: { action: "restore", reason } }]);
    expect((await broker.admin("POST", "/instances/none/restore", { reason })).status).toBe(404);
  });

  test("nothing secret is shown: parameters, credentials, state and results are masked", async () => {
    const secret = (what: string) => `SECRET-${what}`;
    const laboratory = lab({
      async provision(operation: Parameters<NonNullable<ReturnType<typeof lab>["service"]["provision"]>>[0]) {
        await operation.step("make", () => ({ password: secret("step") }));
        return { state: { token: secret("state") } };
      },
    } as never);
    laboratory.behave.bind = () => ({
      credentials: { password: secret("credentials") },
      state: { key: secret("binding-state") },
    });
    const broker = await adminLab(laboratory, await newStore());
    const { admin, platform } = broker;
    const provisioned = await broker.provision("i1", { name: "secretname" });
    await broker.bind("i1", "b1");
    const update = { service_id: ids.service, parameters: { name: "secretother" } };
    const updating = await platform("PATCH", "/v2/service_instances/i1?accepts_incomplete=true", update);
    await broker.until("i1", updating.body.operation, hasEnded);
    const seen = [
      await admin("GET", "/instances"),
      await admin("GET", "/instances/i1"),
      await admin("GET", "/instances/i1/bindings"),
      await admin("GET", "/instances/i1/journal?limit=500"),
      await admin("GET", `/instances/i1/operations/${provisioned}`),
      await admin("GET", `/instances/i1/operations/${updating.body.operation}`),
    ];
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(JSON.stringify(seen)).not.toMatch(/secret/i);
    expect(seen[1]?.body).toMatchObject({ parameters: { name: "***" }, state: { token: "***" } });
    expect(seen[2]?.body.items).toMatchObject([{ id: "b1", credentials: "***", state: { key: "***" } }]);
    expect(seen[4]?.body).toMatchObject({ verb: "provision", steps: [{ name: "make", result_bytes: 26 }] });
  });

  test("lists come in pages, by service, plan, platform and phase", async () => {
    const laboratory = lab();
    const broker = await adminLab(laboratory, await newStore());
    const { admin, platform } = broker;
    for (const id of ["i1", "i2", "i3"]) await broker.provision(id);
    const large = { ...provisionBody, plan_id: ids.large };
    await platform("PUT", "/v2/service_instances/i4", large);
    const held = gate();
    laboratory.behave.provision = held.wait;
    const asked = await platform("PUT", "/v2/service_instances/i5?accepts_incomplete=true", provisionBody);
    const idsOf = async (query: string) => {
      const seen: string[] = [];
      for (let after = ""; ; ) {
        const { status, body } = await admin("GET", `/instances?limit=1&${query}${after}`);
        expect(status, JSON.stringify(body)).toBe(200);
        seen.push(...body.items.map(({ id }: { id: string }) => id));
        if (body.next === null) return seen;
        after = `&after=${encodeURIComponent(body.next)}`;
      }
    };
    expect(await idsOf("")).toEqual(["i1", "i2", "i3", "i4", "i5"]);
    expect(await idsOf("service=lab")).toEqual(["i1", "i2", "i3", "i4", "i5"]);
    expect(await idsOf("service=none")).toEqual([]);
    expect(await idsOf(`plan=${ids.large}`)).toEqual(["i4"]);
    expect(await idsOf("phase=creating")).toEqual(["i5"]);
    expect(await idsOf("phase=ready")).toEqual(["i1", "i2", "i3", "i4"]);
    expect(await idsOf("phase=failed")).toEqual([]);
    expect(await idsOf("platform=cf")).toEqual([]);
    const { operation } = asked.body;
    expect((await admin("GET", "/operations?service=lab")).body.items).toMatchObject([
      { id: operation, instance: "i5", verb: "provision", state: "running" },
    ]);
    expect((await admin("GET", "/operations?older_than_seconds=3600")).body.items).toEqual([]);
    expect((await admin("GET", "/operations?failing=true")).body.items).toEqual([]);
    held.open();
    await broker.until("i5", operation, hasEnded);
    expect((await admin("GET", "/operations")).body.items).toEqual([]);
    const first = (await admin("GET", "/instances/i1/journal?limit=2")).body;
    const second = (await admin("GET", `/instances/i1/journal?limit=2&after=${first.next}`)).body;
    expect([...first.items, ...second.items].map(({ kind }: { kind: string }) => kind)).toEqual([
      "settled",
      "step",
      "accepted",
    ]);
  });

  test("bad input is a 4xx that says what is wrong, and changes nothing", async () => {
    const laboratory = lab();
    const broker = await adminLab(laboratory, await newStore());
    const { admin, ask } = broker;
    const operation = await broker.provision("i1");
    const post = (path: string, body: object | string, headers = {}) =>
      ask("POST", `/admin/v1${path}`, { body, credential: adminCredential, headers });
    const wrong = [
      await post("/instances/i1/purge", {}),
      await post("/instances/i1/purge", { reason: "  " }),
      await post("/instances/i1/purge", { reason: 7 }),
      await post("/instances/i1/purge", { reason: "x".repeat(1_001) }),
      await post("/instances/i1/purge", { reason: "a\u0000b" }),
      await post("/instances/i1/purge", "{"),
      await post("/instances/i1/purge", "[]"),
      await post("/instances/i1/purge", { reason }, { "content-type": "text/plain" }),
      await post("/instances/i1/force-delete", { reason, within_seconds: -1 }),
      await post("/instances/i1/force-delete", { reason, within_seconds: "1" }),
      await admin("GET", "/instances?limit=0"),
      await admin("GET", "/instances?limit=501"),
      await admin("GET", "/instances?phase=sleeping"),
      await admin("GET", "/instances?phase=creating&after=nonsense"),
      await admin("GET", "/operations?after=[1]"),
      await admin("GET", "/operations?older_than_seconds=never"),
      await admin("GET", "/instances/i1/journal?after=x"),
      await admin("GET", "/instances/%00"),
      await admin("GET", "/instances/%ff"),
      await admin("GET", `/instances/${"x".repeat(401)}`),
    ];
    for (const [index, { status, body }] of wrong.entries()) {
      expect(status, `${index}: ${JSON.stringify(body)}`).toBe(400);
      expect(body.description).toMatch(/\S/);
    }
    expect((await post("/instances/i1/purge", { reason, pad: "x".repeat(70_000) })).status).toBe(413);
    const missing = [
      await admin("GET", ""),
      await admin("GET", "/nothing"),
      await admin("GET", "/instances/none"),
      await admin("GET", "/instances/none/bindings"),
      await admin("GET", "/instances/none/journal"),
      await admin("GET", "/instances/i1/operations/1-none"),
      await admin("GET", "/instances/i1/operations/..%2f"),
      await post("/instances/none/purge", { reason }),
      await post("/instances/i1/operations/1-none/retry", { reason }),
    ];
    for (const [index, { status }] of missing.entries()) expect(status, String(index)).toBe(404);
    expect(await admin("GET", "/instances/i1/purge")).toMatchObject({ status: 405 });
    expect(await admin("DELETE", "/instances/i1")).toMatchObject({ status: 405 });
    expect((await post("/instances/i1/operations/1-none/cancel", { reason })).status).toBe(409);
    expect((await post(`/instances/i1/operations/${operation}/cancel`, { reason })).status).toBe(409);
    expect((await admin("GET", "/instances/i1")).body).toMatchObject({ phase: "ready" });
    expect(await operatorEntries(broker, "i1")).toEqual([]);
  });
});

test("without admin credentials there is no admin API", async () => {
  const store = (await places.memory?.())?.();
  if (store === undefined) throw new Error("there is always a memory store");
  const { ask } = await adminLab(lab(), store, { admin: undefined as never });
  expect((await ask("GET", "/admin/v1/instances", { credential: platformCredential })).status).toBe(404);
  expect((await ask("GET", "/admin/v1/instances", { credential: adminCredential })).status).toBe(401);
});

test("an admin credential that is a platform's, too, is refused at the start", async () => {
  const store = (await places.memory?.())?.();
  if (store === undefined) throw new Error("there is always a memory store");
  const shared = { admin: { credentials: [platformCredential] } };
  await expect(adminLab(lab(), store, shared)).rejects.toThrow(/must not be one of a platform/);
});

test("a request that the author refused with a 4xx leaves nothing to retry", async () => {
  const store = (await places.memory?.())?.();
  if (store === undefined) throw new Error("there is always a memory store");
  const refusing = lab({
    async provision() {
      throw new BrokerError("bad-request", "not like this");
    },
  } as never);
  const broker = await adminLab(refusing, store);
  const operation = await broker.provision("i1");
  const again = await broker.admin("POST", `/instances/i1/operations/${operation}/retry`, { reason });
  expect(again).toMatchObject({ status: 409, body: { description: expect.stringContaining("gone") } });
});
