import { describe, expect, test } from "vitest";
import type { ClusterFailure } from "../src/cluster/cluster-error.js";
import { plainText, readFailure } from "../src/cluster/read-failure.js";

function statusBody(reason: string, message: string, details: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", reason, message, details });
}

function failure(status: number, body: string, more: Partial<Parameters<typeof readFailure>[0]> = {}) {
  return readFailure({ status, headers: {}, body, secrets: [], isSecret: false, ...more });
}

describe("what an answer means", () => {
  const answers: readonly [number, string, ClusterFailure][] = [
    [401, statusBody("Unauthorized", "Unauthorized"), "unauthorized"],
    [403, statusBody("Forbidden", "exceeded quota: small, requested: pods=1"), "forbidden"],
    [403, "<html>forbidden</html>", "forbidden"],
    [404, statusBody("NotFound", 'configmaps "a" not found', { name: "a", kind: "configmaps" }), "not found"],
    [404, statusBody("NotFound", "the server could not find the requested resource"), "no such kind"],
    [404, "404 page not found\n", "no such kind"],
    [404, "<html>nginx</html>", "unavailable"],
    [
      405,
      statusBody("MethodNotAllowed", "create not allowed while custom resource definition is terminating"),
      "no such kind",
    ],
    [405, statusBody("MethodNotAllowed", "the server does not allow this method"), "invalid"],
    [409, statusBody("AlreadyExists", 'configmaps "a" already exists', { name: "a" }), "conflict"],
    [409, statusBody("Conflict", 'Apply failed with 1 conflict: conflict with "kubectl": .data.a'), "conflict"],
    [410, statusBody("Expired", "too old resource version"), "unavailable"],
    [413, statusBody("RequestEntityTooLarge", "limit is 3145728"), "invalid"],
    [400, statusBody("BadRequest", 'admission webhook "w" denied the request: validation failed'), "invalid"],
    [422, statusBody("Invalid", "spec.replicas: Invalid value"), "invalid"],
    [429, statusBody("TooManyRequests", "storage is (re)initializing"), "too busy"],
    [503, statusBody("ServiceUnavailable", "apiserver is shutting down", { retryAfterSeconds: 3 }), "too busy"],
    [503, "no healthy upstream", "unavailable"],
    [
      500,
      statusBody("InternalError", 'Internal error occurred: failed calling webhook "w": refused'),
      "webhook unavailable",
    ],
    [
      500,
      statusBody("InternalError", "conversion webhook for example.com/v1, Kind=A failed: Post"),
      "webhook unavailable",
    ],
    [500, statusBody("InternalError", "etcdserver: leader changed"), "unavailable"],
    [
      500,
      statusBody("", "failed to create typed patch object (a/b; /v1, Kind=Secret): .data.a: expected string"),
      "invalid",
    ],
    [504, statusBody("Timeout", "request did not complete within requested timeout"), "unavailable"],
    [302, "", "unavailable"],
    [200, "", "unavailable"],
  ];
  test.each(answers)("%i with %s is `%s`", (status, body, expected) => {
    expect(failure(status, body)).toMatchObject({ failure: expected, status });
  });

  test("says how long the server wants to be left alone, whichever way it tells that", () => {
    expect(failure(429, "", { headers: { "retry-after": "2" } }).retryAfterMs).toBe(2_000);
    expect(failure(429, statusBody("TooManyRequests", "", { retryAfterSeconds: 5 })).retryAfterMs).toBe(5_000);
    expect(failure(429, "").retryAfterMs).toBeNull();
    expect(failure(429, "", { headers: { "retry-after": "-5" } }).retryAfterMs).toBeNull();
  });

  test("names the manager that holds a field", () => {
    expect(failure(409, statusBody("Conflict", 'Apply failed: conflict with "kubectl": .data.a')).message).toContain(
      'conflict with "kubectl"',
    );
  });
});

describe("what is told of an answer", () => {
  test("is short, of one line, and without control characters", () => {
    const told = failure(422, statusBody("Invalid", `a\u001b[31m\nb\u2028c\u202ed ${"x".repeat(2_000)}`)).message;
    expect(told).toContain("a [31m b c d xxx");
    expect(told.length).toBeLessThan(600);
  });

  test("is cut between characters, not within", () => {
    expect(plainText("😀".repeat(400))).toBe(`${"😀".repeat(250)}…`);
    expect(plainText(`x${"😀".repeat(400)}`)).toBe(`x${"😀".repeat(249)}…`);
  });

  test("does not hold the token that was sent, though a proxy gave it back", () => {
    const answer = failure(400, statusBody("BadRequest", "bad header Bearer s3cr3t-token"), {
      secrets: ["s3cr3t-token"],
    });
    expect(answer.message).not.toContain("s3cr3t");
    expect(failure(400, "you sent s3cr3t-token", { secrets: ["s3cr3t-token"] }).message).not.toContain("s3cr3t");
  });

  test("of a Secret are names of fields alone, because servers quote values", () => {
    const body = statusBody("Invalid", 'Secret "a" is invalid: data[b]: Invalid value: "hunter2"', {
      name: "a",
      causes: [{ reason: "FieldValueInvalid", message: 'Invalid value: "hunter2"', field: "data[b]" }],
    });
    const { message } = failure(422, body, { isSecret: true });
    expect(message).toContain("data[b]");
    expect(message).not.toContain("hunter2");
  });
});
