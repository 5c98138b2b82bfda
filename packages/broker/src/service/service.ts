import type {
  Json as JournalJson,
  Jsonified,
  Look,
  PollOptions,
  ReturnsJson,
  Step,
  StepOptions,
} from "@osbert/journal";
import type {
  Binding,
  Context,
  DashboardClient,
  Endpoint,
  InstanceMetadata,
  JsonObject,
  MaintenanceInfo,
  OriginatingIdentity,
  Requirement,
  VolumeMount,
} from "@osbert/protocol";
import type { FromSchema, Schema } from "@osbert/server/schemas";
import type { AsyncRules } from "./async-rule.js";
import type { Verb } from "./verb.js";

/** A plan as an author writes it. Its name is its key in `plans`. */
export interface PlanDefinition {
  /** Unique over all plans of all services, and for ever: platforms keep it. A UUID, for instance. */
  readonly id: string;
  /** What the plan gives, in a sentence, for whoever chooses it. */
  readonly description: string;
  /** Whether it costs nothing. Default true, as in the specification: say `false` of a plan that costs something. */
  readonly free?: boolean;
  /** What a marketplace shows besides: `displayName`, `bullets`, `costs`… */
  readonly metadata?: JsonObject;
  /** Whether instances of it can be bound. Default: as the service says. */
  readonly bindable?: boolean;
  /**
   * Whether a binding may be replaced by a new one, both valid for a while: `bind` then gets a `predecessor`. Default false.
   */
  readonly bindingRotatable?: boolean;
  /** Whether an instance of this plan may change to another one. Default: as the service says. */
  readonly planUpdateable?: boolean;
  /** Seconds. */
  readonly maximumPollingDuration?: number;
  /**
   * The version of what runs below. A platform asks for an update when it changes; `update` then gets it as `maintenance`.
   */
  readonly maintenanceInfo?: MaintenanceInfo;
  /** A binding needs an application: 422 RequiresApp without. */
  readonly requiresApp?: boolean;
  /** Schemas of the parameters: they stand in the catalog, are checked on every request, and give `parameters` its type. */
  readonly provision?: Schema;
  /** The same for the parameters of an update. */
  readonly update?: Schema;
  /** The same for the parameters of a binding. */
  readonly bind?: Schema;
  /** Whether its verbs are answered before they are done. Default: as the service says. */
  readonly async?: AsyncRules;
}

/** Plans by their names. */
export type PlanDefinitions = Readonly<Record<string, PlanDefinition>>;

/** A property that is misspelt is one that nobody reads; those of a type that is inferred are not compared with any by themselves. */
type NoOtherProperties<Given, Known> = {
  readonly [Name in keyof Given]: { readonly [Other in Exclude<keyof Given[Name], keyof Known>]?: NoSuchProperty };
};

/** Its one member is there to be read in the compiler's message. */
interface NoSuchProperty {
  readonly "a plan has no such property": never;
}

/** Parameters by plan: `plan` tells which. */
type WithPlan<Plans, Key extends "provision" | "update" | "bind", Rest> = {
  readonly [Name in keyof Plans & string]: {
    /** The name of the plan. */
    readonly plan: Name;
    /** What the platform sent, checked by the plan's schema. Without one, any JSON object. */
    readonly parameters: ParametersOf<Plans[Name], Key>;
  } & Rest;
}[keyof Plans & string];

/** The type that a plan's schema for a verb gives; without a schema, any JSON object. */
type ParametersOf<Plan, Key extends string> = Plan extends { readonly [K in Key]: infer S }
  ? FromSchema<S>
  : JsonObject;

/** The type that a schema of state gives; without a schema, any JSON object. */
type StateOf<S> = [S] extends [Schema] ? FromSchema<S> : JsonObject;

/** The instance that a function is about. */
export interface InstanceInfo {
  /**
   * As the platform chose it. It comes from outside and may be any text, a path included. Two platforms may use the same.
   */
  readonly id: string;
  /** The platform whose id it is; "" for a broker with one. */
  readonly platform: string;
  /** The service's id in the catalog. */
  readonly serviceId: string;
  /** The id of the plan that it has now. */
  readonly planId: string;
  /** The organization it belongs to, in the platform's words. */
  readonly organizationGuid: string;
  /** The space it belongs to, in the platform's words. */
  readonly spaceGuid: string;
  /** What else the platform says of the place it is in: `platform`, `namespace`, names and annotations. */
  readonly context: Context;
}

