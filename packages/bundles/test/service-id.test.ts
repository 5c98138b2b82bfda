import { canonicalJson, type Json } from "@osbert/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  fingerprint,
  legacyName,
  legacyPlanId,
  legacyServiceId,
  type Origin,
  planIdOfName,
  serviceIdOfPlace,
} from "../src/identity/service-id.js";

const namespace = "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10";

/** Short and alike, so that what could be taken for something else is. */
const part = fc.array(fc.constantFrom("a", "b", "/", ":", "-", ".", "plan", namespace), { minLength: 1, maxLength: 3 });
const word = part.map((parts) => parts.join(""));
const place: fc.Arbitrary<Origin> = fc.record({
  source: word,
  repository: word,
  channel: fc.oneof(fc.constant(""), word),
});

describe("F5-57: ids of services and plans", () => {
  test("are UUIDs of version 5, and for ever the same", () => {
    const origin = { source: "dh", repository: "team/cache-apb", channel: "" };
    const id = serviceIdOfPlace(namespace, origin);
    // uuidgen --sha1 -n 5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10 -N $'dh\nteam/cache-apb'
    expect(id).toBe("64914ea8-e239-53e0-b467-610e5e536143");
    expect(planIdOfName(id, "dev", namespace)).toBe("4cc5f4bb-622d-5546-8b31-0af9b770dd0b");
  });

  test("no two inputs have one id, be it of a service or of a plan", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(place, { selector: (origin) => canonicalJson({ ...origin }), maxLength: 20 }),
        word,
        (origins, plan) => {
          const services = origins.map((origin) => serviceIdOfPlace(namespace, origin));
          const plans = services.map((id) => planIdOfName(id, plan, namespace));
          expect(new Set([...services, ...plans]).size).toBe(2 * origins.length);
          for (const id of [...services, ...plans])
            expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        },
      ),
    );
  });

  test("a source that is called plan has no service with the id of a plan", () => {
    const service = serviceIdOfPlace(namespace, { source: "a", repository: "b", channel: "" });
    const alike = { source: "plan", repository: service, channel: "dev" };
    expect(serviceIdOfPlace(namespace, alike)).not.toBe(planIdOfName(service, "dev", namespace));
  });

  test("F5-63: two forms of one letter are one name", () => {
    const id = (repository: string) => serviceIdOfPlace(namespace, { source: "s", repository, channel: "" });
    expect(id("cafe\u0301")).toBe(id("caf\u00e9"));
  });

  test("F5-66: the default channel leaves no trace, every other one does", () => {
    const id = (channel: string) => serviceIdOfPlace(namespace, { source: "s", repository: "r", channel });
    expect(new Set([id(""), id("latest"), id("v1")]).size).toBe(3);
  });
});

test("F5-62: the legacy ids are those of the predecessor, and so are its collisions", () => {
  const name = legacyName("dh", "postgresql-apb");
  expect(name).toBe("dh-postgresql-apb");
  // printf dh-postgresql-apb | md5sum
  expect(legacyServiceId(name)).toBe("1dda1477cace09730bd8ed7a6505607e");
  expect(legacyPlanId(name, "dev")).toBe("7f4a5e35e4af2beb70076e72fab0b7ff");
  expect(legacyName("dh", "a.b-apb")).toBe(legacyName("dh", "a-b-apb"));
  expect(legacyName("dh", "x".repeat(60))).toBe(`dh-${"x".repeat(48)}`);
  expect(legacyName("dh", `${"x".repeat(47)}-y`)).toBe(`dh-${"x".repeat(47)}`);
});

test("a fingerprint is the same for what is equal as JSON, and another for all else", () => {
  const reversed = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(reversed)
      : typeof value === "object" && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([name, item]) => [name, reversed(item)]),
          )
        : value;
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      expect(fingerprint(reversed(one))).toBe(fingerprint(one));
      expect(fingerprint(one) === fingerprint(other)).toBe(canonicalJson(one as Json) === canonicalJson(other as Json));
    }),
  );
});
