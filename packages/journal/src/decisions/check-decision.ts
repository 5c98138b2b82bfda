import { JournalError } from "../errors.js";
import { isPromise } from "../is-promise.js";
import { type NewOperation, newOperationMembers } from "../operation.js";
import { changeMembers, type Decision, decisionMembers, type ResourceChange } from "../resource.js";

/**
 * A decision as JavaScript may give it. A type tells who writes TypeScript of a member that there is not; everybody else would lose it without a
 * word, and with it what they meant to keep.
 */
export function checkDecision(decision: Decision<unknown>): void {
  if (isPromise(decision))
    throw new JournalError("invalid-change", "a decision is pure: its function must not be async");
  const unknown = unknownMember("a decision", decision, decisionMembers);
  if (unknown === undefined) return;
  const isOfChange = Object.hasOwn(changeMembers, unknown);
  const hint = isOfChange ? `; it belongs in its change: { result, change: { ${unknown} } }` : "";
  throw new JournalError("invalid-change", `a decision has no member ${JSON.stringify(unknown)}${hint}`);
}

/** The same for what a decision, an operation or the end of one asks to be changed. */
export function checkChange(change: ResourceChange): void {
  if (isPromise(change)) throw new JournalError("invalid-change", "what decides a change must not be async");
  refuseUnknown("a change", change, changeMembers);
}

export function checkNewOperation(asked: NewOperation): void {
  refuseUnknown("an operation to accept", asked, newOperationMembers);
}

function refuseUnknown(what: string, given: object, members: Readonly<Record<string, true>>): void {
  const unknown = unknownMember(what, given, members);
  if (unknown !== undefined)
    throw new JournalError("invalid-change", `${what} has no member ${JSON.stringify(unknown)}`);
}

/** One that is given as `undefined` says nothing, so that nothing is lost. */
function unknownMember(what: string, given: object, members: Readonly<Record<string, true>>): string | undefined {
  if (typeof given !== "object" || given === null)
    throw new JournalError("invalid-change", `${what} must be an object`);
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(members, name) && (given as Record<string, unknown>)[name] !== undefined)
      return name.slice(0, longestName);
  }
  return undefined;
}

/** Of a member, in the sentence that refuses it. */
const longestName = 100;
