import { describe, expect, test } from "vitest";
import { type Answered, BrokerAnswerError, type Client, createClient, receivedOf } from "../src/client/index.js";
import {
  type AnswerClass,
  answerClasses,
  type Call,
  type ClassifiedAnswer,
  classify,
  type NextStep,
  orphanOfFailedOperation,
  type Received,
} from "../src/index.js";
import { brokerThat, type Reaction } from "./broker-double.js";

type Taken = Pick<ClassifiedAnswer, "class" | "orphan">;

const answered = (status: number, more: Partial<Received & { kind: "answer" }> = {}): Received => ({
  kind: "answer",
  status,
  wellFormed: true,
  ...more,
});
const malformed = (status: number): Received => answered(status, { wellFormed: false });
const failed = (error: string): Received => answered(422, { error });
const lost: Received = { kind: "lost" };
const notSent: Received = { kind: "not sent" };
const changes: readonly Call[] = ["provision", "update", "deprovision", "bind", "unbind"];
const reads: readonly Call[] = ["fetch", "catalog"];

function taken(call: Call, received: Received): Taken {
  const { class: found, orphan } = classify(call, received);
  return { class: found, orphan };
}

/** The table of the platform's answers, row by row: what each class is of, and what follows for a create, an update and a delete. */
const rows: readonly (readonly [
  row: AnswerClass,
  of: readonly Received[],
  next: Readonly<Partial<Record<Call, NextStep>>>,
])[] = [
  [
    "done",
    [answered(200)],
    { provision: "succeed", bind: "succeed", update: "succeed", deprovision: "succeed", unbind: "succeed" },
  ],
  ["done", [answered(201)], { provision: "succeed", bind: "succeed", update: "succeed" }],
  ["unknown", [answered(201), malformed(201)], { deprovision: "resolve", unbind: "resolve" }],
  ["done", [answered(410)], { deprovision: "succeed", unbind: "succeed" }],
  [
    "running",
    [answered(202)],
    { provision: "poll", bind: "poll", update: "poll", deprovision: "poll", unbind: "poll" },
  ],
  [
    "rejected",
    [...[400, 403, 405, 406, 411, 412, 413, 415, 418, 451, 499].map((status) => answered(status)), answered(422)],
    { provision: "fail", bind: "fail", update: "fail", deprovision: "keep", unbind: "keep" },
  ],
  [
    "rejected",
    [failed("Unprocessable"), failed("concurrencyerror"), failed("")],
    { provision: "fail", bind: "fail", update: "fail", deprovision: "keep", unbind: "keep" },
  ],
  ["rejected", [answered(404), answered(410)], { provision: "fail", bind: "fail", update: "fail" }],
  ["not found", [answered(404)], { deprovision: "delete again", unbind: "delete again" }],
  [
    "conflict",
    [answered(409), answered(409, { error: "ConcurrencyError" }), malformed(409)],
    { provision: "fail", bind: "fail", update: "fail", deprovision: "send again", unbind: "send again" },
  ],
  [
    "busy",
    [failed("ConcurrencyError"), answered(423), answered(429), answered(408), answered(503, { retryAfterMs: 0 })],
    { provision: "wait", bind: "wait", update: "wait", deprovision: "wait", unbind: "wait", fetch: "wait" },
  ],
  ["needs refresh", [failed("MaintenanceInfoConflict")], { provision: "refresh catalog", update: "refresh catalog" }],
  ["rejected", [failed("MaintenanceInfoConflict")], { bind: "fail", deprovision: "keep", unbind: "keep" }],
  [
    "needs async",
    [failed("AsyncRequired")],
    { provision: "fail", bind: "fail", update: "fail", deprovision: "keep", unbind: "keep" },
  ],
  ["needs app", [failed("RequiresApp")], { bind: "fail" }],
  ["rejected", [failed("RequiresApp")], { provision: "fail", update: "fail", deprovision: "keep", unbind: "keep" }],
  [
    "unauthorized",
    [answered(401), malformed(401)],
    {
      provision: "replace credentials",
      bind: "replace credentials",
      update: "replace credentials",
      deprovision: "replace credentials",
      fetch: "replace credentials",
      catalog: "replace credentials",
    },
  ],
  [
    "not sent",
    [notSent],
    { provision: "send again", bind: "send again", update: "send again", unbind: "send again", catalog: "send again" },
  ],
  [
    "unknown",
    [
      lost,
      ...[500, 501, 502, 503, 504, 599].map((status) => answered(status)),
      ...[203, 204, 206, 299].map((status) => answered(status)),
      malformed(201),
      malformed(202),
      ...[301, 302, 303, 304, 307, 308].map((status) => answered(status)),
      ...[0, 100, 600, 999].map((status) => answered(status)),
    ],
    { provision: "resolve", bind: "resolve", update: "resolve", deprovision: "resolve", unbind: "resolve" },
  ],
  [
    "malformed 200",
    [malformed(200)],
    { provision: "fetch", bind: "fetch", update: "fail", deprovision: "delete again", unbind: "delete again" },
  ],
];

