export { type ErrorFacts, errorDetails, errorFacts } from "./error-facts.js";
export type { News, Observe, RequestAnswered } from "./event.js";
export {
  type Line,
  type LineOf,
  type Logger,
  type LogLinesOptions,
  type LogOptions,
  type LoudBugs,
  logLines,
  requestLine,
} from "./log.js";
export type { AroundRequest, ArrivingRequest, RequestTracing } from "./request-tracing.js";
export { SeenRequest, shortened } from "./seen-request.js";
export { type StderrLevel, type StderrLogOptions, stderrLog, terminalText } from "./stderr-log.js";
export { anyNeeds, tellAll } from "./tell-all.js";
export { type RequestWatch, watchRequest } from "./watch-request.js";
