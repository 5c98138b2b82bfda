export {
  type Answered,
  type BrokerAnswer,
  BrokerAnswerError,
  type BrokerAnswerErrorKind,
  type Changed,
} from "./broker-answer.js";
export type {
  CallOptions,
  ChangeOptions,
  DeleteOptions,
  Hints,
  PollOptions,
  RequestOptions,
  WaitOptions,
} from "./call-options.js";
export { type Client, type ClientOptions, createClient } from "./client.js";
export type { BodyReader, ClientFetch, ClientRequest, ClientResponse } from "./client-fetch.js";
export { isNotSent, RequestNotSentError } from "./not-sent.js";
export {
  defaultPace,
  nextPauseMs,
  OperationFailedError,
  type PauseFacts,
  type PolledAnswer,
  type PolledChange,
  type PollingPace,
  type PollResult,
  type RepeatedAnswer,
  readPoll,
  repeatedAnswer,
} from "./polling.js";
export { receivedOf } from "./received.js";
export { parseRetryAfter } from "./retry-after.js";
