import { isKeepable } from "@osbert/journal";
import type { JsonBody } from "@osbert/server";
import { PlatformError } from "../errors.js";
import type { Asking, Platform } from "../platform.js";
import type { InstanceRef } from "../records/keys.js";
import { isName, nameRule } from "../records/name.js";
import type { Caller } from "./access.js";
import type { EventStreams } from "./event-stream.js";
import type { MatchedApiRoute } from "./routes.js";

/** A request whose caller may ask it, and whose body has the described form. */
export interface ApiRequest {
  readonly platform: Platform;
  readonly streams: EventStreams;
  readonly matched: MatchedApiRoute;
  readonly caller: Caller;
  readonly query: URLSearchParams;
  readonly header: (name: string) => string | undefined;
  readonly body: JsonBody;
  readonly requestId: string;
  readonly trace: string | null;
}

/** Values of the path become parts of keys. */
export function checkPath(matched: MatchedApiRoute): void {
  const { space, instance, binding, broker, operation, orphan, offering, campaign, freeze } = matched;
  for (const [what, name] of Object.entries({ space, instance, binding, broker }))
    if (name !== "" && !isName(name)) throw invalid(`the name of ${article(what)} ${nameRule}`);
  for (const id of [operation, orphan, offering, campaign, freeze])
    if (id.length > longestId || !isKeepable(id)) throw invalid("an id in the path cannot be one");
}

const longestId = 1_000;

function article(what: string): string {
  return `${what.startsWith("i") ? "an" : "a"} ${what}`;
}

export function refOf({ matched }: ApiRequest): InstanceRef {
  return { space: matched.space, name: matched.instance };
}

/** Who asks, and how it is to be taken. */
export function askingOf(request: ApiRequest): Asking {
  const { caller, header, query, requestId, trace } = request;
  const idempotencyKey = header("idempotency-key");
  if (idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey))
    throw invalid("Idempotency-Key must have 1 to 255 printable characters without a space");
  const ifMatch = revisionIn(header("if-match"));
  return {
    by: {
      actor: { type: caller.access.role === "operate" ? "operator" : "user", subject: caller.name },
      requestId,
      ...(trace !== null && { trace }),
    },
    identity: { user_id: caller.name },
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(ifMatch !== undefined && { ifMatch }),
    ...(flagIn(query, "dry_run") && { dryRun: true }),
  };
}

/** `"12"`, or `"12-open"`, as the header ETag has it. `*` asks for nothing: what is not there cannot be changed anyway. */
function revisionIn(header: string | undefined): number | undefined {
  const tag = header?.trim();
  if (tag === undefined || tag === "*") return undefined;
  const match = /^"([0-9]{1,15})(?:-open)?"$/.exec(tag);
  if (match === null) throw invalid('If-Match must be one entity tag that this API gave, such as "12"');
  return Number(match[1]);
}

export function flagIn(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  if (text === null || text === "false") return false;
  if (text !== "true") throw invalid(`${name} must be true or false`);
  return true;
}

export function textIn(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  if (text.length > longestId || !isKeepable(text)) throw invalid(`${name} is not a text that can be looked for`);
  return text;
}

export function choiceIn<const Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly Word[],
): Word | undefined {
  const text = textIn(query, name);
  const word = words.find((known) => known === text);
  if (text !== undefined && word === undefined) throw invalid(`${name} must be one of ${words.join(", ")}`);
  return word;
}

/** Of a line in a journal. */
export function seqIn(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw invalid(`${name} must be the number of a line`);
  return Number(text);
}

export function invalid(message: string): PlatformError {
  return new PlatformError("invalid", message);
}
