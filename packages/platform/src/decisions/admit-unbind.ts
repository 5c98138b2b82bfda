import { PlatformError } from "../errors.js";
import { instances, type UnbindInput } from "../records/instance-record.js";
import { partOfBinding } from "./binding-part.js";
import {
  type Admitting,
  askedBefore,
  carried,
  checkMatch,
  type Desk,
  decided,
  intentOf,
  lockOn,
  lookAhead,
  mustExist,
} from "./desk.js";
import { withoutHold } from "./queue-state.js";

/** The end of a binding. As a delete, it is taken however much is open. */
export function admitUnbind(desk: Desk, binding: string, serial: boolean): Admitting {
  const known = askedBefore(desk);
  if (known !== undefined) return { result: known };
  const data = mustExist(desk);
  const part = partOfBinding(binding);
  const record = desk.resource?.parts.get(part);
  if (record === undefined) throw new PlatformError("not-found", `there is no binding ${binding}`);
  const open = desk.queue.filter((operation) => operation.part === part && !operation.cancelled);
  const unbind = open.find(({ kind }) => kind === "unbind");
  if (unbind !== undefined) return { result: { kind: "repeated", operation: unbind.id } };
  checkMatch(desk);
  const ahead = lookAhead(desk, { op: "unbind" }, desk.desired, data);
  if (ahead !== undefined) return { result: ahead };
  const bind = open.find(({ kind }) => kind === "bind");
  const summary = `unbind ${binding}`;
  // What was never sent, or failed and is in the ledger where it may have left something, is no business of the broker's.
  if (bind !== undefined && !bind.sent) {
    const ending = new Set([bind.id]);
    const holds = withoutHold(desk.holds, (_reason, id) => ending.has(id));
    const cancel = [{ operation: bind.id, reason: `${summary} by ${desk.request.by}` }];
    return { ...decided(desk, { data, holds, summary, ending }, { cancel }), result: { kind: "done" } };
  }
  if (bind === undefined && record.phase === "failed") {
    const parts = instances.part(part, null);
    return { ...decided(desk, { data, holds: desk.holds, summary }, { parts }), result: { kind: "done" } };
  }
  const input: UnbindInput = { ...carried(desk, "unbind"), binding };
  const brief = { op: "unbind" as const, summary, paths: [], binding };
  // Beside its own bind it must not run: that has to be over before.
  const mode = serial || bind !== undefined ? ("exclusive" as const) : ("shared" as const);
  return decided(
    desk,
    { data, holds: desk.holds, summary },
    {
      accept: [{ ...intentOf(desk, "unbind", brief, lockOn(desk, true)), input, part, mode, deadlineMs: null }],
      parts: instances.part(part, { ...record, phase: "unbinding" }),
    },
  );
}
