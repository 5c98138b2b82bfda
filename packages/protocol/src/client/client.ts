import type { Catalog } from "../catalog/catalog.js";
import { apiVersion, headerNames, printOriginatingIdentity } from "../headers.js";
import { isJsonObject } from "../json.js";
import {
  type BindRequest,
  type BindResponse,
  type DeleteResponse,
  type FetchBindingResponse,
  type FetchInstanceResponse,
  type LastOperationResponse,
  longestOperation,
  type ProvisionRequest,
  type ProvisionResponse,
  type UpdateRequest,
  type UpdateResponse,
} from "../messages.js";
import {
  type Answered,
  type BrokerAnswer,
  BrokerAnswerError,
  type Changed,
  readAnswer,
  reasonOf,
} from "./broker-answer.js";
import type {
  CallOptions,
  ChangeOptions,
  DeleteOptions,
  Hints,
  PollOptions,
  RequestOptions,
  WaitOptions,
} from "./call-options.js";
import type { ClientFetch, ClientRequest } from "./client-fetch.js";
import { isNotSent } from "./not-sent.js";
import { defaultPace, type PollingPace } from "./polling.js";
import { waitForOperation } from "./wait-for-operation.js";

export interface ClientOptions {
  /** Where the broker is, up to but without `/v2`. */
  readonly url: string | URL;
  /** Basic credentials, or a whole Authorization header (`Bearer …`). */
  readonly credentials?: { readonly username: string; readonly password: string } | string;
  /** Of one request. Default 60 seconds. */
  readonly timeoutMs?: number;
  /** Default 2.17. */
  readonly version?: string;
  readonly fetch?: ClientFetch;
  readonly pace?: PollingPace;
  readonly now?: () => number;
  /** From 0 to 1: by how much the pauses between polls vary. */
  readonly random?: () => number;
}

/** A typed client for any Open Service Broker. An answer that says no is thrown as a BrokerAnswerError. */
export interface Client {
  catalog(options?: CallOptions & { readonly etag?: string }): Promise<{
    readonly catalog: Catalog | "unchanged";
    readonly etag: string | undefined;
    readonly retryAfterMs: number | undefined;
  }>;
  provision(instance: string, request: ProvisionRequest, options?: RequestOptions): Promise<Changed<ProvisionResponse>>;
  fetchInstance(instance: string, options?: CallOptions & Hints): Promise<Answered<FetchInstanceResponse>>;
  update(instance: string, request: UpdateRequest, options?: RequestOptions): Promise<Changed<UpdateResponse>>;
  /** 410 counts as done. */
  deprovision(instance: string, options: DeleteOptions): Promise<Changed<DeleteResponse>>;
  bind(
    instance: string,
    binding: string,
    request: BindRequest,
    options?: RequestOptions,
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
  /**
   * Polls until the operation has ended, as the broker advises. Throws OperationFailedError if it failed, its time is up, or the broker knows
   * nothing of it any more.
   */
  waitForInstance(instance: string, options?: WaitOptions): Promise<LastOperationResponse>;
  waitForBinding(instance: string, binding: string, options?: WaitOptions): Promise<LastOperationResponse>;
}

const defaultTimeoutMs = 60_000;
/** A timer that is set for longer goes off at once. */
const longestTimerMs = 2 ** 31 - 1;

export function createClient(options: ClientOptions): Client {
  return new FetchClient(options);
}

class FetchClient implements Client {
  readonly #options: ClientOptions;
  readonly #base: string;
  readonly #authorization: Readonly<Record<string, string>>;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#authorization = authorization(options.credentials);
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
    options: RequestOptions = {},
  ): Promise<Changed<ProvisionResponse>> {
    return this.#change("PUT", instancePath(instance), {}, request, options, [200, 201]);
  }

  async fetchInstance(instance: string, options: CallOptions & Hints = {}): Promise<Answered<FetchInstanceResponse>> {
    return this.#answered(await this.#ask("GET", instancePath(instance), hints(options), undefined, options));
  }

  async update(
    instance: string,
    request: UpdateRequest,
    options: RequestOptions = {},
  ): Promise<Changed<UpdateResponse>> {
    return this.#change("PATCH", instancePath(instance), {}, request, options, [200]);
  }

  async deprovision(instance: string, options: DeleteOptions): Promise<Changed<DeleteResponse>> {
    return this.#delete(instancePath(instance), options);
  }

  async bind(
    instance: string,
    binding: string,
    request: BindRequest,
    options: RequestOptions = {},
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
    return this.#delete(bindingPath(instance, binding), options);
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

  #wait(path: string, options: WaitOptions): Promise<LastOperationResponse> {
    const { pace = defaultPace, now = Date.now, random = Math.random } = this.#options;
    return waitForOperation(options, {
      pace,
      now,
      random,
      poll: (operation) => this.#poll(path, { ...options, operation }),
      deleteAgain: () => this.#delete(path, options),
    });
  }

