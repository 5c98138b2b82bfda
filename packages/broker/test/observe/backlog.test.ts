import { expect, test } from "vitest";
import { buildCatalog } from "../../src/index.js";
import { brokerBacklog } from "../../src/observe/backlog.js";
import { ids, lab } from "../lab.js";

test("lanes of services are told by name, and those that the catalog has no more are one", () => {
  const lane = { open: 3, due: 1, failing: 1, oldestAcceptedAt: 900, complete: true };
  const backlog = {
    at: 1_000,
    running: 2,
    lanes: [
      { ...lane, lane: ids.service },
      { ...lane, lane: "retired", oldestAcceptedAt: null },
      { ...lane, lane: "older", oldestAcceptedAt: 400, complete: false },
    ],
  };
  expect(brokerBacklog(backlog, buildCatalog([lab().service]))).toEqual({
    running: 2,
    waiting: 9 - 3 - 2,
    services: [
      { service: "lab", open: 3, due: 1, stuck: 1, oldestAgeMs: 100, complete: true },
      { service: "unknown", open: 6, due: 2, stuck: 2, oldestAgeMs: 600, complete: false },
    ],
  });
});

test("what is leased and due at a time is not counted below nothing", () => {
  const backlog = { at: 1_000, running: 5, lanes: [] };
  expect(brokerBacklog(backlog, buildCatalog([])).waiting).toBe(0);
});
