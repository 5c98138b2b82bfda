export { type BrokerAnswer, BrokerAnswerError, type BrokerAnswerErrorKind } from "./broker-answer.js";
export {
  type Answered,
  type CallOptions,
  type Changed,
  type ChangeOptions,
  type Client,
  type ClientOptions,
  createClient,
  type DeleteOptions,
  type Hints,
  type PollOptions,
  type WaitOptions,
} from "./client.js";
export { isNotSent, RequestNotSentError } from "./not-sent.js";
export { defaultPace, OperationFailedError, type PollingPace } from "./polling.js";
export { receivedOf } from "./received.js";
export { parseRetryAfter } from "./retry-after.js";
