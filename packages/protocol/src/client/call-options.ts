import type { OriginatingIdentity } from "../headers.js";
import type { LastOperationResponse } from "../messages.js";
import type { PolledChange } from "./polling.js";

export interface CallOptions {
  /** Whose action this is. */
  readonly identity?: OriginatingIdentity;
  /** For tracing one request through both sides. */
  readonly requestId?: string;
  readonly signal?: AbortSignal;
}

export interface ChangeOptions extends CallOptions {
  /** Whether the broker may answer before it has finished. Default true. */
  readonly acceptsIncomplete?: boolean;
}

export interface RequestOptions extends ChangeOptions {
  /** JSON text of the `parameters`, which is sent as it is written in place of those of the request: numbers beyond 2^53 stay whole. */
  readonly parametersText?: string;
}

export interface DeleteOptions extends ChangeOptions {
  readonly serviceId: string;
  readonly planId: string;
}

export interface PollOptions extends CallOptions {
  readonly operation?: string | undefined;
  readonly serviceId?: string;
  /** The plan before the change. */
  readonly planId?: string;
}

export interface WaitOptions extends PollOptions {
  /** What the answer that began it advised: the first poll comes so long after it. Default: as the pace says, a second. */
  readonly retryAfterMs?: number | undefined;
  /**
   * What the operation does. It decides what an answer means that is none to the question:
   * - `create`: after ten minutes of nothing but 404 nobody knows what became of it, which is thrown as `operation lost`
   * - `delete`: 410 means that it is gone. 404 is followed by one more DELETE if `serviceId` and `planId` are given: only who has sent the
   *   first one may say `delete`
   * - `unknown`: 410 means that it is gone
   * - `update`, the default: both are asked again
   */
  readonly change?: PolledChange;
  /** Seconds, as the plan's `maximum_polling_duration` says. Default a week. */
  readonly maximumPollingDuration?: number;
  readonly onPoll?: (last: LastOperationResponse | undefined) => void;
}

export interface Hints {
  readonly serviceId?: string;
  readonly planId?: string;
}
