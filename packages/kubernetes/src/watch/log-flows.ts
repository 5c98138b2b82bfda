import type { Line, Logger } from "@osbert/server/observe";
import type { FlowEvent, FlowObserver } from "./flow-event.js";

const longestText = 500;

/**
 * One line for each thing that happens to flows, in the process that follows their namespace. What others wrote is in the fields, which are bounded
 * and written as JSON: a line break of theirs makes no line of ours.
 */
export function logFlows(logger: Logger): FlowObserver {
  return (event) => {
    const line = lineOf(event);
    if (line !== undefined) logger[line.level](line.fields, line.message);
  };
}

function lineOf(event: FlowEvent): Line | undefined {
  switch (event.kind) {
    case "flow condition": {
      const { namespace, flow, application, condition } = event;
      const { type, status, reason, message } = condition;
      const fields = {
        namespace,
        flow,
        application,
        condition: type,
        status,
        reason,
        why: message.slice(0, longestText),
      };
      if (type !== "Ready") return { level: "debug", message: "a condition of a flow has changed", fields };
      return status === "True"
        ? { level: "info", message: "events flow", fields }
        : { level: "warn", message: "events do not flow", fields };
    }
    case "broker state": {
      const { namespace, from, to, holders } = event;
      return { level: "info", message: "the Broker of a namespace", fields: { namespace, from, to, holders } };
    }
    case "cluster changed": {
      const { namespace, what, done, name } = event;
      const level = what === "mirror" ? "debug" : "info";
      return { level, message: `${done} in the cluster`, fields: { namespace, what, name } };
    }
    case "cluster refused": {
      const { namespace, what, name, error } = event;
      const why = (error instanceof Error ? error.message : String(error)).slice(0, longestText);
      return {
        level: "warn",
        message: "the cluster did not do what it was asked for",
        fields: { namespace, what, name, why },
      };
    }
    case "namespace looked at":
      return undefined;
  }
}
