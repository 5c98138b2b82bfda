import type { TypedKind, TypedOperation } from "@osbert/journal";
import type { InstanceShape } from "../records/instance-record.js";

export type InstanceKindName = keyof InstanceShape["operations"];

export type InstanceOperation<Name extends InstanceKindName = InstanceKindName> = {
  [Kind in Name]: TypedOperation<InstanceShape, Kind>;
}[Name];

/** What the end of an operation means for its instance: decided by those who decide about queues. */
export type Settle<Name extends InstanceKindName> = NonNullable<TypedKind<InstanceShape, Name>["settle"]>;
