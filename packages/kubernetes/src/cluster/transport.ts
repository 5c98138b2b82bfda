import { setMaxListeners } from "node:events";
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { ClusterError } from "./cluster-error.js";
import type { CredentialReader, Credentials, TlsMaterial } from "./credentials.js";
import { plainText, readFailure } from "./read-failure.js";

export interface ClusterRequest {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** From the root of the server, encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: { readonly type: string; readonly text: string };
  /** What is sent or asked for must not be quoted in errors. */
  readonly isSecret?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** For the whole of it: credentials, a connection, the answer to its last byte. Of a stream: to its first. */
  readonly timeoutMs: number;
}

/** Of an answer more bytes came than are taken. */
export class AnswerTooLarge extends ClusterError {}

/** Nothing came on a stream for so long that it must be dead. */
export class WentQuiet extends ClusterError {}

/** Bytes of an answer that is an error. */
const mostFailureBytes = 1_048_576;
/** Connections for calls; further calls wait for one, under their deadline. Watches have connections of their own. */
const mostCalls = 16;
const mostStreams = 512;
/** An API server closes idle connections after 90 seconds; we close ours first. */
const idleMs = 30_000;

/**
 * HTTP to one API server. Every exchange ends in its time and every answer is bounded; no redirect is followed, nothing is unpacked; whoever
 * answers 401 is asked once more, with credentials that were read anew. The library that reads these has a request layer too, but that takes in
 * whole answers, however large, and has no deadlines.
 */
export class Transport {
  readonly #credentials: CredentialReader;
  readonly #closing = new AbortController();
  #agents: Agents | undefined;

