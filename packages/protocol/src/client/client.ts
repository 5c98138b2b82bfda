import type { Catalog } from "../catalog/catalog.js";
import { apiVersion, headerNames, type OriginatingIdentity, printOriginatingIdentity } from "../headers.js";
import type {
  BindRequest,
  BindResponse,
  DeleteResponse,
  FetchBindingResponse,
  FetchInstanceResponse,
  LastOperationResponse,
  ProvisionRequest,
  ProvisionResponse,
  UpdateRequest,
  UpdateResponse,
} from "../messages.js";
import { type BrokerAnswer, BrokerAnswerError, readAnswer } from "./broker-answer.js";
import { isNotSent } from "./not-sent.js";
import { defaultPace, nextPauseMs, OperationFailedError, type PollingPace, readPoll } from "./polling.js";

export interface ClientOptions {
  /** Where the broker is, up to but without `/v2`. */
  readonly url: string | URL;
  /** Basic credentials, or a whole Authorization header (`Bearer …`). */
  readonly credentials?: { readonly username: string; readonly password: string } | string;
  /** Of one request. Default 60 seconds. */
  readonly timeoutMs?: number;
  /** Default 2.17. */
  readonly version?: string;
  readonly fetch?: typeof fetch;
  readonly pace?: PollingPace;
  readonly now?: () => number;
}

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

export interface DeleteOptions extends ChangeOptions {
  readonly serviceId: string;
  readonly planId: string;
}

/** What a broker answered. */
export interface Answered<Body> {
  readonly status: number;
  readonly body: Body;
  /** When it asks to be asked again: at most an hour from now. */
  readonly retryAfterMs: number | undefined;
}

/** The broker has finished, or goes on and says under which name. */
export type Changed<Body> = Answered<Body> &
  (
    | { readonly kind: "done" }
    | { readonly kind: "accepted"; readonly status: 202; readonly operation: string | undefined }
  );

export interface PollOptions extends CallOptions {
  readonly operation?: string | undefined;
  readonly serviceId?: string;
  /** The plan before the change. */
  readonly planId?: string;
}

export interface WaitOptions extends PollOptions {
  /** What the answer that began it advised: the first poll comes so long after it. Default: at once. */
  readonly retryAfterMs?: number | undefined;
  /** 410 then means that it is gone. */
  readonly deleting?: boolean;
  /** Seconds, as the plan's `maximum_polling_duration` says. Default a week. */
  readonly maximumPollingDuration?: number;
  readonly onPoll?: (last: LastOperationResponse | undefined) => void;
}

/** A typed client for any Open Service Broker. An answer that says no is thrown as a BrokerAnswerError. */
export interface Client {
  catalog(options?: CallOptions & { readonly etag?: string }): Promise<{
    readonly catalog: Catalog | "unchanged";
    readonly etag: string | undefined;
    readonly retryAfterMs: number | undefined;
  }>;
  provision(instance: string, request: ProvisionRequest, options?: ChangeOptions): Promise<Changed<ProvisionResponse>>;
  fetchInstance(instance: string, options?: CallOptions & Hints): Promise<Answered<FetchInstanceResponse>>;
  update(instance: string, request: UpdateRequest, options?: ChangeOptions): Promise<Changed<UpdateResponse>>;
  /** 410 counts as done. */
  deprovision(instance: string, options: DeleteOptions): Promise<Changed<DeleteResponse>>;
  bind(
    instance: string,
    binding: string,
    request: BindRequest,
    options?: ChangeOptions,
  ): Promise<Changed<BindResponse>>;
  fetchBinding(
    instance: string,
    binding: string,
    options?: CallOptions & Hints,
  ): Promise<Answered<FetchBindingResponse>>;
  /** 410 counts as done. */
  unbind(instance: string, binding: string, options: DeleteOptions): Promise<Changed<DeleteResponse>>;
  instanceLastOperation(instance: string, options?: PollOptions): Promise<Answered<LastOperationResponse>>;
  bindingLastOperation(
    instance: string,
    binding: string,
    options?: PollOptions,
  ): Promise<Answered<LastOperationResponse>>;
  /** Polls until the operation has ended, as the broker advises; throws OperationFailedError if it failed or its time is up. */
  waitForInstance(instance: string, options?: WaitOptions): Promise<LastOperationResponse>;
  waitForBinding(instance: string, binding: string, options?: WaitOptions): Promise<LastOperationResponse>;
}

export interface Hints {
  readonly serviceId?: string;
  readonly planId?: string;
}

const defaultTimeoutMs = 60_000;
const longestPollingSeconds = 7 * 24 * 60 * 60;

export function createClient(options: ClientOptions): Client {
  return new FetchClient(options);
}

