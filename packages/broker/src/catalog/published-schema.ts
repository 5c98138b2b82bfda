import { type Draft04Schema, type JsonObject, toDraft04 } from "@osbert/protocol";
import { defaultDraft, type Schema } from "@osbert/server/schemas";

/**
 * The draft of JSON Schema that the catalog speaks. `draft-04` is the only one that every platform has to understand, and Cloud Foundry
 * refuses all others; `as-written` is the author's own, for platforms that are known to understand it.
 */
export type SchemaDraft = "draft-04" | "as-written";

/** A schema, which is JSON, as platforms see it. Requests are checked with what the author wrote, whatever becomes of it here. */
export function publishedSchema(schema: Schema, draft: SchemaDraft): Draft04Schema {
  const written = { $schema: defaultDraft, ...schema } as JsonObject;
  return draft === "as-written" ? { schema: written, losses: [] } : toDraft04(written);
}
