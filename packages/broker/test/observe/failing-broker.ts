import { memoryStore } from "@osbert/journal/memory";
import { serve } from "../../src/http/index.js";
import { createBroker, defineService } from "../../src/index.js";

// A broker as the README has it, with a mistake in it. It ends once the mistake was made three times.

const settings: { cluster?: { url: string } } = {};
let attempts = 0;

const database = defineService({
  id: "s-1",
  name: "database",
  description: "A database",
  plans: { only: { id: "p-1", description: "The only one" } },
  async provision(operation) {
    attempts = operation.attempt;
    await operation.step("reserve a host", () => (settings.cluster as { url: string }).url);
  },
});

const served = await serve(createBroker({ services: [database], store: memoryStore() }), {
  port: 0,
});
const { username, password } = served.credential ?? { username: "", password: "" };
await fetch(`${served.url}/v2/service_instances/i1?accepts_incomplete=true`, {
  method: "PUT",
  headers: {
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
    "content-type": "application/json",
    "x-broker-api-version": "2.17",
  },
  body: JSON.stringify({
    service_id: "s-1",
    plan_id: "p-1",
    organization_guid: "o",
    space_guid: "s",
    parameters: { password: "hunter2" },
  }),
});
// The fourth attempt begins after the third was told of.
while (attempts < 4) await new Promise((resolve) => setTimeout(resolve, 50));
await served.close({ drainMs: 0 });
