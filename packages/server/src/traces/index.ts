export { failSpan, presentAttributes, requestTraces } from "./request-traces.js";
export { readTraceparent, writeTraceparent } from "./traceparent.js";
