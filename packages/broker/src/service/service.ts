import type { Json as JournalJson, Jsonified, ReturnsJson, Step, StepOptions } from "@osbert/journal";
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
import type { FromSchema, Schema } from "./schema.js";
import type { AsyncRules, Verb } from "./verbs.js";

/** A plan as an author writes it. Its name is its key in `plans`. */
export interface PlanDefinition {
  readonly id: string;
  readonly description: string;
  readonly free?: boolean;
  readonly metadata?: JsonObject;
  readonly bindable?: boolean;
  readonly bindingRotatable?: boolean;
  readonly planUpdateable?: boolean;
  /** Seconds. */
  readonly maximumPollingDuration?: number;
  readonly maintenanceInfo?: MaintenanceInfo;
  /** A binding needs an application: 422 RequiresApp without. */
  readonly requiresApp?: boolean;
  /** Schemas of the parameters: they stand in the catalog, are checked on every request, and give `parameters` its type. */
  readonly provision?: Schema;
  readonly update?: Schema;
  readonly bind?: Schema;
  readonly async?: AsyncRules;
}

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
    readonly parameters: ParametersOf<Plans[Name], Key>;
  } & Rest;
}[keyof Plans & string];

type ParametersOf<Plan, Key extends string> = Plan extends { readonly [K in Key]: infer S }
  ? FromSchema<S>
  : JsonObject;

type StateOf<S> = [S] extends [Schema] ? FromSchema<S> : JsonObject;

/** The instance that a function is about. */
export interface InstanceInfo {
  readonly id: string;
  readonly platform: string;
  readonly serviceId: string;
  readonly planId: string;
  readonly organizationGuid: string;
  readonly spaceGuid: string;
  readonly context: Context;
}

export interface BindingInfo {
  readonly id: string;
  readonly appGuid: string | null;
  readonly bindResource: JsonObject;
  readonly context: Context;
}

/** What every function is given besides. */
interface Common {
  readonly instance: InstanceInfo;
  readonly identity: OriginatingIdentity | null;
}

export type ProvisionInput<Plans, State> = WithPlan<
  Plans,
  "provision",
  Common & {
    /** What an earlier attempt at this instance that failed has saved. */
    readonly partial: Partial<StateOf<State>> | undefined;
  }
>;

export type UpdateInput<Plans, State> = WithPlan<
  Plans,
  "update",
  Common & {
    readonly state: StateOf<State>;
    /** As it was before this update. */
    readonly previous: { readonly plan: keyof Plans & string; readonly parameters: JsonObject };
    /** The platform asks for the plan's present maintenance version. */
    readonly maintenance: MaintenanceInfo | null;
  }
>;

export interface DeprovisionInput<Plans, State> extends Common {
  /** The plan's name; of a plan that is not offered any more, its id. */
  readonly plan: (keyof Plans & string) | (string & {});
  /** Partial, or missing: it also runs after a provision that failed or was cancelled. */
  readonly state: Partial<StateOf<State>> | undefined;
  /** What the steps of such a provision recorded, by name. */
  readonly steps: ReadonlyMap<string, JournalJson>;
}

export type BindInput<Plans, State, BindingState> = WithPlan<
  Plans,
  "bind",
  Common & {
    readonly binding: BindingInfo;
    readonly state: StateOf<State>;
    /** The binding that this one is to replace; both stay valid for a while. */
    readonly predecessor: { readonly id: string; readonly state: StateOf<BindingState> | undefined } | null;
  }
>;

export interface UnbindInput<Plans, State, BindingState> extends Common {
  readonly plan: (keyof Plans & string) | (string & {});
  readonly binding: BindingInfo;
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
  readonly dashboardUrl?: string;
  readonly metadata?: InstanceMetadata;
}

/**
 * A dashboard that only the end of the work knows is told to a platform that waited for it, and in the answer to a repeated request;
 * GET does not show what no answer has told. Where it is known before, give it in `prepare`.
 */
export interface ProvisionResult<State> extends Prepared {
  readonly state?: StateOf<State>;
}

/** What `provision` returns: what the state's schema requires must be there, where it requires nothing it may end without a word. */
export type ProvisionReturn<State> =
  RequiresNothing<StateOf<State>> extends true
    ? Maybe<ProvisionResult<State>>
    : ProvisionResult<State> & { readonly state: StateOf<State> };

