import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { CommandError } from "../client/exit-status.js";
import { plainText } from "../client/plain-text.js";

/** The platform said no. */
export class PlatformProblem extends CommandError {
  readonly httpStatus: number;
  readonly code: string;
  /** Facts of the error, for a machine. */
  readonly details: JsonObject;

  constructor(httpStatus: number, code: string, message: string, details: JsonObject) {
    super("failed", message);
    this.httpStatus = httpStatus;
    this.code = code;
    this.details = details;
  }

  /** Of problem details (RFC 9457); whatever is none comes from somebody else. */
  static of(status: number, body: JsonObject | undefined, url: string): CommandError {
    if (status === 401)
      return new CommandError("failed", "the platform does not know you: the name, the password or the token is wrong");
    const { code, detail, title, details } = body ?? {};
    if (typeof code !== "string")
      return new CommandError("unreachable", `what answers at ${url} (${status}) is not the API of an Osbert platform`);
    const facts = isJsonObject(details) ? details : {};
    const sentence = plainText(String(detail ?? title ?? code));
    // A sentence that says it already is not said twice.
    const lines = linesOf(facts).flatMap(({ line, says }) =>
      says.every((one) => sentence.includes(one)) ? [] : [line],
    );
    return new PlatformProblem(status, code, [sentence, ...lines, ...hintOf(code)].join("\n"), facts);
  }
}

interface FactLine {
  readonly line: string;
  /** What it tells. */
  readonly says: readonly string[];
}

/** What the facts of an error are to a person: findings of the preflight, changes in between, bindings that are there. */
function linesOf(details: JsonObject): readonly FactLine[] {
  const report = isJsonObject(details.report) ? details.report : details;
  const bindings = Array.isArray(details.bindings) ? details.bindings.map(word) : [];
  return [
    ...objectsIn(report.findings).map(({ severity, path, message }) => ({
      line: `  ${word(severity)}: ${path ? `${word(path)}: ` : ""}${word(message)}`,
      says: [...(path ? [word(path)] : []), word(message)],
    })),
    ...objectsIn(details.changes).map(({ revision, by, summary }) => ({
      line: `  revision ${word(revision)}, by ${word(by)}: ${word(summary)}`,
      says: [word(revision), word(by), word(summary)],
    })),
    ...(bindings.length > 0 ? [{ line: `  bindings: ${bindings.join(", ")}`, says: bindings }] : []),
  ];
}

const hints: Readonly<Record<string, string>> = {
  "has-bindings": "unbind them first, or say --cascade",
  stale: "look at it with osbert platform show, and decide anew",
  exists: "osbert platform show tells what it is",
};

function hintOf(code: string): readonly string[] {
  const hint = Object.hasOwn(hints, code) ? hints[code] : undefined;
  return hint === undefined ? [] : [hint];
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function word(value: unknown): string {
  return plainText(typeof value === "string" ? value : (JSON.stringify(value) ?? ""), 500);
}
