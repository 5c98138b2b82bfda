import { randomUUID } from "node:crypto";
import type { Answered, NextRequest } from "./load.js";
import { bindBody, deleteQuery, provisionBody, toRequest } from "./requests.js";

export interface LifecycleCount {
  lifecycles: number;
  requests: number;
}

type Stage = "provision" | "bind" | "unbind" | "deprovision";

const after: Readonly<Record<Stage, Stage>> = {
  provision: "bind",
  bind: "unbind",
  unbind: "deprovision",
  deprovision: "provision",
};

/**
 * One caller that takes instances through their whole life, one after the other: each change is asked for asynchronously and polled until it
 * has succeeded. Throws on any answer that does not belong there.
 */
export function lifecycle(count: LifecycleCount): NextRequest {
  let stage: Stage = "provision";
  let instance = randomUUID();
  let polling = false;
  return (answered) => {
    count.requests++;
    if (answered !== undefined) check(answered);
    if (answered !== undefined && polling && stateOf(answered) === "succeeded") {
      if (stage === "deprovision") {
        count.lifecycles++;
        instance = randomUUID();
      }
      stage = after[stage];
      polling = false;
    } else if (answered !== undefined) {
      polling = true;
    }
    return polling ? poll(stage, instance) : ask(stage, instance);
  };
}

/** The same, asked for synchronously: four requests, each answered at the end. */
export function syncLifecycle(count: LifecycleCount): NextRequest {
  let stage: Stage | undefined;
  let instance = randomUUID();
  return (answered) => {
    count.requests++;
    if (answered !== undefined) check(answered);
    if (stage === "deprovision") {
      count.lifecycles++;
      instance = randomUUID();
    }
    stage = stage === undefined ? "provision" : after[stage];
    return ask(stage, instance, false);
  };
}

/** Asynchronous, with a pause before each poll, as platforms have it. */
export function polledLifecycle(count: LifecycleCount, everyMs: number): NextRequest {
  const next = lifecycle(count);
  return (answered) => {
    const request = next(answered) as string;
    return request.startsWith("GET ") ? { afterMs: everyMs, request } : request;
  };
}

function check({ status, body }: Answered): void {
  if (status >= 300) throw new Error(`a lifecycle was answered with ${status} ${body}`);
}

function stateOf({ body }: Answered): string | undefined {
  return (JSON.parse(body) as { state?: string }).state;
}

function ask(stage: Stage, instance: string, isAsync = true): string {
  const path = pathOf(stage, instance);
  const accepts = isAsync ? "accepts_incomplete=true" : "accepts_incomplete=false";
  switch (stage) {
    case "provision":
      return toRequest("PUT", `${path}?${accepts}`, provisionBody);
    case "bind":
      return toRequest("PUT", `${path}?${accepts}`, bindBody);
    case "unbind":
    case "deprovision":
      return toRequest("DELETE", `${path}?${accepts}&${deleteQuery}`);
  }
}

function poll(stage: Stage, instance: string): string {
  return toRequest("GET", `${pathOf(stage, instance)}/last_operation`);
}

function pathOf(stage: Stage, instance: string): string {
  const path = `/v2/service_instances/${instance}`;
  return stage === "bind" || stage === "unbind" ? `${path}/service_bindings/b-${instance}` : path;
}