/** The binding that a function is about. */
export interface BindingInfo {
  /** As the platform chose it; any text. */
  readonly id: string;
  /** The application that is bound, if it is one. */
  readonly appGuid: string | null;
  /** What the binding is for: an application, a route, a space… */
  readonly bindResource: JsonObject;
  /** What the platform says of the place it is in. */
  readonly context: Context;
}

/** What every function is given besides. */
interface Common {
  /** The instance that it is about. */
  readonly instance: InstanceInfo;
  /** The user on whose behalf the platform asks, if it says so. */
  readonly identity: OriginatingIdentity | null;
}

/** What `provision` and `prepare` are given. */
export type ProvisionInput<Plans, State> = WithPlan<
  Plans,
  "provision",
  Common & {
    /** What an earlier attempt at this instance that failed has saved. */
    readonly partial: Partial<StateOf<State>> | undefined;
  }
>;

/**
 * What `update` and `prepareUpdate` are given. The plan is the one that the instance is to have; parameters are those of the update
 * alone.
 */
export type UpdateInput<Plans, State> = WithPlan<
  Plans,
  "update",
  Common & {
    /** What the instance's state is now. */
    readonly state: StateOf<State>;
    /** As it was before this update. */
    readonly previous: { readonly plan: keyof Plans & string; readonly parameters: JsonObject };
    /** The platform asks for the plan's present maintenance version. */
    readonly maintenance: MaintenanceInfo | null;
  }
>;

/** What `deprovision` is given. */
export interface DeprovisionInput<Plans, State> extends Common {
  /** The plan's name; of a plan that is not offered any more, its id. */
  readonly plan: (keyof Plans & string) | (string & {});
  /** What the instance was asked for with: those of its provision, with those of all updates that were done. */
  readonly parameters: JsonObject;
  /** Partial, or missing: it also runs after a provision that failed or was cancelled. */
  readonly state: Partial<StateOf<State>> | undefined;
  /** What the steps of such a provision recorded, by name. */
  readonly steps: ReadonlyMap<string, JournalJson>;
}

/** What `bind` is given. */
export type BindInput<Plans, State, BindingState> = WithPlan<
  Plans,
  "bind",
  Common & {
    /** The binding that is to be made. */
    readonly binding: BindingInfo;
    /** What the instance's state is. */
    readonly state: StateOf<State>;
    /** The binding that this one is to replace; both stay valid for a while. */
    readonly predecessor: { readonly id: string; readonly state: StateOf<BindingState> | undefined } | null;
  }
>;

/** What `unbind` is given. */
export interface UnbindInput<Plans, State, BindingState> extends Common {
  /** The plan's name; of a plan that is not offered any more, its id. */
  readonly plan: (keyof Plans & string) | (string & {});
  /** What the binding was asked for with. */
  readonly parameters: JsonObject;
  /** What the instance was asked for with, as `deprovision` is given them. */
  readonly instanceParameters: JsonObject;
  /** The binding that is to go. */
  readonly binding: BindingInfo;
  /** The instance's state. Partial, or missing, where its provision did not end well. */
  readonly state: Partial<StateOf<State>> | undefined;
  /** Missing after a bind that failed or was cancelled before it saved any. */
  readonly bindingState: Partial<StateOf<BindingState>> | undefined;
  /** What the steps of such a bind recorded, by name. */
  readonly steps: ReadonlyMap<string, JournalJson>;
}

/** A function may end without saying anything. */
// biome-ignore lint/suspicious/noConfusingVoidType: an async method of a class that returns nothing has this type.
export type Maybe<T> = T | undefined | void;

/** What is known before the work begins: the first answer must carry it. */
export interface Prepared {
  /** Where a user manages the instance. */
  readonly dashboardUrl?: string;
  /** `labels` and `attributes` that the platform shows with the instance. */
  readonly metadata?: InstanceMetadata;
}

/**
 * A dashboard that only the end of the work knows is told to a platform that waited for it, and in the answer to a repeated request;
 * GET does not show what no answer has told. Where it is known before, give it in `prepare`.
 */
export interface ProvisionResult<State> extends Prepared {
  /** Replaces all that is kept of the instance. Without it, that stays as it is. */
  readonly state?: StateOf<State>;
}

