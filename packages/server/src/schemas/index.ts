export { compileSchema, defaultDraft, type Validate } from "./compile-schema.js";
export type { FromSchema, Schema } from "./schema.js";