describe("the classes of answers", () => {
  test.each(rows)("%s: %j", (row, received, next) => {
    for (const one of received) {
      for (const [call, step] of Object.entries(next)) {
        const found = classify(call as Call, one);
        expect({ class: found.class, next: found.next }, `${call} ${JSON.stringify(one)}`).toEqual({
          class: row,
          next: step,
        });
      }
    }
  });

  test("every class has a row", () => {
    expect(new Set(rows.map(([row]) => row))).toEqual(new Set(Object.keys(answerClasses)));
  });

  test("what only reads can be sent again", () => {
    for (const call of reads) {
      expect(classify(call, answered(200)).next).toBe("succeed");
      for (const received of [malformed(200), answered(202), answered(500), answered(302), lost, notSent])
        expect(classify(call, received).next, JSON.stringify(received)).toBe("send again");
      expect(classify(call, answered(429)).next).toBe("wait");
      expect(classify(call, answered(404)).next).toBe("fail");
      expect(classify(call, failed("AsyncRequired")).class).toBe("rejected");
    }
    expect(classify("catalog", answered(304)).class).toBe("done");
    expect(classify("fetch", answered(304)).class).toBe("unknown");
  });

  test("what a poll's answer means is not in the table: it hangs on what is polled", () => {
    // @ts-expect-error: waitForInstance and waitForBinding know it; a 410 is the end of a delete, and nothing else.
    const call: Call = "last_operation";
    expect([...changes, ...reads]).not.toContain(call);
  });

  test("a broker that is busy after an attempt was lost may be busy with that attempt: it is polled", () => {
    for (const call of changes) {
      expect(classify(call, failed("ConcurrencyError"), { lostBefore: true }).next).toBe("poll");
      for (const status of [408, 423, 429])
        expect(classify(call, answered(status), { lostBefore: true }).next).toBe("wait");
    }
  });

  test("what cannot be fetched while it is being changed can be fetched later, lost attempt or not", () => {
    for (const lostBefore of [false, true])
      expect(classify("fetch", failed("ConcurrencyError"), { lostBefore })).toEqual({
        class: "busy",
        next: "wait",
        orphan: null,
      });
  });

  test("a 409 and a request that was not sent never make an orphan: it would be something that is in use", () => {
    for (const call of [...changes, ...reads]) {
      expect(classify(call, answered(409)).orphan).toBeNull();
      expect(classify(call, notSent).orphan).toBeNull();
    }
  });
});

const success = (cls: AnswerClass = "done"): Taken => ({ class: cls, orphan: null });
const failure = (orphan: Taken["orphan"] = null, cls: AnswerClass = "unknown"): Taken => ({ class: cls, orphan });

