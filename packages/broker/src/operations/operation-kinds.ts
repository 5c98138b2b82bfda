import { type OperationKinds, Permanent, type TypedKind } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import {
  type Settle,
  settleBind,
  settleDeprovision,
  settleProvision,
  settleUnbind,
  settleUpdate,
} from "../decisions/settle.js";
import { instanceParts } from "../records/instance-record.js";
import { type InstanceShape, instanceResource } from "../records/instance-resource.js";
import { sourceLane } from "../records/lane.js";
import type { Verb } from "../service/verb.js";
import { runBind } from "./run-bind.js";
import { runDeprovision } from "./run-deprovision.js";
import type { RunPorts } from "./run-ports.js";
import { runProvision } from "./run-provision.js";
import { runUnbind } from "./run-unbind.js";
import { runUpdate } from "./run-update.js";

/** The five kinds of operations, beside those of a source of services: each runs the author's function, and its end is settled in the instance's record. */
export function operationKinds(ports: RunPorts, ofSource: OperationKinds = {}): OperationKinds {
  const own = instanceResource.kinds({
    provision: kind(settleProvision, (operation) => runProvision(ports, operation)),
    update: kind(settleUpdate, (operation) => runUpdate(ports, operation)),
    deprovision: kind(settleDeprovision, (operation) => runDeprovision(ports, operation)),
    bind: kind(settleBind, (operation) => runBind(ports, operation)),
    unbind: kind(settleUnbind, (operation) => runUnbind(ports, operation)),
  });
  const taken = Object.keys(ofSource).filter((name) => Object.hasOwn(own, name));
  if (taken.length > 0) throw new Error(`kinds of operations of a source must not be called ${taken.join(", ")}`);
  const others = Object.entries(ofSource).map(([name, rules]) => [name, { ...rules, lane: sourceLane }] as const);
  return { ...Object.fromEntries(others), ...own };
}

function kind<Name extends Verb>(
  settle: Settle<Name>,
  run: TypedKind<InstanceShape, Name>["run"],
): TypedKind<InstanceShape, Name> {
  return { reads: instanceParts, settle, run: (operation) => run(operation).catch(asRefusal) };
}

/** An author who throws a BrokerError refuses the request: there is nothing to retry. */
function asRefusal(error: unknown): never {
  if (!(error instanceof BrokerError)) throw error;
  const { code, instanceUsable, updateRepeatable, status } = error;
  const details = { code, instanceUsable, updateRepeatable, rejected: status < 500 };
  throw new Permanent(error.message, { cause: error, details });
}
