import { describe, expect, test } from "vitest";
import { BrokerAnswerError, type Client, createClient } from "../src/client/index.js";
import { type AnswerClass, type Call, classify, orphanOfFailedOperation, type Received } from "../src/index.js";
import { brokerThat, type Reaction } from "./broker-double.js";

const answered = (status: number, wellFormed = true): Received => ({ kind: "answer", status, wellFormed });
const success: AnswerClass = { result: "success", orphan: null };
const failure = (orphan: AnswerClass["orphan"] = null): AnswerClass => ({ result: "failure", orphan });
const rejected: AnswerClass = { result: "rejected", orphan: null };
const changes: readonly Call[] = ["provision", "update", "deprovision", "bind", "unbind"];

describe("the orphan-mitigation table", () => {
  test("P-ORPH-03: 200, 201 and 202 with what belongs into them are success", () => {
    for (const call of changes) {
      for (const status of [200, 201, 202])
        expect(classify(call, answered(status)), `${call} ${status}`).toEqual(success);
    }
  });

  test("P-ORPH-04: 200 with something else is a failure, and nothing is mitigated", () => {
    for (const call of changes) expect(classify(call, answered(200, false))).toEqual(failure());
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
      expect(classify("provision", answered(status, false))).toEqual(failure("instance"));
      expect(classify("bind", answered(status, false))).toEqual(failure("binding"));
      for (const call of ["update", "deprovision", "unbind"] as const) {
        expect(classify(call, answered(status, false))).toEqual(failure());
      }
    }
  });

  test("P-ORPH-09, P-ORPH-10, P-ORPH-11: any other 2xx is a failure, mitigated except for updates", () => {
    for (const status of [203, 204, 206, 299]) {
      for (const call of ["provision", "deprovision"] as const) {
        expect(classify(call, answered(status))).toEqual(failure("instance"));
      }
      for (const call of ["bind", "unbind"] as const)
        expect(classify(call, answered(status))).toEqual(failure("binding"));
      expect(classify("update", answered(status))).toEqual(failure());
    }
  });

  test("P-ORPH-12: 408 is a failure on the way there, and nothing is mitigated", () => {
    for (const call of changes) expect(classify(call, answered(408))).toEqual(failure());
  });

  test("P-ORPH-13, P-CONC-01, P-VER-02: any other 4xx is a rejection, and nothing is mitigated", () => {
    for (const call of ["provision", "update", "bind"] as const) {
      for (const status of [400, 401, 404, 409, 410, 412, 413, 422, 429]) {
        expect(classify(call, answered(status)), `${call} ${status}`).toEqual(rejected);
      }
    }
  });

  test("P-DEL-04: 410 to a delete is its success", () => {
    expect(classify("deprovision", answered(410))).toEqual(success);
    expect(classify("unbind", answered(410))).toEqual(success);
  });

  test("P-ORPH-14, P-ORPH-15, P-ORPH-11: a 5xx is the broker's failure, mitigated except for updates", () => {
    for (const status of [500, 502, 503, 504, 599]) {
      expect(classify("provision", answered(status))).toEqual(failure("instance"));
      expect(classify("deprovision", answered(status))).toEqual(failure("instance"));
      expect(classify("bind", answered(status))).toEqual(failure("binding"));
      expect(classify("unbind", answered(status))).toEqual(failure("binding"));
      expect(classify("update", answered(status))).toEqual(failure());
    }
  });

  test("P-ORPH-16, P-ORPH-17, P-ORPH-18: no answer makes an orphan of what was to be created, and of nothing else", () => {
    expect(classify("provision", { kind: "timeout" })).toEqual(failure("instance"));
    expect(classify("bind", { kind: "timeout" })).toEqual(failure("binding"));
    for (const call of ["update", "deprovision", "unbind", "last_operation", "fetch", "catalog"] as const) {
      expect(classify(call, { kind: "timeout" })).toEqual(failure());
    }
  });

  test("P-FETCH-03, P-ORPH-13: reading never makes an orphan", () => {
    for (const call of ["last_operation", "fetch", "catalog"] as const) {
      for (const status of [200, 204, 404, 410, 500]) expect(classify(call, answered(status)).orphan).toBeNull();
      expect(classify(call, answered(200)).result).toBe("success");
      expect(classify(call, answered(200, false)).result).toBe("failure");
    }
  });
});

const request = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "g" };
const ids = { serviceId: "s", planId: "p" };

const calls: Readonly<Partial<Record<Call, (client: Client) => Promise<{ readonly status: number }>>>> = {
  provision: (client) => client.provision("i", request),
  update: (client) => client.update("i", { service_id: "s" }),
  deprovision: (client) => client.deprovision("i", ids),
  bind: (client) => client.bind("i", "b", { service_id: "s", plan_id: "p" }),
  unbind: (client) => client.unbind("i", "b", ids),
};

/** What a platform makes of a call through the client. */
async function classOf(call: Call, reaction: Reaction): Promise<AnswerClass> {
  const { url } = await brokerThat(reaction);
  const client = createClient({ url, timeoutMs: 3_000 });
  try {
    const answer = await calls[call]?.(client);
    return classify(call, answered(answer?.status ?? 0));
  } catch (error) {
    if (!(error instanceof BrokerAnswerError)) throw error;
    if (error.status === null) return classify(call, { kind: "timeout" });
    return classify(call, answered(error.status, error.body !== undefined));
  }
}

describe("through the client, against a real server", () => {
  test("P-ORPH-03, P-EXT-01: an answer with unknown fields is success", async () => {
    expect(await classOf("provision", { status: 201, body: { x_mine: 1, dashboard_url: null } })).toEqual(success);
    expect(await classOf("bind", { status: 202, body: { operation: "op", x: [] } })).toEqual(success);
    expect(await classOf("deprovision", { status: 200, body: {} })).toEqual(success);
  });

  test.each([
    ["no JSON", "<html>"],
    ["nothing", ""],
    ["a list", "[]"],
    ["a text", '"ok"'],
    ["half an object", '{"operation":'],
  ])("P-ORPH-04, P-ORPH-07, P-ORPH-08: %s for a body", async (_, body) => {
    expect(await classOf("provision", { status: 200, body })).toEqual(failure());
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
    expect(await classOf("provision", { status: 422, body: { error: "AsyncRequired" } })).toEqual(rejected);
    expect(await classOf("unbind", { status: 503, body: "down" })).toEqual(failure("binding"));
    expect(await classOf("unbind", { status: 410, body: "" })).toEqual(success);
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
