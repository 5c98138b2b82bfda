import { BrokerAnswerError } from "@osbert/protocol/client";
import { expect, test } from "vitest";
import { callBroker } from "../src/operations/call-broker.js";
import { brokerClient } from "./execution-lab.js";

const { signal } = new AbortController();
const brokers = { client: () => brokerClient("http://127.0.0.1:9", 1_000), saw: () => undefined };

test.each([
  [0, 1_000],
  [999, 1_000],
  [5_000, 5_000],
  [undefined, undefined],
])("a broker that wants to be asked again after %s ms is asked after %s", async (advised, expected) => {
  const answer = { status: 503, body: {}, retryAfterMs: advised, etag: undefined, text: "{}" };
  const busy = () => Promise.reject(new BrokerAnswerError("busy", { kind: "answer", answer }));
  const came = await callBroker({ brokers }, "b", "deprovision", busy, { signal });
  expect(came.retryAfterMs).toBe(expected);
});