/** What `provision` returns: what the state's schema requires must be there, where it requires nothing it may end without a word. */
export type ProvisionReturn<State> =
  RequiresNothing<StateOf<State>> extends true
    ? Maybe<ProvisionResult<State>>
    : ProvisionResult<State> & {
        /** All that is to be kept of the instance. */
        readonly state: StateOf<State>;
      };

/** What `bind` returns: `{}` for a binding that has nothing to give, but never nothing at all. */
export type BindReturn<BindingState> =
  RequiresNothing<StateOf<BindingState>> extends true
    ? BindResult<BindingState>
    : BindResult<BindingState> & {
        /** All that is to be kept of the binding, for `unbind`. */
        readonly state: StateOf<BindingState>;
      };

type RequiresNothing<T> = Record<never, never> extends T ? true : false;

/** What `bind` gives to the platform, and what is to be remembered. */
export interface BindResult<BindingState> {
  /** What an application needs to use the instance: a JSON object, handed to it as it is. */
  readonly credentials?: JsonObject;
  /** Hosts and ports that the application will connect to, for platforms that open ways. */
  readonly endpoints?: readonly Endpoint[];
  /** Where the platform is to send the application's logs. Needs `"syslog_drain"` in `requires`. */
  readonly syslogDrainUrl?: string;
  /** The proxy for the application's requests. Needs `"route_forwarding"` in `requires`. */
  readonly routeServiceUrl?: string;
  /** Volumes to mount. Needs `"volume_mount"` in `requires`. */
  readonly volumeMounts?: readonly VolumeMount[];
  /** When the credentials end, and from when on they should be replaced. */
  readonly expiresAt?: Date;
  /** From when on the credentials should be replaced. Needs `expiresAt`. */
  readonly renewBefore?: Date;
  /** What has to be remembered of the binding, for `unbind`. Replaces what was saved. */
  readonly state?: StateOf<BindingState>;
}

/** The work under way: durable steps, waits and words. */
export interface Work<State = JsonObject> {
  /** Unique; the same over attempts and restarts. */
  readonly id: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Aborted when the work must stop: cancelled by a delete, past its deadline, or the process stops. */
  readonly signal: AbortSignal;
  /** Of the request that asked for it, as the platform sent it or else as the broker made it: for your logs. */
  readonly requestId: string | null;
  /**
   * A named piece of work whose result is recorded: after a crash or a retry it is not run again, and what it returned comes back from
   * the record, as JSON makes it. It may be killed between its effect and its record, so write it such that it can run twice. Give the
   * idempotency key, which stays the same over attempts, to whatever can use one. Names are unique in an operation. Await it.
   *
   * @example
   * ```ts
   * import type { Work } from "@osbert/broker";
   *
   * declare const cloud: { order(key: string): Promise<string> };
   *
   * export async function provision(operation: Work) {
   *   const machine = await operation.step("order a machine", ({ idempotencyKey }) => cloud.order(idempotencyKey));
   *   return { state: { machine } };
   * }
   * ```
   */
  step<T>(
    name: string,
    work: ((step: Step) => Promise<T> | T) & ReturnsJson<T>,
    options?: StepOptions,
  ): Promise<Jsonified<T>>;
  /**
   * Goes on after so long, in whichever process; the function is run anew then, past its recorded steps. Nothing is held meanwhile: the
   * wait is in the store, and a restart does not change its end. It ends the run by throwing: let that pass, do not catch it.
   *
   * @example
   * ```ts
   * import type { Work } from "@osbert/broker";
   *
   * declare const cloud: { order(): Promise<string>; install(machine: string): Promise<void> };
   *
   * export async function provision(operation: Work) {
   *   const machine = await operation.step("order a machine", () => cloud.order());
   *   await operation.sleep("the machine boots", 30_000);
   *   await operation.step("install", () => cloud.install(machine));
   * }
   * ```
   */
  sleep(name: string, ms: number): Promise<void>;
  /**
   * Looks again and again until `look` answers something other than `undefined`, and records that as a step does. Between two looks nothing
   * is held, for days if need be, and no entry of the journal tells of a look that saw nothing. `RetryLater`, thrown by `look`, says when to
   * look next for once; any other error is tried again as everywhere. As `sleep`, it ends the run by throwing: do not catch that.
   *
   * @example
   * ```ts
   * import type { Work } from "@osbert/broker";
   *
   * declare const cloud: { order(): Promise<string>; addressOf(machine: string): Promise<string | undefined> };
   *
   * export async function provision(operation: Work) {
   *   const machine = await operation.step("order a machine", () => cloud.order());
   *   const address = await operation.poll("the machine boots", () => cloud.addressOf(machine), { everyMs: 10_000 });
   *   return { state: { machine, address } };
   * }
   * ```
   */
  poll<T>(
    name: string,
    look: ((look: Look) => Promise<T | undefined> | T | undefined) & ReturnsJson<T>,
    options: PollOptions,
  ): Promise<Jsonified<T>>;
  /** What `last_operation` says until the work has ended. */
  describe(description: string): void;
  /**
   * Keeps what is known so far, key by key, so that a later deprovision (or unbind) can undo it, whatever happens to this work. It is
   * durable once it resolves.
   *
   * @example
   * ```ts
   * import type { Work } from "@osbert/broker";
   *
   * declare const cloud: { order(): Promise<string>; install(machine: string): Promise<number> };
   *
   * export async function provision(operation: Work<{ machine: string; port: number }>) {
   *   const machine = await operation.step("order a machine", () => cloud.order());
   *   await operation.saveState({ machine }); // deprovision knows it, even if nothing after this line succeeds
   *   const port = await operation.step("install", () => cloud.install(machine));
   *   return { state: { machine, port } };
   * }
   * ```
   */
  saveState(state: Partial<State>): Promise<void>;
}