/** What `bind` returns: `{}` for a binding that has nothing to give, but never nothing at all. */
export type BindReturn<BindingState> =
  RequiresNothing<StateOf<BindingState>> extends true
    ? BindResult<BindingState>
    : BindResult<BindingState> & { readonly state: StateOf<BindingState> };

type RequiresNothing<T> = Record<never, never> extends T ? true : false;

export interface BindResult<BindingState> {
  readonly credentials?: JsonObject;
  readonly endpoints?: readonly Endpoint[];
  readonly syslogDrainUrl?: string;
  readonly routeServiceUrl?: string;
  readonly volumeMounts?: readonly VolumeMount[];
  /** When the credentials end, and from when on they should be replaced. */
  readonly expiresAt?: Date;
  readonly renewBefore?: Date;
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
  readonly requestId: string | null;
  /**
   * A named piece of work whose result is recorded: after a crash or a retry it is not run again. Give the idempotency key, which
   * stays the same over attempts, to whatever can use one.
   */
  step<T>(
    name: string,
    work: ((step: Step) => Promise<T> | T) & ReturnsJson<T>,
    options?: StepOptions,
  ): Promise<Jsonified<T>>;
  /** Goes on after so long, in whichever process; the function is run anew then, past its recorded steps. */
  sleep(name: string, ms: number): Promise<void>;
  /** What `last_operation` says meanwhile. */
  describe(description: string): void;
  /** Keeps what is known so far, so that a later deprovision (or unbind) can undo it, whatever happens to this work. */
  saveState(state: Partial<State>): Promise<void>;
}

/** A request that hooks see before and after. */
export interface HookRequest {
  readonly verb: Verb;
  readonly service: string;
  readonly plan: string;
  readonly instance: InstanceInfo;
  readonly binding: BindingInfo | null;
  readonly parameters: JsonObject;
  readonly identity: OriginatingIdentity | null;
  readonly requestId: string | null;
}

export interface Hooks {
  /** Throw a BrokerError to refuse the request: nothing has happened yet. */
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
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly requires?: readonly Requirement[];
  /** Default: there is a `bind` function. */
  readonly bindable?: boolean;
  /** Default true. */
  readonly instancesRetrievable?: boolean;
  /** Default: as `bindable`. */
  readonly bindingsRetrievable?: boolean;
  readonly allowContextUpdates?: boolean;
  readonly planUpdateable?: boolean;
  readonly metadata?: JsonObject;
  readonly dashboardClient?: DashboardClient;
  readonly plans: Plans & NoOtherProperties<Plans, PlanDefinition>;
  /** What `provision` returns as state: checked, kept, and handed to the later calls. */
  readonly state?: State;
  readonly bindingState?: BindingState;
  readonly async?: AsyncRules;
  /** From request to end at the latest, per verb. Default 24 hours. */
  readonly deadlineMs?: Readonly<Partial<Record<Verb, number>>>;
  readonly hooks?: Hooks;

  /** What can be said before the work begins: the first answer must carry it. Pure: it may be called more than once. */
  prepare?(input: ProvisionInput<Plans, State>): Prepared;
  /** The same for an update that changes the dashboard's address or the metadata. */
  prepareUpdate?(input: UpdateInput<Plans, State>): Prepared;
  provision?(operation: Work<StateOf<State>>, input: ProvisionInput<Plans, State>): Promise<ProvisionReturn<State>>;
  update?(operation: Work<StateOf<State>>, input: UpdateInput<Plans, State>): Promise<Maybe<ProvisionResult<State>>>;
  deprovision?(operation: Work, input: DeprovisionInput<Plans, State>): Promise<void>;
  bind?(
    operation: Work<StateOf<BindingState>>,
    input: BindInput<Plans, State, BindingState>,
  ): Promise<BindReturn<BindingState>>;
  unbind?(operation: Work, input: UnbindInput<Plans, State, BindingState>): Promise<void>;
}

/** A service whose types have done their work: what the broker runs. */
// biome-ignore lint/suspicious/noExplicitAny: the author's types hold inside the definition; outside, every service is alike.
export type Service = ServiceDefinition<any, any, any>;

/** Describes a service. Objects and instances of classes will do; this adds nothing but the types. */
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
