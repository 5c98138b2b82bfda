export type { Answer } from "./http/answer.js";
export { type AuthenticatedOptions, authenticated } from "./http/authenticated.js";
export { fetchAdapter } from "./http/fetch-adapter.js";
export {
  type Api,
  type Arrived,
  type Handler,
  type HttpEnd,
  type HttpEndOptions,
  httpEnd,
  type OnError,
  type RefusedRequest,
} from "./http/http-end.js";
export { type JournalRefusal, journalRefusals, journalRetryAfterSeconds } from "./http/journal-refusal.js";
export { LiveText } from "./http/live-text.js";
export { type PagesOptions, pages, type Readiness } from "./http/pages.js";
export { type Paging, readPaging } from "./http/paging.js";
export { Pieces } from "./http/pieces.js";
export { type Problem, problemAnswer } from "./http/problem.js";
export { type JsonBody, largestBody, readJsonBody, readJsonObject } from "./http/read-json.js";
export { requestIdentity, requestIdentityHeader } from "./http/request-identity.js";
export {
  decode,
  type MatchedRoute,
  type PathParameter,
  type Route,
  type RouteTable,
  routeTable,
} from "./http/route-table.js";
export type { ReadBody, WireRequest, WireResponse } from "./http/wire.js";