class FetchClient implements Client {
  readonly #options: ClientOptions;
  readonly #base: string;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#base = String(options.url).replace(/\/+$/, "");
  }

  async catalog(
    options: CallOptions & { readonly etag?: string } = {},
  ): Promise<{ catalog: Catalog | "unchanged"; etag: string | undefined; retryAfterMs: number | undefined }> {
    const headers = options.etag === undefined ? {} : { "if-none-match": options.etag };
    const answer = await this.#ask("GET", "/v2/catalog", {}, undefined, options, headers);
    const { retryAfterMs } = answer;
    if (answer.status === 304) return { catalog: "unchanged", etag: options.etag, retryAfterMs };
    return { catalog: this.#body<Catalog>(answer, [200]), etag: answer.etag, retryAfterMs };
  }

  async provision(
    instance: string,
    request: ProvisionRequest,
    options: ChangeOptions = {},
  ): Promise<Changed<ProvisionResponse>> {
    return this.#change("PUT", instancePath(instance), {}, request, options, [200, 201]);
  }

  async fetchInstance(instance: string, options: CallOptions & Hints = {}): Promise<Answered<FetchInstanceResponse>> {
    return this.#answered(await this.#ask("GET", instancePath(instance), hints(options), undefined, options));
  }

  async update(
    instance: string,
    request: UpdateRequest,
    options: ChangeOptions = {},
  ): Promise<Changed<UpdateResponse>> {
    return this.#change("PATCH", instancePath(instance), {}, request, options, [200]);
  }

  async deprovision(instance: string, options: DeleteOptions): Promise<Changed<DeleteResponse>> {
    return this.#change("DELETE", instancePath(instance), hints(options), undefined, options, [200, 410]);
  }

  async bind(
    instance: string,
    binding: string,
    request: BindRequest,
    options: ChangeOptions = {},
  ): Promise<Changed<BindResponse>> {
    return this.#change("PUT", bindingPath(instance, binding), {}, request, options, [200, 201]);
  }

  async fetchBinding(
    instance: string,
    binding: string,
    options: CallOptions & Hints = {},
  ): Promise<Answered<FetchBindingResponse>> {
    return this.#answered(await this.#ask("GET", bindingPath(instance, binding), hints(options), undefined, options));
  }

  async unbind(instance: string, binding: string, options: DeleteOptions): Promise<Changed<DeleteResponse>> {
    return this.#change("DELETE", bindingPath(instance, binding), hints(options), undefined, options, [200, 410]);
  }

  async instanceLastOperation(instance: string, options: PollOptions = {}): Promise<Answered<LastOperationResponse>> {
    return this.#answered(await this.#poll(instancePath(instance), options));
  }

  async bindingLastOperation(
    instance: string,
    binding: string,
    options: PollOptions = {},
  ): Promise<Answered<LastOperationResponse>> {
    return this.#answered(await this.#poll(bindingPath(instance, binding), options));
  }

  async waitForInstance(instance: string, options: WaitOptions = {}): Promise<LastOperationResponse> {
    return this.#wait(instancePath(instance), options);
  }

  async waitForBinding(instance: string, binding: string, options: WaitOptions = {}): Promise<LastOperationResponse> {
    return this.#wait(bindingPath(instance, binding), options);
  }

  #poll(path: string, options: PollOptions): Promise<BrokerAnswer> {
    const operation =
      options.operation === undefined || options.operation === "" ? {} : { operation: options.operation };
    return this.#ask("GET", `${path}/last_operation`, { ...hints(options), ...operation }, undefined, options);
  }

  async #wait(path: string, options: WaitOptions): Promise<LastOperationResponse> {
    const { pace = defaultPace, now = Date.now } = this.#options;
    const seconds = Math.min(options.maximumPollingDuration ?? longestPollingSeconds, longestPollingSeconds);
    const giveUpAt = now() + seconds * 1_000;
    if (options.retryAfterMs !== undefined)
      await pause(Math.min(nextPauseMs(0, options.retryAfterMs), seconds * 1_000), options.signal);
    for (let polls = 0; ; polls++) {
      // No answer is no reason to stop asking; being called off is.
      const answer = await this.#poll(path, options).catch((error: unknown) => {
        if (options.signal?.aborted) throw error;
        return undefined;
      });
      const poll = readPoll(answer, options.deleting ?? false);
      if (poll.kind === "gone") return { state: "succeeded", description: "the resource is gone" };
      options.onPoll?.(poll.last);
      if (poll.kind === "ended" && poll.last.state === "succeeded") return poll.last;
      if (poll.kind === "ended") {
        throw new OperationFailedError(
          poll.last.description ?? "the operation has failed; the broker does not say why",
          { kind: "operation failed", last: poll.last },
        );
      }
      const leftMs = giveUpAt - now();
      if (leftMs <= 0)
        throw new OperationFailedError(`the operation has not ended within ${seconds} seconds`, {
          kind: "operation timed out",
          last: poll.last,
        });
      // However long the pause should be: there is a last look when the time is up.
      await pause(Math.min(nextPauseMs(polls, answer?.retryAfterMs, pace), leftMs), options.signal);
    }
  }

  async #change<Body>(
    method: string,
    path: string,
    query: Readonly<Record<string, string>>,
    body: object | undefined,
    options: ChangeOptions,
    done: readonly number[],
  ): Promise<Changed<Body>> {
    const incomplete = (options.acceptsIncomplete ?? true) ? { accepts_incomplete: "true" } : {};
    const answer = await this.#ask(method, path, { ...query, ...incomplete }, body, options);
    const { retryAfterMs } = answer;
    if (answer.status === 202) {
      const accepted = this.#body<Body & { operation?: unknown }>(answer, [202]);
      const operation = operationOf(accepted.operation, answer);
      return { kind: "accepted", status: 202, body: accepted, operation, retryAfterMs };
    }
    // 410 has nothing to say beyond its status.
    if (answer.status === 410 && done.includes(410))
      return { kind: "done", status: 410, body: (answer.body ?? {}) as Body, retryAfterMs };
    return { kind: "done", status: answer.status, body: this.#body<Body>(answer, done), retryAfterMs };
  }

  #answered<Body>(answer: BrokerAnswer): Answered<Body> {
    return { status: answer.status, body: this.#body(answer, [200]), retryAfterMs: answer.retryAfterMs };
  }

  #body<Body>(answer: BrokerAnswer, expected: readonly number[]): Body {
    if (!expected.includes(answer.status)) {
      const said = answer.body?.description;
      const why = typeof said === "string" && said !== "" ? said : "it does not say why";
      throw new BrokerAnswerError(`the broker answered ${answer.status}: ${why}`, { kind: "answer", answer });
    }
    if (answer.body === undefined)
      throw new BrokerAnswerError(`the broker answered ${answer.status} without a JSON object`, {
        kind: "answer",
        answer,
      });
    return answer.body as unknown as Body;
  }

  async #ask(
    method: string,
    path: string,
    query: Readonly<Record<string, string>>,
    body: object | undefined,
    { identity, requestId, signal }: CallOptions,
    more: Readonly<Record<string, string>> = {},
  ): Promise<BrokerAnswer> {
    const { timeoutMs = defaultTimeoutMs, version = apiVersion, now = Date.now } = this.#options;
    const search = new URLSearchParams(query).toString();
    const timeout = AbortSignal.timeout(timeoutMs);
    const either = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
    const request: RequestInit = {
      method,
      headers: {
        accept: "application/json",
        [headerNames.version]: version,
        ...authorization(this.#options.credentials),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(identity !== undefined && { [headerNames.originatingIdentity]: printOriginatingIdentity(identity) }),
        ...(requestId !== undefined && { [headerNames.requestIdentity]: requestId }),
        ...more,
      },
      // A redirect would take the credentials along to who knows where.
      redirect: "manual",
      signal: either,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const call = this.#options.fetch ?? fetch;
    try {
      const response = await call(`${this.#base}${path}${search === "" ? "" : `?${search}`}`, request);
      return await readAnswer(response, now);
    } catch (cause) {
      if (cause instanceof BrokerAnswerError) throw cause;
      const sent = !isNotSent(cause, either);
      const kind = timeout.aborted
        ? "timed out"
        : signal?.aborted
          ? "called off"
          : sent
            ? "connection lost"
            : "no connection";
      const why = kind === "timed out" ? `no answer within ${timeoutMs} ms` : kind;
      throw new BrokerAnswerError(`the broker did not answer: ${why}`, { kind, sent, cause });
    }
  }
}

/** `undefined`: the broker names none, and is asked for its last operation. */
function operationOf(operation: unknown, answer: BrokerAnswer): string | undefined {
  if (operation === undefined || operation === null || operation === "") return undefined;
  if (typeof operation === "string") return operation;
  // As if there were no body: it is not what the specification says it is.
  const malformed = { ...answer, body: undefined };
  throw new BrokerAnswerError("the broker answered 202 with an operation that is not a text", {
    kind: "answer",
    answer: malformed,
  });
}

function instancePath(instance: string): string {
  return `/v2/service_instances/${segment(instance)}`;
}

function bindingPath(instance: string, binding: string): string {
  return `${instancePath(instance)}/service_bindings/${segment(binding)}`;
}

/** Dots alone are a way in a URL, encoded or not: the end of the binding `..` would be the end of its instance. */
function segment(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new RangeError(`"${id}" cannot be the id of an instance or a binding`);
  return encodeURIComponent(id);
}

function hints({ serviceId, planId }: Hints): Record<string, string> {
  return { ...(serviceId && { service_id: serviceId }), ...(planId && { plan_id: planId }) };
}

function authorization(credentials: ClientOptions["credentials"]): Record<string, string> {
  if (credentials === undefined) return {};
  if (typeof credentials === "string") return { authorization: credentials };
  const bytes = new TextEncoder().encode(`${credentials.username}:${credentials.password}`);
  return { authorization: `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}` };
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      signal?.removeEventListener("abort", called);
      resolve();
    }
    function called(): void {
      clearTimeout(timer);
      reject(new BrokerAnswerError("waiting was called off", { kind: "called off", cause: signal?.reason }));
    }
    if (signal?.aborted) called();
    else signal?.addEventListener("abort", called, { once: true });
  });
}
