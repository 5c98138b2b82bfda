import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { KnativeFacts } from "./options.js";

/** An event, as CloudEvents 1.0 has it. */
export interface CloudEvent {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly data: unknown;
  /** More attributes. */
  readonly extensions?: Readonly<Record<string, string>>;
}

interface Name {
  readonly namespace: string;
  readonly name: string;
}

/** Sends an event to a Channel; answers the status, which is 202 if it was taken. */
export function sendToChannel({ channelPort }: KnativeFacts, channel: Name, event: CloudEvent): Promise<number> {
  const host = `${channel.name}-kn-channel.${channel.namespace}.svc.cluster.local`;
  return post(channelPort, "/", { host }, event);
}

/** Sends an event to a Broker; answers the status, which is 202 if it was taken. */
export function sendToBroker({ brokerPort }: KnativeFacts, broker: Name, event: CloudEvent): Promise<number> {
  return post(brokerPort, `/${broker.namespace}/${broker.name}`, {}, event);
}

/** Not by fetch, which does not let the Host header be chosen. */
function post(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  event: CloudEvent,
): Promise<number> {
  const { id, type, source, data, extensions = {} } = event;
  const attributes = Object.entries({ specversion: "1.0", id, type, source, ...extensions });
  const ceHeaders = Object.fromEntries(attributes.map(([name, value]) => [`ce-${name}`, value]));
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port,
      path,
      method: "POST",
      agent: false,
      headers: { ...headers, ...ceHeaders, "content-type": "application/json" },
    } as const;
    const sent = request(options, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
    });
    sent.once("error", reject);
    sent.end(JSON.stringify(data));
  });
}

/** An event that has arrived. */
export interface ReceivedEvent extends CloudEvent {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** Where events arrive. */
export interface EventSink {
  readonly port: number;
  /** In the order of their arrival, each as often as it came. */
  readonly received: readonly ReceivedEvent[];
  /** What it answers from now on: 202 at first. With 500, Knative tries again. */
  answerWith(status: number): void;
  /** A Service by which Knative reaches it: `{ ref: { apiVersion: "v1", kind: "Service", name } }` is then a subscriber. */
  service(service: Name): object;
  stop(): Promise<void>;
}

/** Starts a sink on a free port of the loopback interface. */
export async function startSink(): Promise<EventSink> {
  const received: ReceivedEvent[] = [];
  let status = 202;
  const server = createServer((incoming, response) => {
    let body = "";
    incoming.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    incoming.once("end", () => {
      received.push(eventFrom(incoming.url ?? "/", incoming.headers, body));
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    received,
    answerWith(next) {
      status = next;
    },
    service: ({ namespace, name }) => ({
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace, name, annotations: { "test/forward": `127.0.0.1:${port}` } },
      spec: { ports: [{ port: 80 }] },
    }),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function eventFrom(path: string, headers: IncomingHttpHeaders, body: string): ReceivedEvent {
  const {
    id = "",
    type = "",
    source = "",
    specversion: _,
    ...extensions
  } = Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith("ce-") ? [[name.slice(3), String(value)]] : [],
    ),
  );
  return { id, type, source, extensions, data: body === "" ? undefined : JSON.parse(body), path, headers };
}
