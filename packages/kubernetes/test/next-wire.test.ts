import { expect, test } from "vitest";
import type { FlowRecord } from "../src/flows/flow-record.js";
import { defaultFlowSettings } from "../src/flows/flow-settings.js";
import { newWire, nextWire } from "../src/flows/next-wire.js";
import type { Observed, SeenReadiness } from "../src/flows/observed.js";

const minuteMs = 60_000;
const wire = newWire("shop", "team");
const channel = {
  apiVersion: "messaging.knative.dev/v1",
  kind: "Channel",
  name: "shop",
  namespace: "kyma-integration",
};
const spec = {
  channel: { apiVersion: channel.apiVersion, kind: channel.kind, name: channel.name },
  subscriber: { ref: { apiVersion: "eventing.knative.dev/v1", kind: "Broker", namespace: "team", name: "default" } },
};

function next(
  ready: SeenReadiness["status"],
  flow: Partial<FlowRecord> | null,
  ours: boolean,
  now: number,
  known = wire,
) {
  const seen = {
    ...{
      name: known.name,
      namespace: "kyma-integration",
      uid: "u1",
      resourceVersion: "1",
      ours,
      deleting: false,
      spec,
    },
    ready: { status: ready, reason: "", message: "" },
  };
  const observed = {
    ...{ behind: null, namespace: "active", knative: "here" },
    applications: new Map([["shop", { exists: true, granted: new Set(["s"]), channels: [channel] }]]),
    subscriptions: new Map([[known.name, seen]]),
  } as unknown as Observed;
  const flows = flow === null ? [] : [{ service: "s", delivery: null, deliveryAt: 5, ...flow } as FlowRecord];
  const facts = { ...{ namespace: "team", application: "shop", holders: ["f"], flows, hasSink: true }, brokenSince: 0 };
  return nextWire(known, facts, observed, defaultFlowSettings, now);
}

test("a Subscription that says that it is broken is made anew after a minute; one that says nothing is given time, because Knative may be busy", () => {
  expect(next("False", {}, true, minuteMs).repaired).toBe(true);
  expect(next("Unknown", {}, true, minuteMs)).toMatchObject({ repaired: false, actions: [], dueAt: 15 * minuteMs });
  expect(next("Unknown", {}, true, 15 * minuteMs).repaired).toBe(true);
});

test("a Subscription of somebody else is only read: who wants another delivery is refused, once and for all", () => {
  const plain = next("True", {}, false, 1_000);
  expect(plain).toMatchObject({ actions: [], wire: { state: "present", uid: "u1", refused: null, deliveryAt: 5 } });
  const refused = next("True", { delivery: { retry: 3 } }, false, 1_000);
  expect(refused).toMatchObject({ actions: [], wire: { state: "present", deliveryAt: 0, refused: { times: 2 } } });
});

test("with the last flow goes the Subscription that was made for it, or taken over; never one that somebody else has put there", () => {
  const removal = [{ kind: "remove", uid: "u1" }];
  expect(next("True", null, true, 1_000).actions).toMatchObject(removal);
  expect(next("True", null, false, 1_000, { ...wire, name: "shop-x7k2p" }).actions).toMatchObject(removal);
  expect(next("True", null, false, 1_000)).toMatchObject({ actions: [], wire: null });
});
