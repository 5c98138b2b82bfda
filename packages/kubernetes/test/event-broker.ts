import { createBroker, type Service } from "@osbert/broker";
import { createHandler } from "@osbert/broker/http";
import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { onTestFinished } from "vitest";
import { until } from "../../../tools/until.js";
import type { FoundService, Wiring } from "../src/applications/wiring.js";
import { type EventServicesOptions, openEventServices } from "../src/events/event-services.js";

export interface EventBrokerOptions extends Partial<Omit<EventServicesOptions, "cluster">> {
  readonly cluster: EventServicesOptions["cluster"];
  readonly store?: Store;
}

/** Makes nothing, and notes of what. */
function notes(more: Partial<Wiring> = {}) {
  const made: string[] = [];
  const note = (verb: string, { application, service, plan, isOffered }: FoundService) =>
    void made.push(
      `${verb} ${application.name} ${service.id} ${plan.events ? "events" : "apis"}${isOffered ? "" : " gone"}`,
    );
  const wiring: Wiring = {
    kinds: {},
    open: async () => undefined,
    close: () => undefined,
    functions: (found): Pick<Service, "provision" | "deprovision"> => ({
      provision: async () => note("provision", found),
      deprovision: async () => note("deprovision", found),
    }),
    ...more,
  };
  return { made, wiring };
}

/** A broker of what applications offer, with credentials for the namespaces `shop` and `other`, asked without sockets. */
export async function startEventBroker({ store = memoryStore(), ...options }: EventBrokerOptions) {
  const { made, wiring } = notes();
  const source = openEventServices({ mapping: "services", wiring, ...options });
  const broker = createBroker({ services: source, store, stderr: "nothing" });
  await broker.start();
  const stop = () => broker.stop({ drainMs: 1_000 });
  onTestFinished(stop);
  const credentials = ["shop", "other"].map((platform) => ({ username: platform, password: "secret", platform }));
  const admin = { username: "admin", password: "of all" };
  const handle = createHandler(broker, { credentials, admin: { credentials: [admin] } });
  const ask = async (
    method: string,
    path: string,
    given: { body?: object; as?: string; headers?: Record<string, string> } = {},
  ) => {
    const who = path.startsWith("/admin") ? "admin:of all" : `${given.as ?? path.split("/")[1]}:secret`;
    const headers: Record<string, string> = {
      "x-broker-api-version": "2.17",
      "content-type": "application/json",
      authorization: `Basic ${Buffer.from(who).toString("base64")}`,
      ...given.headers,
    };
    const body = new TextEncoder().encode(given.body === undefined ? "" : JSON.stringify(given.body));
    const answer = await handle({ method, url: path, header: (name) => headers[name.toLowerCase()], body });
    const text = Buffer.from(answer.body).toString();
    return { status: answer.status, headers: answer.headers, body: text === "" ? undefined : JSON.parse(text) };
  };
  const plans = async (namespace: string): Promise<readonly string[]> => {
    const { status, body } = await ask("GET", `/${namespace}/v2/catalog`);
    if (status !== 200) return [`${status}`];
    return body.services.flatMap((service: { plans: { id: string }[] }) => service.plans.map(({ id }) => id));
  };
  const sees = (namespace: string, ids: readonly string[]) =>
    until(
      `${namespace} sees ${ids.join(", ")}`,
      async () => JSON.stringify(await plans(namespace)) === JSON.stringify(ids),
    );
  const instance = (namespace: string, id: string) => `/${namespace}/v2/service_instances/${id}`;
  const ofService = (id: string) => ({ service_id: id, plan_id: `${id}-plan` });
  const provision = (namespace: string, id: string, serviceId: string) =>
    ask("PUT", instance(namespace, id), { body: { ...ofService(serviceId), organization_guid: "o", space_guid: "s" } });
  const deprovision = (namespace: string, id: string, serviceId: string) =>
    ask("DELETE", `${instance(namespace, id)}?${new URLSearchParams(ofService(serviceId))}`);
  const bind = (namespace: string, id: string, binding: string, ids: object, more: object = {}) =>
    ask("PUT", `${instance(namespace, id)}/service_bindings/${binding}`, { body: { ...ids, ...more } });
  return { store, made, source, broker, ask, plans, sees, provision, deprovision, bind, ofService, stop };
}
