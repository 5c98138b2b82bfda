import { expect, test } from "vitest";
import { KeptAsText } from "../src/catalog/kept-as-text.js";
import { OfferedBundles } from "../src/catalog/offered-bundles.js";
import { toService } from "../src/formats/to-service.js";
import { bundle } from "./source-lab.js";

test("of a service that is kept as text, everything is there that a bundle's service has", () => {
  const { revision } = bundle({ plans: ["small", "large"] });
  const plans = ["small", "large"].map((name) => ({ id: `id-${name}`, name }));
  const naming = { id: "service", name: "named", plans, revision: revision.digest, version: "1.0.0" };
  const expected = toService(revision.spec, naming);
  const unused = () => Promise.reject(new Error("it is not run here"));
  const offered = new OfferedBundles({
    revisions: () => unused,
    named: () => Promise.reject(new Error("nothing is stored")),
    leftOut: () => undefined,
    render: () => undefined,
    actions: () => ({
      ...{ runner: undefined as never, fetch: unused, limits: undefined as never, orphans: undefined as never },
      ...{ secrets: () => ({}), everGiven: () => [], tell: () => undefined },
    }),
  });
  const facts = { ref: { repository: "r", channel: "", tag: "latest" }, fingerprint: "f", readAt: 0 };
  const service = offered.service(
    "hub",
    { ...revision, ...facts, serviceId: naming.id, version: naming.version, plans },
    naming.name,
  );
  const found = Object.fromEntries(Object.keys(expected).map((key) => [key, service[key as keyof typeof service]]));
  expect(found).toEqual(expected);
  for (const name of ["provision", "update", "deprovision", "bind", "unbind", "prepareUpdate"] as const)
    expect(service[name], name).toBeTypeOf("function");
  expect([service.state, service.bindingState]).toEqual([expect.any(Object), expect.any(Object)]);
});

test("a service that is kept as text is not made again while few others are asked, and is made of equal facts then", () => {
  const made: string[] = [];
  const make = ({ id }: { readonly id: string }) => {
    made.push(id);
    return { id, name: id, description: `Of ${id}`, revision: "r", plans: {}, provision: async () => ({}) };
  };
  const texts = new KeptAsText();
  const service = texts.keep({ id: "one" }, make);
  expect([service.id, service.revision, service.description, service.plans]).toEqual(["one", "r", "Of one", {}]);
  expect(service.bind === undefined).toBe(true);
  expect(made).toEqual(["one"]);
  for (let number = 0; number < 1_000; number++) texts.keep({ id: `other ${number}` }, make);
  expect(service.id).toBe("one");
  expect(made.filter((id) => id === "one")).toHaveLength(1);
  expect(service.description).toBe("Of one");
  expect(service.description).toBe("Of one");
  expect(made.filter((id) => id === "one")).toHaveLength(2);
});
