import type { Answer } from "@osbert/server";
import { bind } from "./bind.js";
import { bindingLastOperation } from "./binding-last-operation.js";
import { deprovision } from "./deprovision.js";
import type { Endpoint, EndpointPorts, VerbRequest } from "./endpoint.js";
import { fetchBinding } from "./fetch-binding.js";
import { fetchInstance } from "./fetch-instance.js";
import { instanceLastOperation } from "./instance-last-operation.js";
import { provision } from "./provision.js";
import { unbind } from "./unbind.js";
import { update } from "./update.js";

/** Everything that a platform may ask about instances and bindings, by the name that routes have for it. */
const endpoints = {
  provision,
  fetchInstance,
  update,
  deprovision,
  instanceLastOperation,
  bind,
  fetchBinding,
  unbind,
  bindingLastOperation,
} as const satisfies Readonly<Record<string, Endpoint>>;

export type EndpointName = keyof typeof endpoints;

/** The endpoints of one broker. */
export type Endpoints = Readonly<Record<EndpointName, (request: VerbRequest) => Promise<Answer>>>;

export function endpointsOf(ports: EndpointPorts): Endpoints {
  const bound = Object.entries(endpoints).map(([name, endpoint]) => [
    name,
    (request: VerbRequest) => endpoint(ports, request),
  ]);
  return Object.fromEntries(bound) as Endpoints;
}
