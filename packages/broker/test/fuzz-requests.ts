import fc from "fast-check";
import { routes } from "../src/http/index.js";
import { bindBody, ids, provisionBody } from "./lab.js";

/** A request as someone might send it who means no good, or does not know any better. */
export interface FuzzRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Which of the adapters it goes through. */
  readonly wire: number;
}

const encoder = new TextEncoder();

/** Few enough ids that requests meet, and some that nobody should choose. */
const idSegments = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 0, max: 11 }).map((number) => `i${number}`) },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).map(encodeURIComponent) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "__proto__",
      "constructor",
      "%2F",
      "%2e%2e",
      "..",
      "%00",
      "%zz",
      "%",
      "%ff",
      "%ed%a0%80",
      "",
      "last_operation",
      "service_bindings",
      "a".repeat(401),
      "%F0%9F%98%80",
      "*",
      "?",
      "#",
      "\\",
      "i1;v=2",
    ),
  },
);

const bindingSegments = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 3 }).map((number) => `b${number}`) },
  { weight: 1, arbitrary: idSegments },
);

const paths = fc.oneof(
  {
    weight: 20,
    arbitrary: fc
      .tuple(fc.constantFrom(...routes, ...routes.filter(([method]) => method !== "GET")), idSegments, bindingSegments)
      .map(([[method, path], instance, binding]) => ({
        method: method as string,
        path: path.replace(":instance", () => instance).replace(":binding", () => binding),
      })),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.oneof(idSegments, fc.constantFrom("v2", "catalog", "service_instances")), { maxLength: 8 })
      .map((segments) => ({ method: "GET", path: `/${segments.join("/")}` })),
  },
);

const methods = fc.constantFrom("GET", "PUT", "PATCH", "DELETE", "POST", "HEAD", "OPTIONS", "PURGE");

const plans = fc.oneof(
  { weight: 6, arbitrary: fc.constant(ids.small) },
  { weight: 3, arbitrary: fc.constantFrom(ids.large, ids.sealed) },
  { weight: 1, arbitrary: fc.constantFrom("unknown", "", "__proto__", "\u0000", "ü") },
);

const services = fc.oneof(
  { weight: 9, arbitrary: fc.constant(ids.service) },
  { weight: 1, arbitrary: fc.constantFrom("unknown", "", "constructor") },
);

const queries = fc
  .tuple(
    services,
    plans,
    fc.oneof(
      { weight: 5, arbitrary: fc.constant("true") },
      { weight: 4, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom("false", "", "TRUE", "1", "%zz") },
    ),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom("", "1-a", "99-zz", "x".repeat(11_000), "__proto__") },
    ),
    fc.oneof(
      { weight: 8, arbitrary: fc.constant("") },
      { weight: 1, arbitrary: fc.constantFrom("&service_id=x", "&=", "&%", "&__proto__=1", "&&?", "&plan_id[]=a") },
      { weight: 1, arbitrary: fc.string({ maxLength: 10 }).map((text) => `&${encodeURIComponent(text)}`) },
    ),
    fc.integer({ min: 0, max: 9 }),
  )
  .map(([service, plan, incomplete, operation, more, kind]) => {
    if (kind === 0) return "";
    const query = [`service_id=${encodeURIComponent(service)}`, `plan_id=${encodeURIComponent(plan)}`];
    if (incomplete !== undefined) query.push(`accepts_incomplete=${incomplete}`);
    if (operation !== undefined) query.push(`operation=${operation}`);
    return `?${query.join("&")}${more}`;
  });

