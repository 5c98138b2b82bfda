import type { KindRules } from "./decisions/kind.js";
import type { EffectOptions, Operation, OperationKind } from "./engine/operation-kind.js";
import type { OperationKinds } from "./engine/runner.js";
import type { Json } from "./json.js";
import type { Failure, ListedOperation, NewOperation, OpenOperation, Outcome } from "./operation.js";
import type { Page, Part, PartPage } from "./page.js";
import type { Decide, Resource, ResourceChange } from "./resource.js";

/** What resources of one sort are made of, said once, as a type. All of it must be plain JSON. */
export interface ResourceShape {
  readonly data: unknown;
  /** By id, or by the form of ids, as in `` readonly [id: `binding/${string}`]: BindingRecord ``. */
  readonly parts: object;
  /** By kind: `{ input, result }`. */
  readonly operations: object;
  /** What each operation tells of itself while it is open; any JSON, or none, if it is not said. */
  readonly brief?: unknown;
}

type PartId<Shape extends ResourceShape> = keyof Shape["parts"] & string;
type Kind<Shape extends ResourceShape> = keyof Shape["operations"] & string;
/** What an operation of a kind is given. */
export type TypedInput<Shape extends ResourceShape, Name extends Kind<Shape>> = Shape["operations"][Name] extends {
  readonly input: infer Value;
}
  ? Value
  : null;
/** What an operation of a kind leaves behind when it succeeds. */
export type TypedResult<Shape extends ResourceShape, Name extends Kind<Shape>> = Shape["operations"][Name] extends {
  readonly result: infer Value;
}
  ? Value
  : null;

/** An operation, with the word that its resource's operations tell of themselves. */
type Briefed<Shape extends ResourceShape, Of> = Shape extends { readonly brief: infer Brief }
  ? Omit<Of, "brief"> & { readonly brief: Brief }
  : Of;

export type TypedOpenOperation<Shape extends ResourceShape> = Briefed<Shape, OpenOperation>;
export type TypedListedOperation<Shape extends ResourceShape> = Briefed<Shape, ListedOperation>;

/** Parts by id, each with the type that its id has. */
export interface TypedParts<Parts> extends Iterable<readonly [keyof Parts & string, Parts[keyof Parts]]> {
  readonly size: number;
  has(id: string): boolean;
  get<Id extends keyof Parts & string>(id: Id): Parts[Id] | undefined;
  keys(): IterableIterator<keyof Parts & string>;
}

export interface TypedResource<Shape extends ResourceShape> extends Omit<Resource, "data" | "parts" | "open"> {
  readonly data: Shape["data"];
  readonly parts: TypedParts<Shape["parts"]>;
  readonly open: readonly TypedListedOperation<Shape>[];
}

/** An operation to do, with the input that its kind takes. */
export type TypedNewOperation<Shape extends ResourceShape> = {
  [Name in Kind<Shape>]: Omit<Briefed<Shape, NewOperation>, "kind" | "input"> & {
    readonly kind: Name;
  } & (null extends TypedInput<Shape, Name>
      ? { readonly input?: TypedInput<Shape, Name> }
      : { readonly input: TypedInput<Shape, Name> });
}[Kind<Shape>];

export interface TypedChange<Shape extends ResourceShape> extends Omit<ResourceChange, "data" | "parts" | "accept"> {
  readonly data?: Shape["data"];
  readonly parts?: { readonly [Id in PartId<Shape>]?: Shape["parts"][Id] | null };
  readonly accept?: readonly TypedNewOperation<Shape>[];
}

export interface TypedDecision<Shape extends ResourceShape, Answer> {
  readonly result: Answer;
  readonly change?: TypedChange<Shape>;
}

export type TypedDecide<Shape extends ResourceShape, Answer> = (
  resource: TypedResource<Shape> | undefined,
  now: number,
) => TypedDecision<Shape, Answer>;

export type TypedOutcome<Value> =
  | { readonly kind: "succeeded"; readonly result: Value }
  | { readonly kind: "failed"; readonly error: Failure }
  | { readonly kind: "cancelled"; readonly reason: string };

export interface TypedOperation<Shape extends ResourceShape, Name extends Kind<Shape>>
  extends Omit<Operation, "kind" | "input" | "data" | "parts" | "partsUnder" | "change"> {
  readonly kind: Name;
  readonly input: TypedInput<Shape, Name>;
  readonly data: Shape["data"];
  parts<Id extends PartId<Shape>>(ids: readonly Id[]): Promise<TypedParts<Pick<Shape["parts"], Id>>>;
  partsUnder<Prefix extends string>(prefix: Prefix, page?: PartPage): Promise<Page<TypedPart<Shape, Prefix>>>;
  change(
    change: TypedOperationChange<Shape> | ((resource: TypedResource<Shape>) => TypedOperationChange<Shape>),
    options?: EffectOptions,
  ): Promise<void>;
}

