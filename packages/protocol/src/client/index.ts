export { type Answer, BrokerAnswerError, type BrokerAnswerErrorKind, parseRetryAfter } from "./answer.js";
export {
  type CallOptions,
  type Changed,
  type ChangeOptions,
  type Client,
  type ClientOptions,
  createClient,
  type DeleteOptions,
  type Hints,
  type WaitOptions,
} from "./client.js";
export { defaultPace, OperationFailedError, type PollingPace } from "./polling.js";
