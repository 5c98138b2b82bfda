import { randomUUID } from "node:crypto";

/** Requests as platforms send them, as they go over the wire. */

const ids = { service_id: "service-1", plan_id: "service-1-small" };

export const provisionBody = JSON.stringify({
  ...ids,
  organization_guid: randomUUID(),
  space_guid: randomUUID(),
  context: {
    platform: "cloudfoundry",
    organization_guid: randomUUID(),
    space_guid: randomUUID(),
    instance_name: "mine",
  },
  parameters: { name: "abc", size: 10 },
});

export const bindBody = JSON.stringify({ ...ids, bind_resource: { app_guid: randomUUID() } });

export const deleteQuery = new URLSearchParams(ids).toString();

export const credentials = { username: "bench", password: "bench" };

export const headers = {
  "X-Broker-API-Version": "2.17",
  Authorization: `Basic ${btoa(`${credentials.username}:${credentials.password}`)}`,
};

const head = Object.entries({ Host: "127.0.0.1", ...headers })
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join("");

export function toRequest(method: string, path: string, body = "", more = ""): string {
  const content = body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\n${head}${more}${content}\r\n${body}`;
}
