export { checkOrRefuse, compileOrRefuse, type ValidateOrRefuse } from "./compile-or-refuse.js";
export { compileSchema, defaultDraft, type Validate } from "./compile-schema.js";
export { patternCost } from "./pattern-cost.js";
export type { FromSchema, Schema } from "./schema.js";
export { TooMuchWork } from "./work-meter.js";