  #delete(path: string, options: Hints & ChangeOptions): Promise<Changed<DeleteResponse>> {
    return this.#change("DELETE", path, hints(options), undefined, options, [200, 410]);
  }

  async #change<Body>(
    method: string,
    path: string,
    query: Readonly<Record<string, string>>,
    request: object | undefined,
    options: RequestOptions,
    done: readonly number[],
  ): Promise<Changed<Body>> {
    const incomplete = (options.acceptsIncomplete ?? true) ? { accepts_incomplete: "true" } : {};
    const body = request === undefined ? undefined : requestText(request, options.parametersText);
    const answer = await this.#ask(method, path, { ...query, ...incomplete }, body, options);
    const { retryAfterMs, text } = answer;
    if (answer.status === 202) {
      const accepted = this.#body<Body & { operation?: unknown }>(answer, [202]);
      const operation = operationOf(accepted.operation, answer);
      return { kind: "accepted", status: 202, body: accepted, text, operation, retryAfterMs };
    }
    // 410 has nothing to say beyond its status.
    if (answer.status === 410 && done.includes(410))
      return { kind: "done", status: 410, body: (answer.body ?? {}) as Body, text, retryAfterMs };
    return { kind: "done", status: answer.status, body: this.#body<Body>(answer, done), text, retryAfterMs };
  }

  #answered<Body>(answer: BrokerAnswer): Answered<Body> {
    const { status, text, retryAfterMs } = answer;
    return { status, body: this.#body(answer, [200]), text, retryAfterMs };
  }

  #body<Body>(answer: BrokerAnswer, expected: readonly number[]): Body {
    if (!expected.includes(answer.status)) {
      throw new BrokerAnswerError(`the broker answered ${answer.status}: ${reasonOf(answer)}`, {
        kind: "answer",
        answer,
      });
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
    body: string | undefined,
    { identity, requestId, signal }: CallOptions,
    more: Readonly<Record<string, string>> = {},
  ): Promise<BrokerAnswer> {
    const { timeoutMs = defaultTimeoutMs, version = apiVersion, now = Date.now } = this.#options;
    const search = new URLSearchParams(query).toString();
    const limit = timeLimit(timeoutMs, signal);
    const request: ClientRequest = {
      method,
      headers: {
        accept: "application/json",
        [headerNames.version]: version,
        ...this.#authorization,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(identity !== undefined && { [headerNames.originatingIdentity]: printOriginatingIdentity(identity) }),
        ...(requestId !== undefined && { [headerNames.requestIdentity]: requestId }),
        ...more,
      },
      redirect: "manual",
      signal: limit.signal,
      ...(body !== undefined && { body }),
    };
    const call: ClientFetch = this.#options.fetch ?? fetch;
    try {
      const response = await call(`${this.#base}${path}${search === "" ? "" : `?${search}`}`, request);
      return await readAnswer(response, now);
    } catch (cause) {
      if (cause instanceof BrokerAnswerError) throw cause;
      const sent = !isNotSent(cause, limit.signal);
      const kind = limit.isOver()
        ? "timed out"
        : signal?.aborted
          ? "called off"
          : sent
            ? "connection lost"
            : "no connection";
      const why = kind === "timed out" ? `no answer within ${timeoutMs} ms` : kind;
      throw new BrokerAnswerError(`the broker did not answer: ${why}`, { kind, sent, cause });
    } finally {
      limit.end();
    }
  }
}

/**
 * Aborted when the time is up or the caller gives up, whichever comes first; `end` it. Not of AbortSignal's own `timeout` and `any`: these are kept
 * until they are collected, and cost a request more than its HTTP does.
 */
function timeLimit(timeoutMs: number, caller: AbortSignal | undefined) {
  const controller = new AbortController();
  let isOver = false;
  const timer = setTimeout(
    () => {
      isOver = true;
      controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
    },
    Math.min(timeoutMs, longestTimerMs),
  );
  const giveUp = () => controller.abort(caller?.reason);
  if (caller?.aborted) giveUp();
  else caller?.addEventListener("abort", giveUp, { once: true });
  return {
    signal: controller.signal,
    isOver: () => isOver,
    end() {
      clearTimeout(timer);
      caller?.removeEventListener("abort", giveUp);
    },
  };
}

/** `undefined`: the broker names none, and is asked for its last operation. */
function operationOf(operation: unknown, answer: BrokerAnswer): string | undefined {
  if (operation === undefined || operation === null || operation === "") return undefined;
  if (typeof operation === "string" && operation.length <= longestOperation) return operation;
  // As if there were no body: it is not what the specification says it is.
  const malformed = { ...answer, body: undefined };
  throw new BrokerAnswerError(
    `the broker answered 202 with an operation that is not a text of at most ${longestOperation} characters`,
    {
      kind: "answer",
      answer: malformed,
    },
  );
}

/** The parameters go in as a text goes into a text: nobody reads the numbers in it. */
function requestText(request: object, parametersText: string | undefined): string {
  if (parametersText === undefined) return JSON.stringify(request);
  // Whatever is no JSON object by itself would become part of the request around it.
  if (!isJsonObject(JSON.parse(parametersText))) throw new TypeError("parameters must be the text of a JSON object");
  const { parameters: _, ...others } = request as { readonly parameters?: unknown };
  const rest = JSON.stringify(others).slice(1);
  return `{"parameters":${parametersText}${rest === "}" ? "" : ","}${rest}`;
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
