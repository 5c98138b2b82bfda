import { RetryLater } from "@osbert/journal";
import { type PreflightIntent, preflight } from "../decisions/preflight.js";
import { freezeOf } from "../records/freeze-record.js";
import type {
  AdoptInput,
  BindInput,
  CreateInput,
  InstanceData,
  IntentInput,
  UpdateInput,
} from "../records/instance-record.js";
import { instanceRef } from "../records/keys.js";
import type { BrokerPort } from "./broker-port.js";

/** While a freeze holds: nobody has to be told when it ends. */
const frozenMs = 15_000;

interface Rechecked {
  readonly key: string;
  readonly input: IntentInput;
  readonly data: InstanceData;
}

/**
 * The second look, before anything of an operation is sent (E6). Answers what is wrong by now, in a sentence. What is frozen waits, whatever the
 * freeze says to what is new.
 */
export function recheck(port: BrokerPort, now: () => number): (operation: Rechecked) => string | null {
  return ({ key, input, data }) => {
    const ref = instanceRef(key);
    if (ref === undefined) return null;
    const plan = data.applied?.plan.id ?? null;
    const intent = intentOf(input);
    const wanted = intent !== undefined && "plan" in intent ? intent.plan : null;
    const plans = [plan, wanted].filter((id) => typeof id === "string");
    const isDelete = input.op === "delete" || input.op === "unbind";
    const freeze = freezeOf(port.freezes(), { space: ref.space, broker: data.broker, plans, isDelete }, now());
    if (freeze !== undefined)
      throw new RetryLater(`changes are frozen by ${freeze.by}: ${freeze.reason}`, { afterMs: frozenMs });
    if (intent === undefined) return null;
    const report = preflight(intent, {
      space: ref.space,
      name: ref.name,
      brokerName: data.broker,
      freezes: [],
      now: now(),
      visibilities: port.visibilities(),
      health: port.broker(data.broker)?.health,
      offering: port.offering(data.broker, data.offering.id),
      instance:
        intent.op === "create" || intent.op === "adopt" || plan === null
          ? null
          : // Its phase says what is under way: this.
            { phase: "ready", plan, usable: data.usable, bindings: data.bindings },
      checkParameters: port.checkParameters,
    });
    // A broker that is not registered is waited for; so is one that has not told its catalog yet.
    const wrong = report.findings.filter(
      ({ severity, rule }) => severity === "error" && rule !== "broker-unknown" && rule !== "offering-unknown",
    );
    return wrong.length === 0 ? null : wrong.map(({ message }) => message).join("; ");
  };
}

/** `undefined`: there is nothing more to look at than there was. */
function intentOf(input: IntentInput): PreflightIntent | undefined {
  switch (input.op) {
    case "create": {
      const { plan, parameters } = input as CreateInput;
      return { op: "create", plan: plan.id, parameters };
    }
    case "adopt":
      return { op: "adopt", plan: (input as AdoptInput).plan.id };
    case "update": {
      const { text } = input as UpdateInput;
      return { op: "update", plan: text.plan?.id ?? null, parameters: text.parameters };
    }
    case "bind": {
      const { binding, parameters } = input as BindInput;
      return { op: "bind", binding, parameters };
    }
    case "rotate":
      return { op: "rotate", binding: (input as BindInput).binding, predecessorExpiresAt: null };
    // Maintenance is what the broker itself answers a conflict to, and the executor knows what to do then.
    case "upgrade":
    case "refresh":
    case "delete":
    case "unbind":
      return undefined;
  }
}
