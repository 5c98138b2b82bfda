import { PlatformError } from "../errors.js";
import { type BindInput, type BindingRecord, instances } from "../records/instance-record.js";
import { partOfBinding } from "./binding-part.js";
import {
  type Admitting,
  askedBefore,
  carried,
  checkConcurrency,
  checkMatch,
  checkNotDeleting,
  checkRoom,
  type Desk,
  decided,
  intentOf,
  lockOn,
  lookAhead,
  mustExist,
} from "./desk.js";
import { isSuccessorOf } from "./same-binding.js";

export interface WantedBinding {
  readonly name: string;
  readonly parameters: string | null;
  readonly appGuid: string | null;
  /** The name of the binding that this one replaces. */
  readonly predecessor: string | null;
  /** The broker's binds of this offering go one after the other. */
  readonly serial: boolean;
}

/** Bindings of one instance. */
const mostBindings = 100;

/** Records of bindings, those that failed included: whoever decides about an instance reads all of them. */
const mostRecords = 200;

/** A bind, or the successor of a binding that is rotated (P-ROT-02). */
export function admitBind(desk: Desk, wanted: WantedBinding): Admitting {
  const known = askedBefore(desk);
  if (known !== undefined) return { result: known };
  const data = mustExist(desk);
  checkMatch(desk);
  checkNotDeleting(desk);
  const { request, resource, now } = desk;
  const op = wanted.predecessor === null ? ("bind" as const) : ("rotate" as const);
  const old = wanted.predecessor === null ? undefined : resource?.parts.get(partOfBinding(wanted.predecessor));
  if (op === "rotate" && old === undefined)
    throw new PlatformError("not-found", `there is no binding ${wanted.predecessor}`);
  const heir = old === undefined ? undefined : heirOf(desk, old, wanted.predecessor ?? "");
  // A successor that could not be bound, or is gone, is none.
  if (old !== undefined && (old.phase !== "bound" || (heir !== undefined && heir.phase !== "failed")))
    throw new PlatformError("busy", "only a binding that is bound, and has no successor, can be rotated");
  const part = partOfBinding(wanted.name);
  const same = resource?.parts.get(part);
  if (same !== undefined && same.phase !== "failed")
    throw new PlatformError("exists", `there is a binding ${wanted.name}, and it is ${same.phase}`);
  const { parameters } = wanted;
  const intent =
    op === "bind"
      ? ({ op, binding: wanted.name, parameters } as const)
      : ({ op, binding: wanted.name, predecessorExpiresAt: old?.expiresAt ?? null } as const);
  const ahead = lookAhead(desk, intent, desk.desired, data);
  if (ahead !== undefined) return { result: ahead };
  checkConcurrency(desk);
  checkRoom(desk);
  if (data.bindings >= mostBindings)
    throw new PlatformError("too-many", `the instance has ${data.bindings} bindings; ${mostBindings} are allowed`);
  const records = [...(resource?.parts.keys() ?? [])].filter((id) => id.startsWith("binding/") && id !== part).length;
  if (records >= mostRecords)
    throw new PlatformError(
      "too-many",
      `${records} bindings are known, most of which failed; unbind some of those first`,
    );
  const heldFor = lockOn(desk, false);
  const summary = op === "bind" ? `bind ${wanted.name}` : `rotate ${wanted.predecessor} to ${wanted.name}`;
  const record: BindingRecord = {
    id: request.newId,
    osbId: request.newId,
    phase: "binding",
    createdBy: request.by,
    createdAt: now,
    parameters,
    appGuid: wanted.appGuid,
    answer: null,
    expiresAt: null,
    renewBefore: null,
    predecessor: wanted.predecessor,
    ...(old !== undefined && { predecessorId: old.id }),
    successor: null,
    message: null,
  };
  const input: BindInput = {
    ...carried(desk, op),
    binding: wanted.name,
    osbId: record.osbId,
    parameters,
    appGuid: wanted.appGuid,
    predecessor: old?.osbId ?? null,
  };
  const brief = { op, summary, paths: [], binding: wanted.name };
  return decided(
    desk,
    { data: { ...data, bindings: data.bindings + 1 }, holds: desk.holds, summary },
    {
      accept: [
        { ...intentOf(desk, "bind", brief, heldFor), input, part, mode: wanted.serial ? "exclusive" : "shared" },
      ],
      parts: {
        ...instances.part(part, record),
        ...(old !== undefined &&
          wanted.predecessor !== null &&
          instances.part(partOfBinding(wanted.predecessor), { ...old, successor: wanted.name })),
      },
    },
  );
}

/** The binding that takes the place of this one, and not another that has its name by now. */
function heirOf({ resource }: Desk, old: BindingRecord, name: string): BindingRecord | undefined {
  const heir = old.successor === null ? undefined : resource?.parts.get(partOfBinding(old.successor));
  return heir !== undefined && isSuccessorOf(heir, { ...old, name }) ? heir : undefined;
}
