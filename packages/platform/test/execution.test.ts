import { expect, test } from "vitest";
import { executionLab } from "./execution-lab.js";

test("create, bind, update, unbind and delete reach the broker, in the words of who asked", async () => {
  const lab = await executionLab();
  const created = await lab.create("db", { parameters: '{"size": 12345678901234567890}' });
  expect(await lab.ended("db", created)).toMatchObject({ kind: "succeeded" });
  expect(await lab.data("db")).toMatchObject({ phase: "ready", osbId: "osb-db", attempt: null });
  const bound = await lab.bind("db", "app", { by: "ben" });
  expect(await lab.ended("db", bound)).toMatchObject({ kind: "succeeded" });
  expect(await lab.binding("db", "app")).toMatchObject({
    phase: "bound",
    answer: expect.stringContaining("credentials"),
  });
  const updated = await lab.update("db", { parameters: '{"colour":"red"}', plan: "async", by: "carla" });
  expect(await lab.ended("db", updated)).toMatchObject({ kind: "succeeded" });
  expect(await lab.data("db")).toMatchObject({ applied: { plan: { name: "async" } } });
  expect(await lab.ended("db", await lab.unbind("db", "app"))).toMatchObject({ kind: "succeeded" });
  expect(await lab.ended("db", await lab.delete("db"))).toMatchObject({ kind: "succeeded" });
  expect(lab.broker.state()).toMatchObject({ instances: [], created: 2, deleted: 2 });
  expect(lab.broker.requests().find(({ method }) => method === "PUT")?.body).toContain(
    '{"size": 12345678901234567890}',
  );
  // P-POLL-04: polls of a plan change name the plan of before, and P-ID-02: they are of who asked for it.
  const patched = lab.broker.requests().findIndex(({ method }) => method === "PATCH");
  const after = lab.broker.requests().slice(patched);
  expect(JSON.parse(after[0]?.body ?? "{}")).toEqual({
    service_id: "service-misbehaving",
    plan_id: "plan-async",
    // P-UPD-03: what the user said, and nothing else.
    parameters: { colour: "red" },
    context: { platform: "osbert", instance_name: "db" },
    previous_values: { plan_id: "plan-good" },
  });
});

test("P-POLL-02, P-POLL-03, P-POLL-04, P-ID-02, P-ID-04: polls of a plan change name the plan of before, the operation, and who asked for it", async () => {
  const lab = await executionLab({ rules: [{ call: "update", do: { slow: { polls: 3 } } }] });
  await lab.ended("db", await lab.create("db", { by: "anna" }));
  const one = await lab.update("db", { plan: "async", by: "ben" });
  const two = await lab.update("db", { parameters: '{"size":2}', by: "carla" });
  expect(await lab.ended("db", one)).toMatchObject({ kind: "succeeded" });
  expect(await lab.ended("db", two)).toMatchObject({ kind: "succeeded" });
  const authors = new Map<string, Set<string>>();
  for (const { call, method, headers, query } of lab.broker.requests()) {
    if (call === "catalog") continue;
    expect(headers["x-broker-api-request-identity"]).toMatch(/^[0-9a-f-]{36}$/);
    const [, value = ""] = String(headers["x-broker-api-originating-identity"]).split(" ");
    const { user } = JSON.parse(Buffer.from(value, "base64").toString()) as { user: string };
    const polled = new URLSearchParams(query).get("operation") === null ? method : "poll";
    authors.set(polled, (authors.get(polled) ?? new Set()).add(user));
  }
  expect(authors).toEqual(
    new Map([
      ["PUT", new Set(["anna"])],
      ["PATCH", new Set(["ben", "carla"])],
      ["poll", new Set(["ben", "carla"])],
    ]),
  );
  const polls = lab.broker.requests().filter(({ call }) => call === "poll");
  const plans = polls.map(({ query }) => new URLSearchParams(query).get("plan_id"));
  expect(new Set(plans)).toEqual(new Set(["plan-good", "plan-async"]));
  expect(plans.slice(plans.indexOf("plan-async"))).not.toContain("plan-good");
});
