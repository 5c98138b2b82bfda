import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

// A broker that has done whatever it is asked at once, or never: `instant-broker.js [<seconds from poll to poll>]`. Says its port, and ends with its
// standard input. Every request is read to its end before it is answered, as a broker has to.

const [pollSeconds] = process.argv.slice(2);

/** As large as a real one: ten offerings of three plans with schemas. */
const services = Array.from({ length: 10 }, (_, index) => ({
  id: `service-${index}-id`,
  name: `service-${index}`,
  description: "A service like those that people offer, with a description of some length",
  bindable: true,
  plan_updateable: true,
  plans: ["small", "medium", "large"].map((size) => ({
    id: `service-${index}-${size}-id`,
    name: size,
    description: `The ${size} one`,
    schemas: { service_instance: { create: { parameters: schema() }, update: { parameters: schema() } } },
  })),
}));

const catalog = JSON.stringify({ services });

const server = createServer((request, response) => {
  request.resume().once("end", () => {
    const { status, body } = answer(request);
    const headers = pollSeconds === undefined || body === catalog ? {} : { "retry-after": pollSeconds };
    response.writeHead(status, { "content-type": "application/json", "content-length": body.length, ...headers });
    response.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
process.stdin.on("end", () => process.exit(0)).resume();

function answer({ method, url = "" }: IncomingMessage): { readonly status: number; readonly body: string } {
  if (url.startsWith("/v2/catalog")) return { status: 200, body: catalog };
  if (url.includes("/last_operation")) return { status: 200, body: '{"state":"in progress"}' };
  if (pollSeconds !== undefined) return { status: 202, body: '{"operation":"op-1"}' };
  return { status: method === "PUT" ? 201 : 200, body: "{}" };
}

function schema() {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: {
      diskGb: { type: "integer", minimum: 1, maximum: 1_000 },
      version: { type: "string", pattern: "^[0-9]{1,3}$" },
      extensions: { type: "array", items: { type: "string", maxLength: 64 } },
      backup: { type: "object", properties: { keepDays: { type: "integer" } } },
    },
    additionalProperties: false,
  };
}