export type TypedOperationChange<Shape extends ResourceShape> = Pick<
  TypedChange<Shape>,
  "data" | "labels" | "parts" | "entries" | "cancel"
>;

/** A part whose id begins with a prefix. */
export interface TypedPart<Shape extends ResourceShape, Prefix extends string> {
  readonly id: Extract<PartId<Shape>, `${Prefix}${string}`>;
  readonly value: Shape["parts"][Extract<PartId<Shape>, `${Prefix}${string}`>];
}

export interface TypedKind<Shape extends ResourceShape, Name extends Kind<Shape>>
  extends Omit<KindRules, "lane" | "reads" | "settle"> {
  readonly lane?: string | ((input: TypedInput<Shape, Name>) => string);
  readonly reads?: readonly PartId<Shape>[];
  run(operation: TypedOperation<Shape, Name>): Promise<TypedResult<Shape, Name>>;
  settle?(
    resource: TypedResource<Shape>,
    operation: TypedOpenOperation<Shape>,
    outcome: TypedOutcome<TypedResult<Shape, Name>>,
  ): TypedChange<Shape>;
}

/** The journal's own types beside those of a shape. Nothing happens in any of these: they say what is what. */
export interface ResourceType<Shape extends ResourceShape> {
  /** All kinds of its operations, as `openJournal` takes them. */
  kinds(kinds: { readonly [Name in Kind<Shape>]: TypedKind<Shape, Name> }): OperationKinds;
  /** A decision about such a resource, as `transact` takes it. */
  decide<Answer>(decide: TypedDecide<Shape, Answer>): Decide<Answer>;
  change(change: TypedChange<Shape>): ResourceChange;
  /** A resource that was read. */
  resource(resource: Resource): TypedResource<Shape>;
  resource(resource: Resource | undefined): TypedResource<Shape> | undefined;
  /** A part to write, or (`null`) to remove, whose id is made at run time. */
  part<Id extends PartId<Shape>>(id: Id, value: Shape["parts"][Id] | null): NonNullable<TypedChange<Shape>["parts"]>;
  /** A page of parts that was read by a prefix of their ids. */
  partsUnder<Prefix extends string>(prefix: Prefix, page: Page<Part>): Page<TypedPart<Shape, Prefix>>;
  /** What an operation was given, read from the entry that accepted it. */
  input<Name extends Kind<Shape>>(kind: Name, input: Json): TypedInput<Shape, Name>;
  outcome<Name extends Kind<Shape>>(kind: Name, outcome: Outcome): TypedOutcome<TypedResult<Shape, Name>>;
}

/**
 * Types a sort of resource once, so that nobody has to say again what its data, parts, inputs and results are. What is stored is taken
 * at its word: a program that reads what another version wrote checks it.
 *
 * @example
 * ```ts
 * import { defineResource, openJournal } from "@osbert/journal";
 * import { memoryStore } from "@osbert/journal/memory";
 *
 * const volumes = defineResource<{
 *   data: { phase: "creating" | "ready" };
 *   parts: { [id: `snapshot/${string}`]: { takenAt: number } };
 *   operations: { create: { input: { gigabytes: number }; result: { device: string } } };
 * }>();
 * const kinds = volumes.kinds({
 *   create: {
 *     run: async ({ input }) => ({ device: `disk of ${input.gigabytes} GB` }),
 *     settle: (_volume, _operation, outcome) => (outcome.kind === "succeeded" ? { data: { phase: "ready" } } : {}),
 *   },
 * });
 * const journal = await openJournal({ store: memoryStore(), kinds });
 * const by = { actor: { type: "user", subject: "anna" } } as const;
 * const create = volumes.decide(() => ({
 *   result: "accepted",
 *   change: { data: { phase: "creating" }, accept: [{ kind: "create", input: { gigabytes: 20 } }] },
 * }));
 * await journal.transact("volume-1", create, { by });
 * ```
 */
export function defineResource<Shape extends ResourceShape>(): ResourceType<Shape> {
  // The one place where types are put on what the journal keeps as JSON: it looks at none of it, and gives back what it was given.
  const retyped = <To>(value: unknown): To => value as To;
  return {
    kinds: (kinds) => retyped<Readonly<Record<string, OperationKind>>>(kinds),
    decide: (decide) => retyped(decide),
    change: (change) => retyped(change),
    resource: (resource: Resource | undefined) => retyped<TypedResource<Shape>>(resource),
    part: (id, value) => retyped({ [id]: value }),
    partsUnder: (_prefix, page) => retyped(page),
    input: (_kind, input) => retyped(input),
    outcome: (_kind, outcome) => retyped(outcome),
  };
}
