import { Permanent } from "@osbert/journal";
import type { BrokerErrorCode } from "@osbert/protocol";

/** What a platform is told beside the message. */
export interface FailedOptions extends ErrorOptions {
  /** After a failed update or deprovision: whether the instance can still be used. */
  readonly instanceUsable?: boolean;
  /** After a failed update: whether the same update could succeed later. */
  readonly updateRepeatable?: boolean;
  /** How a platform that waits for the answer is told; others read the message in last_operation. */
  readonly code?: BrokerErrorCode;
}

/** Thrown by an author's function: the operation has failed, trying again would not help. The message is for the user. */
export class Failed extends Permanent {
  constructor(message: string, { instanceUsable, updateRepeatable, code, ...options }: FailedOptions = {}) {
    super(message, { ...options, details: { instanceUsable, updateRepeatable, code } });
  }
}
