import type { Json } from "./json.js";
import type { Actor } from "./operation.js";
import type { Entry } from "./resource.js";
import type { StoredEntry } from "./store.js";

/** An entry as it is told, from its text. */
export function toEntry({ seq, at, kind, operation, body }: StoredEntry): Entry {
  const { actor, cause, requestId, payload } = JSON.parse(body) as {
    actor: Actor;
    cause?: number | string;
    requestId?: string;
    payload: Json;
  };
  return { seq, at, kind, operation, actor, cause: cause ?? null, requestId: requestId ?? null, payload };
}
