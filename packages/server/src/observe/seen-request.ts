import type { RefusedCaller } from "../authentication/refused-caller.js";
import type { RequestAnswered } from "./event.js";

/** As much of a text from outside as is worth telling. */
const longestText = 400;

/** As much of an error as is told. */
interface RefusedFor {
  readonly code: string;
  readonly status: number;
  readonly message: string;
  readonly cause?: unknown;
}

/** What is learnt about a request on its way to its answer. A room extends it with what its requests are about. */
export abstract class SeenRequest<Event extends RequestAnswered = RequestAnswered> {
  /** Where the request stands in a trace. */
  trace: string | null = null;
  #route: string | null = null;
  #platform: string | null = null;
  #credential: string | null = null;
  #error: RefusedFor | undefined;
  #caller: (() => RefusedCaller) | undefined;

  /** Before it is known who asks. `caller` is called only if they are not let in. */
  authenticating(caller: () => RefusedCaller): void {
    this.#caller = caller;
  }

  authenticated(credential: string, platform: string): void {
    this.#credential = credential;
    this.#platform = platform;
  }

  matched({ name }: { readonly name: string }): void {
    this.#route = name;
  }

  /** With this status and body, before they are written. */
  answered(_status: number, _body: unknown): void {}

  refused(error: RefusedFor): void {
    this.#error = error;
  }

  /** Adds what the request was about. The object is its own to change. */
  protected abstract complete(request: RequestAnswered): Event;

  event(method: string, requestId: string | null, status: number, tookMs: number): Event {
    const error = this.#error;
    return this.complete({
      kind: "request answered",
      method: shortened(method),
      route: this.#route,
      platform: this.#platform,
      credential: this.#credential,
      status,
      errorCode: error?.code ?? null,
      description: error === undefined ? null : error.message,
      cause: error !== undefined && error.status >= 500 ? error.cause : undefined,
      requestId,
      tookMs,
      refused: this.#refused(),
    });
  }

  #refused(): RefusedCaller | null {
    const code = this.#error?.code;
    if (this.#credential !== null || (code !== "unauthorized" && code !== "too-many-requests")) return null;
    return this.#caller?.() ?? null;
  }
}

/** A text from outside, as it may be told. */
export function shortened(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text;
}
