import { describe, expect, test } from "vitest";
import { BrokerAnswerError, createClient } from "../src/client/index.js";
import { parseRetryAfter } from "../src/client/retry-after.js";
import { brokerThat } from "./broker-double.js";

const now = () => Date.UTC(2030, 0, 1);
const request = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "g" };
const ids = { serviceId: "s", planId: "p" };

describe("Retry-After", () => {
  test("P-POLL-08: seconds", () => {
    expect(parseRetryAfter("120", now)).toBe(120_000);
    expect(parseRetryAfter(" 3 ", now)).toBe(3_000);
    expect(parseRetryAfter("0", now)).toBe(0);
  });

  test("P-POLL-08: each of the three forms that a date has in HTTP", () => {
    expect(parseRetryAfter("Tue, 01 Jan 2030 00:01:00 GMT", now)).toBe(60_000);
    expect(parseRetryAfter("Tuesday, 01-Jan-30 00:01:00 GMT", now)).toBe(60_000);
    expect(parseRetryAfter("Tue Jan  1 00:01:00 2030", now)).toBe(60_000);
  });

  test("what is past is now, and what is far is an hour", () => {
    expect(parseRetryAfter("Mon, 31 Dec 2029 00:00:00 GMT", now)).toBe(0);
    expect(parseRetryAfter("Fri, 31 Dec 9999 23:59:59 GMT", now)).toBe(3_600_000);
    expect(parseRetryAfter("3601", now)).toBe(3_600_000);
    expect(parseRetryAfter("999999999", now)).toBe(3_600_000);
  });

  test.each([
    null,
    "",
    "soon",
    "-5",
    "+5",
    "1.5",
    "1e3",
    "0x10",
    "1, 2",
    "120 s",
    "Infinity",
    "NaN",
    "99999999999999",
    "\u0661",
    "Mon, 1",
    "Tue, 01 Jan 2030",
    "Tue, 01 Jan 2030 00:01:00 +0100",
    "Tue, 99 Jan 2030 00:01:00 GMT",
    "Tue, 01 Xyz 2030 00:01:00 GMT",
    "Tue, 01 Jan 2030 99:99:99 GMT",
    "2030-01-01T00:01:00Z",
    "a".repeat(1_000_000),
    `${" ".repeat(1_000_000)}x`,
  ])("%j is no advice", (text) => {
    expect(parseRetryAfter(text, now)).toBeUndefined();
  });

  test("every answer carries it, whatever was asked and whatever the status is", async () => {
    const headers = { "retry-after": "7" };
    const body = { services: [], state: "in progress" };
    for (const status of [200, 202, 304, 400, 401, 404, 409, 410, 422, 429, 500, 503]) {
      const { url } = await brokerThat({ status, body, headers });
      const client = createClient({ url });
      const asked: Readonly<Record<string, () => Promise<{ readonly retryAfterMs: number | undefined }>>> = {
        catalog: () => client.catalog({ etag: "e" }),
        provision: () => client.provision("i", request),
        fetchInstance: () => client.fetchInstance("i"),
        update: () => client.update("i", { service_id: "s" }),
        deprovision: () => client.deprovision("i", ids),
        bind: () => client.bind("i", "b", { service_id: "s", plan_id: "p" }),
        fetchBinding: () => client.fetchBinding("i", "b"),
        unbind: () => client.unbind("i", "b", ids),
        instanceLastOperation: () => client.instanceLastOperation("i"),
        bindingLastOperation: () => client.bindingLastOperation("i", "b"),
      };
      for (const [name, ask] of Object.entries(asked)) {
        const came = await ask().catch((error: unknown) => error as BrokerAnswerError);
        expect(came.retryAfterMs, `${name} ${status}`).toBe(7_000);
        if (came instanceof BrokerAnswerError) expect(came.status).toBe(status);
      }
    }
  });
});
