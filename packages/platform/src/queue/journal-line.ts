import type { Entry, Json } from "@osbert/journal";
import type { JournalLine } from "../platform.js";

/**
 * One entry as a line for people. Only what is named here goes out: inputs and results may hold what is secret, and a kind of entry that is added
 * later shows nothing of its payload until someone has thought about it.
 */
export function journalLine(entry: Entry): JournalLine {
  const fields = fieldsOf(entry.payload);
  const { family, kind = entry.kind, summary, payload = {} } = told(entry, fields);
  return {
    seq: entry.seq,
    at: entry.at,
    family,
    kind,
    operation: entry.operation,
    by: entry.actor.subject,
    cause: entry.cause,
    requestId: entry.requestId,
    summary,
    payload,
  };
}

interface Told {
  readonly family: JournalLine["family"];
  readonly kind?: string;
  readonly summary: string;
  readonly payload?: { readonly [name: string]: Json };
}

type Fields = { readonly [name: string]: Json | undefined };

function told({ kind, actor, operation }: Entry, fields: Fields): Told {
  const by = actor.subject;
  switch (kind) {
    case "accepted":
      return accepted(by, fields);
    case "settled":
      return ended(fields);
    case "control":
      return {
        family: "control",
        kind: text(fields.action),
        summary: `${by}: ${text(fields.action)}${operation === null ? "" : ` ${operation}`}`,
        payload: pick(fields, "action"),
      };
    case "held":
      return { family: "decision", summary: `${operation} is held` };
    case "released":
      return { family: "decision", summary: `${operation} goes on` };
    case "reordered":
      return { family: "decision", summary: "the queue has another order", payload: pick(fields, "order") };
    case "hurried":
      return { family: "decision", summary: `${operation} is looked at now` };
    case "cancel requested":
      return {
        family: "decision",
        summary: `${operation} is to end: ${text(fields.reason)}`,
        payload: pick(fields, "reason"),
      };
    case "waiting":
      return { family: "attempt", summary: `waits: ${text(fields.reason)}`, payload: pick(fields, "reason", "until") };
    case "retry":
      return {
        family: "attempt",
        summary: `is tried again: ${text(fields.error)}`,
        payload: pick(fields, "attempt", "error", "until"),
      };
    case "described":
      return {
        family: "attempt",
        kind: "poll-changed",
        summary: `the broker says: ${text(fields.description)}`,
        payload: pick(fields, "description"),
      };
    case "step":
      return step(fields);
    case "pruned":
      return { family: "observation", summary: "old entries were removed", payload: pick(fields, "entries") };
    case "changed":
      return { family: "observation", summary: "something was written down" };
    case "attempt-started":
      return {
        family: "attempt",
        summary: `${text(fields.what)} is sent, attempt ${text(fields.attempt)}`,
        payload: pick(fields, "what", "instance", "binding", "attempt", "bodyHash", "requestId"),
      };
    case "attempt-lost":
      return {
        family: "attempt",
        summary: `nobody knows what became of ${text(fields.what)}: ${text(fields.message)}`,
        payload: pick(fields, "what", "class", "status", "error", "message"),
      };
    case "answered-late":
      return {
        family: "observation",
        summary: `what was answered to ${text(fields.what)}, heard when another process had gone on: ${text(fields.message)}`,
        payload: pick(fields, "what", "class", "status", "error", "message", "requestId"),
      };
    default:
      return own(kind, fields);
  }
}

function accepted(by: string, fields: Fields): Told {
  const brief = fieldsOf(fields.brief);
  const payload = pick(brief, "op", "summary", "paths", "after", "plan", "binding", "mode");
  return {
    family: "intent",
    kind: typeof brief.op === "string" ? brief.op : text(fields.kind),
    summary: `${brief.resumed === true ? "goes on:" : `${by} wants:`} ${text(brief.summary) || text(fields.kind)}`,
    payload,
  };
}

function ended(fields: Fields): Told {
  const outcome = text(fields.kind);
  const error = fieldsOf(fields.error);
  const details = fieldsOf(error.details);
  const why = outcome === "failed" ? text(error.message) : text(fields.reason);
  return {
    family: "outcome",
    kind: outcome,
    summary: why === "" ? outcome : `${outcome}: ${why}`,
    payload: {
      outcome,
      ...(why !== "" && { message: why }),
      ...pick(details, "class", "status", "error", "usable", "repeatable", "uncertain", "orphan"),
    },
  };
}

/** Calls are steps: what the broker said to them is told, but for anything that is not in this list. */
function step(fields: Fields): Told {
  const name = text(fields.step);
  const result = fieldsOf(fields.result);
  const answer = pick(result, "kind", "class", "status", "error", "message", "usable", "repeatable");
  const said = [answer.kind, answer.status, answer.message].filter((part) => part !== undefined).map(text);
  return {
    family: "attempt",
    kind: "attempt-answered",
    summary: said.length === 0 ? name : `${name}: ${said.join(" ")}`,
    payload: { step: name, ...answer },
  };
}

/** Entries of operations: what may be left at a broker, and what was seen there. */
function own(kind: string, fields: Fields): Told {
  const family = /orphan|mitigat/.test(kind) ? "orphan" : "observation";
  const payload = pick(
    fields,
    "what",
    "instance",
    "binding",
    "attempt",
    "class",
    "status",
    "error",
    "message",
    "reason",
    "orphan",
    "url",
  );
  const facts = [
    payload.what,
    payload.attempt === undefined ? undefined : `attempt ${text(payload.attempt)}`,
    payload.message ?? payload.reason,
  ];
  const said = facts.filter((fact) => fact !== undefined).map(text);
  return { family, summary: said.length === 0 ? kind : `${kind}: ${said.join(", ")}`, payload };
}

function fieldsOf(value: Json | undefined): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function pick(fields: Fields, ...names: readonly string[]): { readonly [name: string]: Json } {
  const picked: Record<string, Json> = {};
  for (const name of names) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}
