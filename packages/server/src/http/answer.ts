import type { LiveText } from "./live-text.js";
import type { Pieces } from "./pieces.js";

/** What goes back to whoever asked. */
export interface Answer {
  /** The HTTP status. */
  readonly status: number;
  /** An object, or a text (or its bytes, or pieces of them) that is JSON already, or what is told as it happens. */
  readonly body: object | string | Pieces | LiveText;
  /** Beside those that every answer has. */
  readonly headers?: Readonly<Record<string, string>>;
}
