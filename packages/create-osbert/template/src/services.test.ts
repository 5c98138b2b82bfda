import assert from "node:assert/strict";
import { test } from "node:test";
import { testBroker } from "@osbert/broker/testing";
import { services } from "./services.js";

test("an instance greets in its language", async () => {
  const flow = await testBroker({ services });

  const wrong = await flow.provision("i1", { parameters: { language: "fr" } });
  assert.equal(wrong.status, 400);

  await flow.provision("i1", { parameters: { language: "de" } });
  await flow.advance();
  assert.equal((await flow.lastOperation("i1")).body.state, "succeeded");

  const bound = await flow.bind("i1", "b1", { acceptsIncomplete: false });
  assert.equal(bound.body.credentials.words, "Guten Tag, b1");
  await flow.stop();
});
