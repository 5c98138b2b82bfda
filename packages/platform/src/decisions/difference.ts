import type { AppliedState, PathChange } from "../records/instance-record.js";
import { type JsonNode, mergedBounds, parseJsonText, sameJson } from "./json-text.js";

/** More touched paths than this are told by the members of `parameters` that they are in. */
const mostChanges = 200;

const nothing: JsonNode = { kind: "object", text: "{}", members: new Map() };

/**
 * What differs between two states, path by path, each with the old value. Path operations instead of a merge patch: `null` is a value like any
 * other (E10-41), and numbers are compared and kept as they were written (E10-42). Empty: nothing would change (E10-35).
 */
export function difference(before: AppliedState | null, after: AppliedState): readonly PathChange[] {
  const plan = textChange("/plan", before?.plan.id ?? null, after.plan.id);
  const named = plan.map((change) => ({
    ...change,
    ...(before !== null && { old: JSON.stringify(before.plan.name) }),
    value: JSON.stringify(after.plan.name),
  }));
  const one = parametersOf(before?.parameters ?? null);
  const other = parametersOf(after.parameters);
  const deep = changes("/parameters", one, other);
  return [
    ...named,
    ...(deep.length > mostChanges ? shallow(one, other) : deep),
    // With another plan it goes: that is the change of the plan, and no wish of its own.
    ...(after.maintenance === null ? [] : textChange("/maintenance", before?.maintenance ?? null, after.maintenance)),
  ];
}

/** The paths that an update says something about, also where it says what is so already. */
export function touchedPaths(text: {
  readonly plan: unknown;
  readonly parameters: string | null;
  readonly maintenance: string | null;
}): readonly string[] {
  const node = parametersOf(text.parameters);
  const names = node.kind === "object" ? [...node.members.keys()] : [];
  return [
    ...(text.plan === null ? [] : ["/plan"]),
    ...names.map((name) => `/parameters/${escaped(name)}`),
    ...(text.maintenance === null ? [] : ["/maintenance"]),
  ];
}

function parametersOf(text: string | null): JsonNode {
  return text === null ? nothing : parseJsonText(text, mergedBounds);
}

function textChange(path: string, before: string | null, after: string | null): readonly PathChange[] {
  if (before === after) return [];
  const old = before === null ? {} : { old: JSON.stringify(before) };
  const value = after === null ? {} : { value: JSON.stringify(after) };
  return [{ op: before === null ? "add" : after === null ? "remove" : "replace", path, ...old, ...value }];
}

function changes(path: string, one: JsonNode, other: JsonNode): readonly PathChange[] {
  if (one.kind !== "object" || other.kind !== "object")
    return sameJson(one, other) ? [] : [{ op: "replace", path, old: one.text, value: other.text }];
  return memberChanges(path, one.members, other.members, changes);
}

/** By the members of `parameters` alone. */
function shallow(one: JsonNode, other: JsonNode): readonly PathChange[] {
  if (one.kind !== "object" || other.kind !== "object") return changes("/parameters", one, other);
  return memberChanges("/parameters", one.members, other.members, (path, before, after) =>
    sameJson(before, after) ? [] : [{ op: "replace", path, old: before.text, value: after.text }],
  );
}

type Members = ReadonlyMap<string, JsonNode>;

function memberChanges(path: string, one: Members, other: Members, both: typeof changes): readonly PathChange[] {
  const found: PathChange[] = [];
  for (const [name, value] of one) {
    const below = `${path}/${escaped(name)}`;
    const counterpart = other.get(name);
    if (counterpart === undefined) found.push({ op: "remove", path: below, old: value.text });
    else found.push(...both(below, value, counterpart));
  }
  for (const [name, { text }] of other)
    if (!one.has(name)) found.push({ op: "add", path: `${path}/${escaped(name)}`, value: text });
  return found;
}

/** RFC 6901 */
function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