const parameters = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  { weight: 4, arbitrary: fc.record({ size: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ role: fc.constantFrom("reader", "writer", "king") }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
);

const contexts = fc.oneof(
  fc.constant({ platform: "cloudfoundry", organization_guid: "o", space_guid: "s", instance_name: "n" }),
  fc.constant({ platform: "kubernetes", namespace: "n", clusterid: "c" }),
  fc.jsonValue({ maxDepth: 2 }),
);

type Body = Readonly<Record<string, unknown>>;
/** From what belongs into a body to what is sent. */
type Write = (right: Body) => string;

/** Bodies that could be right: what belongs there, and now and then something else that might. */
const plausible: fc.Arbitrary<(right: Body) => Body> = fc
  .tuple(services, plans, parameters, contexts, fc.integer({ min: 0, max: 1_023 }))
  .map(([service_id, plan_id, given, context, bits]) => {
    const has = (mask: number) => (bits & mask) === mask;
    return (right) => ({
      ...right,
      ...(has(0b11) && { service_id }),
      ...(has(0b110) && { plan_id }),
      ...(has(0b1000) && { parameters: given }),
      ...(has(0b110000) && { context }),
      ...(has(0b1110000) && { maintenance_info: { version: has(1) ? "1.2.3" : "9.9.9" } }),
      ...(has(0b11000000) && { bind_resource: { app_guid: "a" } }),
      ...(has(0b1110000000) && { predecessor_binding_id: "b1" }),
    });
  });

/** The same with something wrong in it. */
const mutated: fc.Arbitrary<Write> = fc
  .tuple(
    plausible,
    fc.constantFrom(
      "service_id",
      "plan_id",
      "organization_guid",
      "space_guid",
      "parameters",
      "context",
      "maintenance_info",
      "bind_resource",
      "app_guid",
      "previous_values",
      "predecessor_binding_id",
      "__proto__",
    ),
    fc.jsonValue({ maxDepth: 3 }),
  )
  .map(
    ([body, field, value]) =>
      (right) =>
        JSON.stringify(Object.fromEntries([...Object.entries(body(right)), [field, value]])),
  );

const deep = `${"[".repeat(90)}${"]".repeat(90)}`;

const texts: fc.Arbitrary<Write> = fc.oneof(
  {
    weight: 14,
    arbitrary: plausible.map(
      (body): Write =>
        (right) =>
          JSON.stringify(body(right)),
    ),
  },
  { weight: 3, arbitrary: mutated },
  {
    weight: 1,
    arbitrary: fc.json({ maxDepth: 3 }).map(
      (text): Write =>
        () =>
          text,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(mutated, fc.double({ min: 0, max: 1, noNaN: true })).map(
      ([write, share]): Write =>
        (right) => {
          const text = write(right);
          return text.slice(0, Math.floor(text.length * share));
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Write>(
      () => "",
      () => "null",
      () => "[]",
      () => "{",
      () => `{"a":${"[".repeat(2_000)}${"]".repeat(2_000)}}`,
      () => `{"service_id":"${"x".repeat(100_000)}"}`,
      (right) => `{"__proto__":${JSON.stringify(right)}}`,
      (right) => `${JSON.stringify(right)}\u0000`,
      (right) => JSON.stringify({ ...right, plan_id: ids.large, parameters: { deep: JSON.parse(deep) } }),
    ),
  },
);

const payloads: fc.Arbitrary<(right: Body) => Uint8Array> = fc.oneof(
  { weight: 30, arbitrary: texts.map((write) => (right: Body) => encoder.encode(write(right))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => () => bytes) },
);

const base64 = (text: string): string => Buffer.from(text).toString("base64");

const headers = fc
  .tuple(
    fc.oneof(
      { weight: 30, arbitrary: fc.constant("2.17") },
      { weight: 1, arbitrary: fc.constantFrom(undefined, "", "2.1", "3.0", "x", "2.99") },
    ),
    fc.oneof(
      { weight: 10, arbitrary: fc.constant(undefined) },
      { weight: 3, arbitrary: fc.constant(`cloudfoundry ${base64('{"user_id":"u"}')}`) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          "cloudfoundry",
          "x y z",
          `k8s ${base64("[]")}`,
          `k8s ${base64("{")}`,
          `cf ${base64('{"__proto__":{"a":1}}')}`,
          `cf ${base64(`{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`)}`,
        ),
      },
    ),
    fc.oneof(
      { weight: 12, arbitrary: fc.constant("application/json") },
      {
        weight: 1,
        arbitrary: fc.constantFrom(undefined, "", "text/plain", "application/json; charset=utf-16", ";;", "a/b+json"),
      },
    ),
    fc.oneof(
      { weight: 8, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom("r-1", "two words", "", "x".repeat(300), "\u00e9") },
    ),
  )
  .map(([version, identity, type, request]) => ({
    ...(version !== undefined && { "x-broker-api-version": version }),
    ...(identity !== undefined && { "x-broker-api-originating-identity": identity }),
    ...(type !== undefined && { "content-type": type }),
    ...(request !== undefined && { "x-broker-api-request-identity": request }),
  }));

export const fuzzRequests: fc.Arbitrary<FuzzRequest> = fc
  .tuple(
    paths,
    fc.oneof({ weight: 12, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: methods }),
    queries,
    headers,
    payloads,
    fc.nat({ max: 2 }),
  )
  .map(([{ method: usual, path }, other, query, given, payload, wire]) => {
    const method = other ?? usual;
    const hasBody = method !== "GET" && method !== "HEAD" && method !== "DELETE";
    const right = path.includes("/service_bindings/") ? bindBody : provisionBody;
    return { method, url: path + query, headers: given, body: hasBody ? payload(right) : new Uint8Array(), wire };
  });