/** A request that hooks see before and after. */
export interface HookRequest {
  /** What is asked for. */
  readonly verb: Verb;
  /** The service's name. */
  readonly service: string;
  /** The plan's name. */
  readonly plan: string;
  /** The instance that it is about. */
  readonly instance: InstanceInfo;
  /** The binding that it is about, if it is one. */
  readonly binding: BindingInfo | null;
  /** What the platform sent. */
  readonly parameters: JsonObject;
  /** The user on whose behalf the platform asks, if it says so. */
  readonly identity: OriginatingIdentity | null;
  /** Of the request, as the platform sent it or else as the broker made it. */
  readonly requestId: string | null;
}

/** Functions around every verb of a service: quotas before, notes after. */
export interface Hooks {
  /**
   * Throw a BrokerError to refuse the request: nothing has happened yet. That of the revision is asked which does the work; of a delete, while
   * a source cannot tell it, that of the service which is offered now.
   */
  before?(request: HookRequest): Promise<void> | void;
  /** After the operation has ended well, as its last step. Throwing fails the operation. */
  after?(request: HookRequest): Promise<void> | void;
}

/** A service as an author writes it: what the catalog says of it, and up to five functions. */
export interface ServiceDefinition<
  Plans extends PlanDefinitions = PlanDefinitions,
  State extends Schema | undefined = Schema | undefined,
  BindingState extends Schema | undefined = Schema | undefined,