  constructor(credentials: CredentialReader) {
    this.#credentials = credentials;
    // Each exchange listens, and takes its listener away again.
    setMaxListeners(0, this.#closing.signal);
  }

  /** The body of a success, of at most so many bytes. */
  async send(request: ClusterRequest, mostBytes: number): Promise<Buffer> {
    return this.#known(request, "calls", async (exchange) => exchange.read(await exchange.answer, mostBytes));
  }

  /** Hands the body of a success on as it comes, all of it within the deadline. */
  async pass(request: ClusterRequest, take: (bytes: Buffer) => void): Promise<void> {
    return this.#known(request, "calls", async (exchange) => exchange.follow(await exchange.answer, take));
  }

  /**
   * The same for as long as it takes. Resolves when it has ended, rejects when it broke off. The deadline is for the beginning of the answer;
   * `quietMs` is how long nothing may come after that.
   */
  async stream(request: ClusterRequest, quietMs: number, take: StreamTaker): Promise<void> {
    return this.#known(request, "streams", async (exchange) => {
      const answer = await exchange.answer;
      const quiet = new WentQuiet("unavailable", `nothing came for ${quietMs} ms`);
      exchange.wait(quietMs, quiet);
      take.opened?.();
      await exchange.follow(answer, (chunk) => {
        exchange.wait(quietMs, quiet);
        take.chunk(chunk);
      });
    });
  }

  close(): void {
    this.#closing.abort();
    this.#agents?.calls.destroy();
    this.#agents?.streams.destroy();
  }

  /** Opens an exchange; if its credentials are refused, once more with others; if nobody has seen the request, once more. */
  async #known<Result>(
    request: ClusterRequest,
    connections: "calls" | "streams",
    use: (exchange: Exchange) => Promise<Result>,
  ): Promise<Result> {
    const deadline = performance.now() + request.timeoutMs;
    if (request.signal !== undefined) setMaxListeners(0, request.signal);
    let credentials = await this.#inTime(this.#credentials.get(), request, deadline);
    let mayRenew = true;
    let mayRepeat = request.method !== "POST" && request.body?.type !== "application/json-patch+json";
    for (;;) {
      const agent = credentials.proxyAgent ?? this.#agentsFor(credentials)[connections];
      const exchange = new Exchange(request, credentials, agent, this.#closing.signal, deadline);
      try {
        return await use(exchange);
      } catch (error) {
        if (error instanceof ClusterError && error.status === 401 && mayRenew) {
          mayRenew = false;
          const renewed = await this.#inTime(this.#credentials.renew(credentials), request, deadline);
          if (renewed === undefined) throw error;
          credentials = renewed;
        } else if (exchange.isStale && mayRepeat) mayRepeat = false;
        else throw error;
      } finally {
        exchange.end();
      }
    }
  }

  /** What takes too long, or is not wanted any more, is left to itself. */
  async #inTime<Value>(work: Promise<Value>, { signal, timeoutMs }: ClusterRequest, deadline: number): Promise<Value> {
    const signals = [signal, this.#closing.signal].filter((one) => one !== undefined);
    let timer: NodeJS.Timeout | undefined;
    let giveUp = () => {};
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(tooLate(timeoutMs)), Math.max(0, deadline - performance.now()));
        giveUp = () => reject(givenUp(signal));
        for (const one of signals) {
          if (one.aborted) giveUp();
          one.addEventListener("abort", giveUp);
        }
        work.then(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
      for (const one of signals) one.removeEventListener("abort", giveUp);
    }
  }

  /** Connections are of a certificate and an authority: where these have changed, what is open runs out, and nothing of it is used again. */
  #agentsFor({ server, tls }: Credentials): Agents {
    const key = JSON.stringify([server.protocol, tls], (_name, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
    );
    if (this.#agents?.key === key) return this.#agents;
    if (this.#agents !== undefined) for (const agent of [this.#agents.calls, this.#agents.streams]) retire(agent);
    this.#agents = { key, calls: agentOf(server, tls, mostCalls), streams: agentOf(server, tls, mostStreams) };
    return this.#agents;
  }
}

export interface StreamTaker {
  /** The server has accepted. */
  readonly opened?: () => void;
  /** May throw: then the stream ends with that. */
  readonly chunk: (bytes: Buffer) => void;
}

interface Agents {
  readonly key: string;
  readonly calls: HttpAgent;
  readonly streams: HttpAgent;
}

/** One request and its answer, with one timer. */
class Exchange {
  readonly answer: Promise<IncomingMessage>;
  /** It broke off on a connection that was kept, before anything came: the server had closed that, and has not seen the request. */
  isStale = false;
  readonly #outgoing: ClientRequest;
  readonly #request: ClusterRequest;
  readonly #credentials: Credentials;
  readonly #closing: AbortSignal;
  readonly #giveUp: () => void;
  #timer: NodeJS.Timeout | undefined;
  #why: ClusterError | undefined;

  constructor(
    request: ClusterRequest,
    credentials: Credentials,
    agent: HttpAgent,
    closing: AbortSignal,
    deadline: number,
  ) {
    this.#request = request;
    this.#credentials = credentials;
    this.#closing = closing;
    this.#giveUp = () => this.#stop(givenUp(this.#request.signal));
    this.#outgoing = open(request, credentials, agent);
    this.answer = this.#begin();
    this.wait(deadline - performance.now(), tooLate(request.timeoutMs));
    for (const signal of [request.signal, closing]) {
      if (signal?.aborted) this.#giveUp();
      signal?.addEventListener("abort", this.#giveUp);
    }
  }

  /** From now on, so much time. */
  wait(ms: number, why: ClusterError): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#stop(why), Math.max(0, ms));
  }

  /** The whole body. */
  async read(answer: IncomingMessage, mostBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    await this.follow(answer, (chunk) => {
      bytes += chunk.length;
      if (bytes > mostBytes) throw new AnswerTooLarge("unavailable", `an answer of more than ${mostBytes} bytes`);
      chunks.push(chunk);
    });
    return Buffer.concat(chunks);
  }

  /** The body as it comes, to its end. An answer that ends before its time is an error. */
  follow(answer: IncomingMessage, take: (chunk: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      answer.on("data", (chunk: Buffer) => {
        try {
          if (this.#why === undefined) take(chunk);
        } catch (error) {
          this.#stop(
            error instanceof ClusterError ? error : new ClusterError("unavailable", messageOf(error), { cause: error }),
          );
        }
      });
      answer.once("end", () => (answer.complete ? resolve() : reject(this.#failure(undefined))));
      answer.once("error", (error) => reject(this.#failure(error)));
      answer.once("close", () => reject(this.#failure(undefined)));
      if (this.#why !== undefined) reject(this.#why);
    });
  }

  /** Nothing is left of it: no timer, no listener, and no connection unless the answer was read to its end. */
  end(): void {
    clearTimeout(this.#timer);
    for (const signal of [this.#request.signal, this.#closing]) signal?.removeEventListener("abort", this.#giveUp);
    // Does nothing to a connection that has gone back to its agent.
    if (!this.#outgoing.destroyed) this.#outgoing.destroy();
  }

  async #begin(): Promise<IncomingMessage> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      this.#outgoing.once("response", resolve);
      this.#outgoing.on("error", (error: NodeJS.ErrnoException) => {
        const isReset = error.code === "ECONNRESET" || error.code === "EPIPE";
        this.isStale = isReset && this.#why === undefined && this.#outgoing.reusedSocket;
        reject(this.#failure(error));
      });
      this.#outgoing.once("close", () => reject(this.#failure(undefined)));
      this.#outgoing.end(this.#request.body?.text);
    });
    // A late error of a request that was answered is the answer's.
    this.isStale = false;
    const { statusCode: status = 0, headers } = answer;
    const encoding = headers["content-encoding"] ?? "identity";
    if (encoding !== "identity") {
      throw this.#stop(new ClusterError("unavailable", `an answer in ${plainText(encoding)}`, { status }));
    }
    if (status >= 200 && status < 300) return answer;
    const body = await this.read(answer, mostFailureBytes);
    throw readFailure({
      status,
      headers,
      body: body.toString("utf8"),
      secrets: this.#credentials.secrets,
      isSecret: this.#request.isSecret ?? false,
    });
  }

  #stop(why: ClusterError): ClusterError {
    this.#why ??= why;
    this.#outgoing.destroy(this.#why);
    return this.#why;
  }

  #failure(error: Error | undefined): ClusterError {
    if (this.#why !== undefined) return this.#why;
    if (error instanceof ClusterError) return error;
    const said = error === undefined ? "the connection was closed" : messageOf(error);
    return new ClusterError("unavailable", plainText(said, this.#credentials.secrets), { cause: error });
  }
}

function open(request: ClusterRequest, { server, headers }: Credentials, agent: HttpAgent): ClientRequest {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) if (value !== undefined) query.set(name, value);
  const search = query.size === 0 ? "" : `?${query.toString()}`;
  const sent: Record<string, string> = {
    "user-agent": "osbert",
    accept: "application/json",
    "accept-encoding": "identity",
    ...headers,
  };
  if (request.body !== undefined) {
    sent["content-type"] = request.body.type;
    sent["content-length"] = String(Buffer.byteLength(request.body.text));
  }
  return (server.protocol === "https:" ? httpsRequest : httpRequest)({
    agent,
    method: request.method,
    host: server.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: server.port === "" ? (server.protocol === "https:" ? 443 : 80) : Number(server.port),
    path: `${server.pathname.replace(/\/$/, "")}${request.path}${search}`,
    headers: sent,
  });
}

function agentOf({ protocol }: URL, tls: TlsMaterial, maxSockets: number): HttpAgent {
  const options = { keepAlive: true, keepAliveMsecs: 15_000, maxSockets, maxFreeSockets: 8, timeout: idleMs };
  return protocol === "https:" ? new HttpsAgent({ ...options, ...tls }) : new HttpAgent(options);
}

function retire(agent: HttpAgent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

function tooLate(timeoutMs: number): ClusterError {
  return new ClusterError("unavailable", `no answer within ${timeoutMs} ms`);
}

function givenUp(signal: AbortSignal | undefined): ClusterError {
  if (signal?.aborted) return new ClusterError("unavailable", "the call was given up", { cause: signal.reason });
  return new ClusterError("unavailable", "the edge to the cluster is closed");
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  const { code } = error as NodeJS.ErrnoException;
  return error.message === "" ? (code ?? error.name) : error.message;
}
