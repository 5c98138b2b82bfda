import type { Context } from "@osbert/protocol";
import { instanceRef } from "../records/keys.js";
import type { InstanceOperation } from "./instance-operation.js";

/** What every provision says of its place: the deprecated fields must still be there, beside the context (P-PROV-02, P-PROV-03). */
export function requestContext({ key, input }: InstanceOperation): {
  readonly organization_guid: string;
  readonly space_guid: string;
  readonly context?: Context;
} {
  const { context } = input;
  const space = instanceRef(key)?.space ?? "";
  return {
    organization_guid: textOf(context.organization_guid) ?? space,
    space_guid: textOf(context.space_guid) ?? space,
    ...contextOf(context),
  };
}

/** `{}`: nothing is said, and so nothing is sent. */
export function contextOf(context: InstanceOperation["input"]["context"]): { readonly context?: Context } {
  return Object.keys(context).length === 0 ? {} : { context: context as Context };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
