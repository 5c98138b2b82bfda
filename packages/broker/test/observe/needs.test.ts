import { expect, test } from "vitest";
import { logTo, metrics } from "../../src/observe/index.js";
import { ids, lab } from "../lab.js";
import { watchedBroker } from "./watched-broker.js";

test("an observer that fails to say what it needs is told of everything, and harms no answer", async () => {
  const [told, toldToo]: [string[], string[]] = [[], []];
  const needs = () => {
    throw new Error("a bug of the observer");
  };
  const broken = Object.assign(({ kind }: { readonly kind: string }) => void told.push(kind), { needs });
  const picky = Object.assign(({ kind }: { readonly kind: string }) => void toldToo.push(kind), { needs: () => false });
  const { ask } = await watchedBroker({ services: [lab().service], observe: [picky, broken] });
  expect((await ask("GET", "/v2/catalog")).status).toBe(200);
  expect((await ask("GET", "/v2/nothing")).status).toBe(404);
  expect(told.filter((kind) => kind === "request answered")).toHaveLength(2);
});

test("a log of warnings needs nothing of what goes well, and writes as before when its level is lowered", async () => {
  let lowest = "warn";
  const written: string[] = [];
  const write = (level: string) => (_fields: object, message: string) => void written.push(`${level}: ${message}`);
  const log = logTo({
    ...{ debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    isLevelEnabled: (level) => levels.indexOf(level) >= levels.indexOf(lowest),
  });
  for (const kind of ["accepted", "attempt started", "step finished", "waiting", "store answered"])
    expect(log.needs?.({ kind }), kind).toBe(false);
  expect(log.needs?.({ kind: "request answered", status: 201 })).toBe(false);
  expect(log.needs?.({ kind: "request answered", status: 401 })).toBe(true);
  expect(log.needs?.({ kind: "settled", outcome: "failed" })).toBe(true);
  expect(log.needs?.({ kind: "retrying" })).toBe(true);

  const everything: string[] = [];
  const all = ({ kind }: { readonly kind: string }) => void everything.push(kind);
  const { ask } = await watchedBroker({ services: [lab().service], observe: [log, all] });
  const provision = (id: string) => ask("PUT", `/v2/service_instances/${id}`, { body: provisionBody });
  expect((await provision("i1")).status).toBe(201);
  expect(everything).toContain("accepted");
  expect(written).toEqual([]);
  lowest = "info";
  expect(log.needs?.({ kind: "accepted" })).toBe(true);
  expect((await provision("i2")).status).toBe(201);
  expect(written).toContain("info: provision answered with 201");
});

test("metrics need exactly the events that they count something of", async () => {
  const { observe } = metrics({ process: false });
  const counted = ["request answered", "accepted", "settled", "step finished", "retrying", "abandoned"];
  for (const kind of [...counted, "store answered", "taken over", "lease lost", "set aside", "of another version"])
    expect(observe.needs?.({ kind }), kind).toBe(true);
  for (const kind of ["attempt started", "waiting", "pruned", "store failed", "catalog warning", "passed over"])
    expect(observe.needs?.({ kind }), kind).toBe(false);
});

const levels: readonly string[] = ["debug", "info", "warn", "error"];
const provisionBody = { service_id: ids.service, plan_id: ids.small, organization_guid: "o", space_guid: "s" };
