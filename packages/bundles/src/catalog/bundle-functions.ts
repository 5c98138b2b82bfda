import { BrokerError, Failed, instanceKey, type Service, type Work } from "@osbert/broker";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { Action, BundleSpec } from "../formats/bundle-spec.js";
import type { PlanIdentity } from "../reconcile/records.js";
import type { ActionOutput } from "../runners/action-output.js";
import type { Artifact } from "../sources/source.js";
import { type ActionFacts, actionInput, type BundleState, nothingKept } from "./action-input.js";
import {
  type ActionPorts,
  type ActionRequest,
  type ActionResult,
  type LastWords,
  runAction,
  stopJobsOf,
} from "./run-action.js";
import { changesParameters, planFrom } from "./update-change.js";

/** A bundle at one revision, as its functions need it. */
export interface RunnableBundle {
  readonly serviceId: string;
  readonly spec: BundleSpec;
  readonly artifact: Artifact;
  readonly plans: readonly PlanIdentity[];
}

type Functions = Required<Pick<Service, "provision" | "update" | "deprovision" | "bind" | "unbind">>;

/** The five functions of a bundle's service: each runs an action of the bundle, at the revision that they were made for. */
export function bundleFunctions(ports: ActionPorts, bundle: RunnableBundle): Functions {
  const { serviceId, spec, artifact } = bundle;

  /** Runs an action to its end. What that means to a platform, if it is none of success, is thrown. */
  const act = async (action: Action, operation: Work, asked: Asked, about: About): Promise<ActionResult> => {
    const { plan, instance, identity, parameters } = asked;
    const { said = nothingToKeep, isOptional = false, ...known } = about;
    const facts: ActionFacts = {
      ...{ action, instance, identity, plan: planOf(bundle, plan), parameters: asObject(parameters) },
      ...{ service: { id: serviceId, name: spec.name }, binding: null, bindingState: nothingKept },
      ...{ previous: null, maintenance: null, instanceParameters: {} },
      ...known,
    };
    const secrets = ports.secrets(spec);
    const input = actionInput(spec, facts, secrets);
    const key = instanceKey(instance.platform, instance.id);
    const result = await runAction(ports, operation, { action, spec, artifact, key, input, secrets, said });
    return done(result, action, isOptional);
  };

  return {
    async provision(operation, asked) {
      const state = bundleState(asked.partial);
      const { output } = await act("provision", operation, asked, { state, said: saving(operation, state) });
      return { state: after(state, output), ...dashboard(output) };
    },

    async update(operation, asked) {
      const { previous, maintenance } = asked;
      const state = bundleState(asked.state);
      // F5-35: the revision alone moves, and for that nothing has to run. What changes more was refused before.
      if (!spec.actions.includes("update")) return { state: { ...state } };
      // Classic bundles say what actions they have when they are asked for one.
      const isOptional =
        maintenance !== null &&
        asked.plan === (planFrom(spec, previous.plan)?.name ?? previous.plan) &&
        !changesParameters(previous.parameters, asObject(asked.parameters));
      const instanceParameters = previous.parameters;
      const about = { state, previous, instanceParameters, maintenance, isOptional, said: saving(operation, state) };
      const { output } = await act("update", operation, asked, about);
      return { state: after(state, output), ...dashboard(output) };
    },

    async deprovision(operation, { steps, ...asked }) {
      let state = bundleState(asked.state);
      const hasBegun = await stopJobsOf(ports, operation, steps, async (words) => {
        state = after(state, words);
        await operation.saveState({ ...state });
      });
      // Of a provision that never began there is nothing to remove: its bundle may be one that cannot be run here at all.
      if (asked.state === undefined && !hasBegun) return;
      await act("deprovision", operation, asked, { state });
    },

    async bind(operation, asked) {
      const state = bundleState(asked.state);
      const about = { state, binding: asked.binding, isOptional: true, said: saving(operation, nothingKept) };
      const { end, output } = await act("bind", operation, asked, about);
      // A bundle that has nothing to do for a binding gives out what its provision gave.
      const credentials = end.kind === "not known" ? state.credentials : output.credentials;
      return { credentials: credentials ?? {}, state: { ...after(nothingKept, output), credentials } };
    },

    async unbind(operation, { steps, ...asked }) {
      let bindingState = bundleState(asked.bindingState);
      await stopJobsOf(ports, operation, steps, async (words) => {
        bindingState = after(bindingState, words);
        await operation.saveState({ ...bindingState });
      });
      const state = bundleState(asked.state);
      const { binding, instanceParameters } = asked;
      await act("unbind", operation, asked, { state, bindingState, binding, instanceParameters, isOptional: true });
    },
  };
}

/** What every function is asked with. */
interface Asked extends Pick<ActionFacts, "instance" | "identity"> {
  /** By name; by id, if it has left the bundle. */
  readonly plan: string;
  readonly parameters?: unknown;
}

/** What an action is told beyond that, and where what it says is kept. */
type About = Pick<ActionFacts, "state"> &
  Partial<Pick<ActionFacts, "bindingState" | "binding" | "previous" | "maintenance" | "instanceParameters">> &
  Partial<Pick<ActionRequest, "said">> & {
    /** A bundle that does not have the action has nothing to do. */
    readonly isOptional?: boolean;
  };

const nothingToKeep = async () => undefined;

/** Of a plan that left the bundle, the broker tells the id alone. */
function planOf({ plans }: RunnableBundle, nameOrId: string): PlanIdentity {
  return plans.find(({ id, name }) => name === nameOrId || id === nameOrId) ?? { id: nameOrId, name: nameOrId };
}

/** What was kept by an earlier version may lack something. */
function bundleState(kept: unknown): BundleState {
  const { state, credentials } = asObject(kept);
  return { state: asObject(state), credentials: isJsonObject(credentials) ? credentials : null };
}

/** At once, while the bundle runs: a deprovision has to know it, whatever becomes of this. */
function saving(operation: Work, before: BundleState): (output: ActionOutput) => Promise<void> {
  return (output) => operation.saveState({ ...after(before, output) });
}

function after(
  { state, credentials }: BundleState,
  output: LastWords,
): { state: JsonObject; credentials: JsonObject | null } {
  return { state: { ...state, ...output.state }, credentials: output.credentials ?? credentials };
}

function dashboard({ dashboard: dashboardUrl }: ActionOutput): { readonly dashboardUrl?: string } {
  return dashboardUrl === null ? {} : { dashboardUrl };
}

/** Throws what an end that is none of success means to a platform. */
function done(result: ActionResult, action: Action, isOptional: boolean): ActionResult {
  const { end } = result;
  switch (end.kind) {
    case "done":
      return result;
    case "not known":
      if (isOptional) return result;
      throw new Failed(`the bundle has no action ${action}`);
    case "refused":
      throw new BrokerError("bad-request", end.text);
    case "failed":
      throw new Failed(`${action} failed: ${end.reason}`);
  }
}

/** Parameters of a service without types are any JSON; the wire lets objects in alone. */
function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