describe("the orphan-mitigation table", () => {
  test("P-ORPH-03: 200, 201 and 202 with what belongs into them are success", () => {
    for (const call of changes) {
      expect(taken(call, answered(200)), call).toEqual(success());
      expect(taken(call, answered(202)), call).toEqual(success("running"));
    }
    for (const call of ["provision", "update", "bind"] as const)
      expect(taken(call, answered(201)), call).toEqual(success());
  });

  test("P-DEL-03, P-ORPH-03: 201 to a delete is no success, for nothing is created by it; nothing is mitigated either", () => {
    for (const call of ["deprovision", "unbind"] as const) expect(taken(call, answered(201))).toEqual(failure());
  });

  test("P-ORPH-04: 200 with something else is a failure, and nothing is mitigated", () => {
    for (const call of changes) expect(taken(call, malformed(200))).toEqual(failure(null, "malformed 200"));
  });

  test("P-ORPH-05: a provision or deprovision that failed later makes an orphan of the instance", () => {
    expect(orphanOfFailedOperation("provision")).toBe("instance");
    expect(orphanOfFailedOperation("deprovision")).toBe("instance");
    expect(orphanOfFailedOperation("update")).toBeNull();
  });

  test("P-ORPH-06: a bind or unbind that failed later makes one of the binding", () => {
    expect(orphanOfFailedOperation("bind")).toBe("binding");
    expect(orphanOfFailedOperation("unbind")).toBe("binding");
  });

  test("P-ORPH-07, P-ORPH-08: 201 or 202 with something else makes an orphan of what was to be created", () => {
    for (const status of [201, 202]) {
      expect(taken("provision", malformed(status))).toEqual(failure("instance"));
      expect(taken("bind", malformed(status))).toEqual(failure("binding"));
      for (const call of ["update", "deprovision", "unbind"] as const) {
        expect(taken(call, malformed(status))).toEqual(failure());
      }
    }
  });

  test("P-ORPH-09, P-ORPH-10, P-ORPH-11: any other 2xx is a failure, mitigated except for updates", () => {
    for (const status of [203, 204, 206, 299]) {
      for (const call of ["provision", "deprovision"] as const) {
        expect(taken(call, answered(status))).toEqual(failure("instance"));
      }
      for (const call of ["bind", "unbind"] as const) expect(taken(call, answered(status))).toEqual(failure("binding"));
      expect(taken("update", answered(status))).toEqual(failure());
    }
  });

  test("P-ORPH-12: 408 is a failure on the way there, and nothing is mitigated", () => {
    for (const call of changes) expect(taken(call, answered(408))).toEqual(failure(null, "busy"));
  });

  test("P-ORPH-13, P-CONC-01, P-VER-02: after any other 4xx nothing is mitigated", () => {
    for (const call of ["provision", "update", "bind"] as const) {
      for (const status of [400, 404, 410, 412, 413, 422]) {
        expect(taken(call, answered(status)), `${call} ${status}`).toEqual(failure(null, "rejected"));
      }
      for (const status of [401, 409, 423, 429]) expect(taken(call, answered(status)).orphan).toBeNull();
      expect(taken(call, failed("ConcurrencyError"))).toEqual(failure(null, "busy"));
    }
  });

  test("P-DEL-04: 410 to a delete is its success", () => {
    expect(taken("deprovision", answered(410))).toEqual(success());
    expect(taken("unbind", answered(410))).toEqual(success());
  });

  test("P-ORPH-14, P-ORPH-15, P-ORPH-11: a 5xx is the broker's failure, mitigated except for updates", () => {
    for (const status of [500, 502, 503, 504, 599]) {
      expect(taken("provision", answered(status))).toEqual(failure("instance"));
      expect(taken("deprovision", answered(status))).toEqual(failure("instance"));
      expect(taken("bind", answered(status))).toEqual(failure("binding"));
      expect(taken("unbind", answered(status))).toEqual(failure("binding"));
      expect(taken("update", answered(status))).toEqual(failure());
    }
  });

  test("P-ORPH-14: nor is a 503 with Retry-After forgotten, if the platform does not ask again", () => {
    expect(taken("provision", answered(503, { retryAfterMs: 1 }))).toEqual(failure("instance", "busy"));
  });

  test("P-ORPH-16, P-ORPH-17, P-ORPH-18: no answer makes an orphan of what was to be created, and of nothing else", () => {
    expect(taken("provision", lost)).toEqual(failure("instance"));
    expect(taken("bind", lost)).toEqual(failure("binding"));
    for (const call of ["update", "deprovision", "unbind", ...reads] as const) {
      expect(taken(call, lost)).toEqual(failure());
    }
  });

  test("P-FETCH-03, P-ORPH-13: reading never makes an orphan", () => {
    for (const call of reads) {
      for (const status of [200, 204, 404, 410, 500]) expect(classify(call, answered(status)).orphan).toBeNull();
      expect(classify(call, malformed(200)).orphan).toBeNull();
    }
  });
});