> {
  /** Unique, and for ever: platforms keep it. A UUID, for instance. */
  readonly id: string;
  /** What users type. Lower case, without blanks. */
  readonly name: string;
  /** What the service is, in a sentence. */
  readonly description: string;
  /** Words by which applications find it, such as "postgresql". */
  readonly tags?: readonly string[];
  /** Permissions that the user has to give: `syslog_drain`, `route_forwarding`, `volume_mount`. */
  readonly requires?: readonly Requirement[];
  /** Default: there is a `bind` function. */
  readonly bindable?: boolean;
  /** Default true. */
  readonly instancesRetrievable?: boolean;
  /** Default: as `bindable`. */
  readonly bindingsRetrievable?: boolean;
  /** Whether the platform may send updates that change nothing but the context. Default false. */
  readonly allowContextUpdates?: boolean;
  /** Whether instances may change their plan, which needs an `update` function. Default false. */
  readonly planUpdateable?: boolean;
  /** What a marketplace shows besides: `displayName`, `imageUrl`, `documentationUrl`… */
  readonly metadata?: JsonObject;
  /** The OAuth client of the service's dashboard, for platforms that sign users in. */
  readonly dashboardClient?: DashboardClient;
  /** Its plans by their names. At least one. */
  readonly plans: Plans & NoOtherProperties<Plans, PlanDefinition>;
  /** What `provision` returns as state: checked, kept, and handed to the later calls. */
  readonly state?: State;
  /** The same for what `bind` returns as state: handed to `unbind`. */
  readonly bindingState?: BindingState;
  /** Whether its verbs are answered before they are done. Default: asynchronously if the platform accepts that. */
  readonly async?: AsyncRules;
  /** From request to end at the latest, per verb. Default 24 hours. */
  readonly deadlineMs?: Readonly<Partial<Record<Verb, number>>>;
  /** Called around every verb. */
  readonly hooks?: Hooks;

  /**
   * Of the service as a whole: its functions, plans and schemas. For services that come from a source, which then can say what they were
   * at an earlier one: instances go on with the revision that they were made of until they are upgraded; after an upgrade that failed, with what that has
   * saved. Short, at most 256 bytes.
   */
  readonly revision?: string;
  /** What can be said before the work begins: the first answer must carry it. Pure: it may be called more than once. */
  prepare?(input: ProvisionInput<Plans, State>): Prepared;
  /** The same for an update that changes the dashboard's address or the metadata. */
  prepareUpdate?(input: UpdateInput<Plans, State>): Prepared;
  /**
   * Makes an instance. It may be killed at any instruction, and is then run again from its first line, past its recorded steps. Without
   * it there is nothing to make.
   */
  provision?(operation: Work<StateOf<State>>, input: ProvisionInput<Plans, State>): Promise<ProvisionReturn<State>>;
  /** Changes an instance: its parameters, its plan, its context. */
  update?(operation: Work<StateOf<State>>, input: UpdateInput<Plans, State>): Promise<Maybe<ProvisionResult<State>>>;
  /**
   * Removes an instance. It also undoes a provision that failed or was cancelled, and then finds what was saved and recorded.
   */
  deprovision?(operation: Work, input: DeprovisionInput<Plans, State>): Promise<void>;
  /** Makes a binding, and returns what the application needs. `{}`: there is nothing to give. */
  bind?(
    operation: Work<StateOf<BindingState>>,
    input: BindInput<Plans, State, BindingState>,
  ): Promise<BindReturn<BindingState>>;
  /** Removes a binding. It also undoes a bind that failed or was cancelled. */
  unbind?(operation: Work, input: UnbindInput<Plans, State, BindingState>): Promise<void>;
}

/** A service whose types have done their work: what the broker runs. */
// biome-ignore lint/suspicious/noExplicitAny: the author's types hold inside the definition; outside, every service is alike.
export type Service = ServiceDefinition<any, any, any>;

/**
 * Describes a service. Objects and instances of classes will do; this adds nothing but the types.
 *
 * @example
 * ```ts
 * import { defineService } from "@osbert/broker";
 *
 * export const greeter = defineService({
 *   id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10",
 *   name: "greeter",
 *   description: "Says hello",
 *   plans: {
 *     polite: {
 *       id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f11",
 *       description: "With a title",
 *       provision: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
 *     },
 *   },
 *   state: { type: "object", properties: { greeting: { type: "string" } }, required: ["greeting"] },
 *   async provision(operation, { parameters }) {
 *     const greeting = await operation.step("choose words", () => `Good day, ${parameters.title}`);
 *     return { state: { greeting } };
 *   },
 *   async bind(_operation, { state }) {
 *     return { credentials: { greeting: state.greeting } };
 *   },
 * });
 * ```
 */
export function defineService<
  const Plans extends PlanDefinitions,
  const State extends Schema | undefined = undefined,
  const BindingState extends Schema | undefined = undefined,
>(definition: ServiceDefinition<Plans, State, BindingState>): Service {
  return definition;
}

/** What a binding tells the platform, on the wire. */
export function toBinding(result: BindResult<Schema | undefined>): Binding {
  return {
    ...(result.credentials !== undefined && { credentials: result.credentials }),
    ...(result.endpoints !== undefined && { endpoints: result.endpoints }),
    ...(result.syslogDrainUrl !== undefined && { syslog_drain_url: result.syslogDrainUrl }),
    ...(result.routeServiceUrl !== undefined && { route_service_url: result.routeServiceUrl }),
    ...(result.volumeMounts !== undefined && { volume_mounts: result.volumeMounts }),
    ...((result.expiresAt ?? result.renewBefore) !== undefined && {
      metadata: {
        ...(result.expiresAt !== undefined && { expires_at: result.expiresAt.toISOString() }),
        ...(result.renewBefore !== undefined && { renew_before: result.renewBefore.toISOString() }),
      },
    }),
  };
}
