export type { Observe, RequestAnswered } from "./event.js";
export type { AroundRequest, ArrivingRequest, RequestTracing } from "./request-tracing.js";
export { SeenRequest, shortened } from "./seen-request.js";
export { type RequestWatch, watchRequest } from "./watch-request.js";