const request = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "g" };
const ids = { serviceId: "s", planId: "p" };

const calls: Readonly<Partial<Record<Call, (client: Client) => Promise<Answered<unknown>>>>> = {
  provision: (client) => client.provision("i", request),
  update: (client) => client.update("i", { service_id: "s" }),
  deprovision: (client) => client.deprovision("i", ids),
  bind: (client) => client.bind("i", "b", { service_id: "s", plan_id: "p" }),
  unbind: (client) => client.unbind("i", "b", ids),
};

/** What a platform makes of a call through the client. */
async function classOf(call: Call, reaction: Reaction): Promise<Taken> {
  const { url } = await brokerThat(reaction);
  const client = createClient({ url, timeoutMs: 3_000 });
  const came = await calls[call]?.(client).catch((error: unknown) => {
    if (error instanceof BrokerAnswerError) return error;
    throw error;
  });
  if (came === undefined) throw new Error(`nothing is asked by ${call}`);
  return taken(call, receivedOf(came));
}

describe("through the client, against a real server", () => {
  test("P-ORPH-03, P-EXT-01: an answer with unknown fields is success", async () => {
    expect(await classOf("provision", { status: 201, body: { x_mine: 1, dashboard_url: null } })).toEqual(success());
    expect(await classOf("bind", { status: 202, body: { operation: "op", x: [] } })).toEqual(success("running"));
    expect(await classOf("deprovision", { status: 200, body: {} })).toEqual(success());
    expect(await classOf("deprovision", { status: 201, body: {} })).toEqual(failure());
  });

  test.each([
    ["no JSON", "<html>"],
    ["nothing", ""],
    ["a list", "[]"],
    ["a text", '"ok"'],
    ["half an object", '{"operation":'],
  ])("P-ORPH-04, P-ORPH-07, P-ORPH-08: %s for a body", async (_, body) => {
    expect(await classOf("provision", { status: 200, body })).toEqual(failure(null, "malformed 200"));
    expect(await classOf("provision", { status: 201, body })).toEqual(failure("instance"));
    expect(await classOf("provision", { status: 202, body })).toEqual(failure("instance"));
    expect(await classOf("bind", { status: 201, body })).toEqual(failure("binding"));
    expect(await classOf("update", { status: 202, body })).toEqual(failure());
  });

  test("P-ORPH-07, P-ORPH-08: an operation that is no text makes a 202 malformed", async () => {
    for (const operation of [1, {}, ["op"], true]) {
      const { url } = await brokerThat({ status: 202, body: { operation } });
      const answer = createClient({ url }).provision("i", request);
      await expect(answer).rejects.toMatchObject({ status: 202, message: expect.stringContaining("operation") });
      expect(await classOf("provision", { status: 202, body: { operation } })).toEqual(failure("instance"));
      expect(await classOf("bind", { status: 202, body: { operation } })).toEqual(failure("binding"));
    }
  });

  test("P-ORPH-09, P-ORPH-13, P-ORPH-14: other answers", async () => {
    expect(await classOf("provision", { status: 204 })).toEqual(failure("instance"));
    expect(await classOf("provision", { status: 422, body: { error: "AsyncRequired" } })).toEqual(
      failure(null, "needs async"),
    );
    expect(await classOf("unbind", { status: 503, body: "down" })).toEqual(failure("binding"));
    expect(await classOf("unbind", { status: 410, body: "" })).toEqual(success());
  });

  test("P-ORPH-16, P-ORPH-17, P-ORPH-18: no answer in time, a connection that breaks, an answer that never ends", async () => {
    const silent: Reaction = () => undefined;
    const broken: Reaction = (response) => response.destroy();
    const endless: Reaction = (response) => void response.writeHead(201).write("{");
    for (const reaction of [silent, broken, endless]) {
      expect(await classOf("provision", reaction)).toEqual(failure("instance"));
      expect(await classOf("bind", reaction)).toEqual(failure("binding"));
      expect(await classOf("deprovision", reaction)).toEqual(failure());
    }
  });
});
