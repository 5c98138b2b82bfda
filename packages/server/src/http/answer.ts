/** What goes back to whoever asked. */
export interface Answer {
  /** The HTTP status. */
  readonly status: number;
  /** An object, or a text (or its bytes) that is JSON already. */
  readonly body: object | string;
  /** Beside those that every answer has. */
  readonly headers?: Readonly<Record<string, string>>;
}
