import { expect, test } from "vitest";
import { isSupported, parseApiVersion, parseOriginatingIdentity, printOriginatingIdentity } from "../src/index.js";

test("ID-02: an originating identity survives printing and parsing, whatever its characters", () => {
  const identity = {
    platform: "cloudfoundry",
    value: { user_id: "683ea748-3092-4ff4-b656-39cacc4d5360", name: "Zoë 😀" },
  };
  expect(parseOriginatingIdentity(printOriginatingIdentity(identity))).toEqual(identity);
});

test("ID-03: a malformed identity is told from a good one", () => {
  for (const text of [
    "",
    "cloudfoundry",
    "cloudfoundry !!!",
    "cloudfoundry bm90IGpzb24=",
    `k8s ${btoa("[1]")}`,
    `k8s ${btoa("1")}`,
    // It would be kept as null, which nobody sent.
    `k8s ${btoa('{"uid": [{"of": 1e999}]}')}`,
    `k8s ${btoa('{"uid": -1e999}')}`,
  ]) {
    expect(parseOriginatingIdentity(text), text).toBeUndefined();
  }
});

test("VER-04, VER-05: a version is MAJOR.MINOR, and a higher minor is supported", () => {
  expect(parseApiVersion("2.17")).toEqual({ major: 2, minor: 17 });
  for (const text of ["", "2", "v2.17", "2.17.1", "2.x", " 2.17", "-2.17"])
    expect(parseApiVersion(text), text).toBeUndefined();
  const minimum = { major: 2, minor: 13 };
  expect(isSupported({ major: 2, minor: 99 }, minimum)).toBe(true);
  expect(isSupported({ major: 2, minor: 12 }, minimum)).toBe(false);
  expect(isSupported({ major: 3, minor: 0 }, minimum)).toBe(false);
});
