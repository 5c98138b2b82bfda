import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type ServerOptions as TlsOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { headerNames, isDeeperThan, isJsonObject, type Json, type JsonObject } from "@osbert/protocol";
import { type Chaos, chaosFor } from "./chaos.js";
import { type Delivered, deliver, reset } from "./deliver.js";
import { type Asked, type GoodAnswer, type KeptInstance, KeptServices } from "./kept-services.js";
import { type MisbehavingCatalog, misbehavingCatalogs } from "./misbehaving-catalogs.js";
import { calls, type MisbehavingCall, type Misbehaviour, MisbehaviourError } from "./misbehaviour.js";
import { namedMisbehaviour } from "./named-misbehaviours.js";
import { isList, parseRules, parseWish, type Rule, type Script, stepAt } from "./script.js";

export interface MisbehavingOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default: any that is free. */
  readonly port?: number;
  /** Of the API and of `/misbehave`. */
  readonly credentials: { readonly username: string; readonly password: string };
  readonly rules?: readonly Rule[];
  /** By name, or any value. Default `usual`. */
  readonly catalog?: MisbehavingCatalog | { readonly value: Json };
  readonly chaos?: Chaos;
  /** With `requestCert` and `ca` it asks for certificates of clients. */
  readonly tls?: TlsOptions;
  readonly now?: () => number;
}

/** One request, as it came in. */
export interface SeenRequest {
  readonly number: number;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** Without the credentials. */
  readonly headers: IncomingHttpHeaders;
  /** As it was written, at most 64 KiB of it. */
  readonly body: string;
  readonly call: MisbehavingCall | null;
  /** `null`: it was treated well. */
  readonly misbehaviour: Misbehaviour | null;
  /** `null`: not yet. */
  readonly delivered: Delivered | null;
}

/** What the broker has. `pending`: how much of what was asked for it will do late. */
export interface MisbehavingState {
  readonly instances: readonly KeptInstance[];
  readonly created: number;
  readonly deleted: number;
  readonly pending: number;
}

/** A broker on a real socket that keeps what it is asked for in memory, and misbehaves as it is told. */
export interface MisbehavingBroker {
  readonly url: string;
  state(): MisbehavingState;
  /** The last 10,000. */
  requests(): readonly SeenRequest[];
  /** Instead of those before; all begin to count anew. */
  setRules(rules: readonly Rule[]): void;
  setCatalog(catalog: MisbehavingCatalog | { readonly value: Json }): void;
  /** Does at once all that is to be done late. */
  finishLate(): void;
  /** Loses all that it keeps. */
  forget(): void;
  /** Breaks all connections. */
  stop(): Promise<void>;
}

const mostRequests = 10_000;
const longestLoggedBody = 64 * 1024;
const largestBody = 8 * 1024 * 1024;
const deepestBody = 100;

/** Starts it. Rejects where the address cannot be had. */
export async function startMisbehaving(options: MisbehavingOptions): Promise<MisbehavingBroker> {
  const broker = new Misbehaving(options);
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    // A connection that its client broke is nobody's business any more.
    broker.handle(request, response).catch(() => response.destroy());
  };
  const server = options.tls === undefined ? createServer(handle) : createTlsServer(options.tls, handle);
  const { host = "127.0.0.1", port = 0 } = options;
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `${options.tls === undefined ? "http" : "https"}://${shown}:${address.port}`,
    state: () => broker.state(),
    requests: () => broker.requests,
    setRules: (rules) => broker.setRules(rules),
    setCatalog: (catalog) => broker.setCatalog(catalog),
    finishLate: () => broker.finishLate(),
    forget: () => broker.forget(),
    stop: async () => {
      broker.stopping.abort();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

class Misbehaving {
  readonly stopping = new AbortController();
  readonly requests: SeenRequest[] = [];
  readonly #options: MisbehavingOptions;
  readonly #now: () => number;
  readonly #kept: KeptServices;
  #rules: readonly { readonly rule: Rule; used: number }[] = [];
  #catalogText = "";
  #late: { readonly at: number; readonly run: () => void }[] = [];
  /** What an instance or binding is to be treated like, as its parameters said, by `subjectOf`. */
  readonly #wishes = new Map<string, Partial<Record<MisbehavingCall, Script>>>();
  /** How often each call was made for each subject. */
  readonly #counts = new Map<string, number>();
  #number = 0;

  constructor(options: MisbehavingOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#kept = new KeptServices(this.#now);
    this.setRules(options.rules ?? []);
    this.setCatalog(options.catalog ?? "usual");
  }

  state(): MisbehavingState {
    this.#runLate(this.#now());
    return { ...this.#kept.state(), pending: this.#late.length };
  }

  setRules(rules: readonly Rule[]): void {
    this.#rules = rules.map((rule) => ({ rule, used: 0 }));
  }

  setCatalog(catalog: MisbehavingCatalog | { readonly value: Json }): void {
    this.#catalogText = JSON.stringify(typeof catalog === "string" ? misbehavingCatalogs[catalog]() : catalog.value);
  }

  finishLate(): void {
    this.#runLate(Number.POSITIVE_INFINITY);
  }

  forget(): void {
    this.#kept.forget();
    this.#late = [];
    this.#wishes.clear();
    this.#counts.clear();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { signal } = this.stopping;
    response.on("error", () => undefined);
    const url = new URL(request.url ?? "/", "http://broker");
    if (!this.#isAllowed(request.headers.authorization))
      return void (await deliver(response, saying(401, "the credentials are wrong"), {}, signal));
    if (url.pathname.startsWith("/misbehave/")) return this.#control(request, response, url);
    const target = targetOf(request.method ?? "", url);
    // What spoils the reading is known before the body is there: only rules can ask for it.
    const early = target === null ? undefined : this.#early(target);
    const length = headLength(request);
    if (early?.requestBytes !== undefined) {
      const body = await read(request, early.requestBytes - length);
      const note = this.#note(request, url, body.text, target?.call ?? null, early);
      note.delivered = "reset";
      return reset(request.socket);
    }
    const { text, whole } = await read(request, largestBody);
    const body = whole ? parseObject(text) : undefined;
    if (target === null || body === undefined) {
      const note = this.#note(request, url, text, target?.call ?? null, null);
      const answer = !whole
        ? saying(413, "the body is too large")
        : target === null
          ? saying(404, "there is no such address")
          : saying(400, "the body must be a JSON object");
      note.delivered = await deliver(response, answer, {}, signal);
      return;
    }
    const asked: Asked = { ...target, query: url.searchParams, body };
    this.#runLate(this.#now());
    let how: Misbehaviour;
    try {
      how = early ?? this.#choose(asked);
    } catch (error) {
      if (!(error instanceof MisbehaviourError)) throw error;
      await deliver(response, saying(400, error.message), {}, signal);
      return;
    }
    const note = this.#note(request, url, text, asked.call, Object.keys(how).length === 0 ? null : how);
    if (how.requestBytes !== undefined) {
      note.delivered = "reset";
      return reset(request.socket);
    }
    if (request.headers[headerNames.version.toLowerCase()] === undefined)
      note.delivered = await deliver(response, saying(400, `${headerNames.version} is missing`), {}, signal);
    else note.delivered = await deliver(response, this.#act(asked, how, request.headers), how, signal);
  }

  /** Does what was asked for, now or late or not at all. Nothing is awaited: what it decides and what it does are one. */
  #act(
    asked: Asked,
    how: Misbehaviour,
    headers: IncomingHttpHeaders,
  ): GoodAnswer & { headers?: Record<string, string> } {
    if (asked.call === "catalog") return this.#catalog(headers["if-none-match"]);
    const usual = how.status === undefined || how.status < 300 ? "done" : "none";
    const effect = how.effect ?? usual;
    if (effect === "none") return saying(500, "nothing was done");
    if (effect === "late") {
      const run = () => void this.#kept.answer(asked, how.slow);
      this.#late.push({ at: this.#now() + (how.lateMs ?? 0), run });
      return saying(500, "it will be done");
    }
    return this.#kept.answer(asked, how.slow);
  }

  #catalog(known: string | undefined): GoodAnswer & { headers: Record<string, string> } {
    const etag = `"${createHash("sha256").update(this.#catalogText).digest("base64url").slice(0, 22)}"`;
    if (known === etag) return { status: 304, body: {}, headers: { etag } };
    return { status: 200, body: JSON.parse(this.#catalogText) as Json, headers: { etag } };
  }

  /** A rule, else what the parameters say, else what the operation that is polled says, else the plan's name, else chance. */
  #choose(asked: Asked): Misbehaviour {
    const { call } = asked;
    const { own, later } = parseWish(asked.body.parameters);
    const plan = this.#planName(asked);
    const ruled = this.#ruled(asked, plan);
    const subject = subjectOf(asked);
    const count = this.#count(call, subject);
    if (Object.keys(later).length > 0) this.#wishes.set(subject, { ...this.#wishes.get(subject), ...later });
    if (ruled !== undefined) return ruled;
    const wish = own ?? this.#wishes.get(subject)?.[call];
    if (wish !== undefined) return stepAt(wish, count) ?? {};
    if (call === "poll" || call === "poll-binding") {
      const polled = this.#kept.polledAs(asked);
      if (polled !== undefined) return polled;
    }
    // A plan misbehaves when an instance is created, or else no instance of it could be deleted.
    const named = call === "provision" && plan !== undefined ? namedMisbehaviour(plan) : undefined;
    if (named !== undefined && Object.keys(named).length > 0) return named;
    const { chaos } = this.#options;
    return (chaos === undefined ? undefined : chaosFor(chaos, call, subject, count)) ?? {};
  }

  /** Of rules that do not ask for the plan, which may be in the body. */
  #early(target: Target): Misbehaviour | undefined {
    const asked = { ...target, query: new URLSearchParams(), body: {} };
    const found = this.#rules.find(({ rule }) => rule.plan === undefined && fits(rule, asked, undefined));
    const step = found && stepAt(found.rule.do, found.used - (found.rule.skip ?? 0));
    return step?.requestBytes === undefined ? undefined : this.#ruled(asked, undefined);
  }

  #ruled(asked: Asked, plan: string | undefined): Misbehaviour | undefined {
    for (const one of this.#rules) {
      if (!fits(one.rule, asked, plan)) continue;
      const at = one.used - (one.rule.skip ?? 0);
      if (at >= 0 && isList(one.rule.do) && at >= one.rule.do.length) continue;
      one.used++;
      if (at >= 0) return stepAt(one.rule.do, at);
    }
    return undefined;
  }

  #planName(asked: Asked): string | undefined {
    const id = typeof asked.body.plan_id === "string" ? asked.body.plan_id : asked.query.get("plan_id");
    return (id ?? this.#kept.planOf(asked))?.replace(/^plan-/, "");
  }

  #count(call: MisbehavingCall, subject: string): number {
    const key = `${call} ${subject}`;
    const count = this.#counts.get(key) ?? 0;
    this.#counts.set(key, count + 1);
    return count;
  }

  #runLate(until: number): void {
    const due = this.#late.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
    this.#late = this.#late.filter((one) => !due.includes(one));
    for (const { run } of due) run();
  }

  #note(
    request: IncomingMessage,
    url: URL,
    body: string,
    call: MisbehavingCall | null,
    misbehaviour: Misbehaviour | null,
  ): { delivered: Delivered | null } {
    const { authorization, ...headers } = request.headers;
    const note = {
      number: ++this.#number,
      at: this.#now(),
      method: request.method ?? "",
      path: url.pathname,
      query: url.search.slice(1),
      headers,
      body: body.slice(0, longestLoggedBody),
      call,
      misbehaviour,
      delivered: null,
    };
    this.requests.push(note);
    if (this.requests.length > mostRequests) this.requests.shift();
    return note;
  }

  async #control(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const { text } = await read(request, largestBody);
    const answer = this.#controlled(`${request.method} ${url.pathname}`, text);
    await deliver(response, answer, {}, this.stopping.signal);
  }

  #controlled(line: string, text: string): GoodAnswer {
    switch (line) {
      case "GET /misbehave/state":
        return { status: 200, body: asJson(this.state()) };
      case "DELETE /misbehave/state":
        this.forget();
        return { status: 200, body: {} };
      case "GET /misbehave/requests":
        return { status: 200, body: asJson({ requests: this.requests }) };
      case "GET /misbehave/rules":
        return { status: 200, body: asJson({ rules: this.#rules.map(({ rule }) => rule) }) };
      case "PUT /misbehave/rules":
        return controlled(() => this.setRules(parseRules(parse(text))));
      case "PUT /misbehave/catalog":
        return controlled(() => {
          const value = parse(text);
          if (typeof value !== "string") return this.setCatalog({ value: value as Json });
          if (!Object.hasOwn(misbehavingCatalogs, value))
            throw new MisbehaviourError(`there is no catalog ${JSON.stringify(value)}`);
          this.setCatalog(value as MisbehavingCatalog);
        });
      case "POST /misbehave/finish":
        this.finishLate();
        return { status: 200, body: {} };
      default:
        return saying(404, "there is no such address");
    }
  }

  #isAllowed(header: string | undefined): boolean {
    const { username, password } = this.#options.credentials;
    const wanted = digest(`Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`);
    return timingSafeEqual(wanted, digest(header ?? ""));
  }
}

type Target = Pick<Asked, "call" | "instance" | "binding">;

/** What a request line asks for; `null`: nothing that a broker has. */
function targetOf(method: string, url: URL): Target | null {
  if (method === "GET" && url.pathname === "/v2/catalog") return { call: "catalog", instance: "", binding: "" };
  const match = /^\/v2\/service_instances\/([^/]+)(?:\/service_bindings\/([^/]+))?(\/last_operation)?$/.exec(
    url.pathname,
  );
  if (match === null) return null;
  const ids = { instance: decode(match[1]), binding: decode(match[2]) };
  const isBinding = ids.binding !== "";
  const call = (callsOf[`${method}${match[3] ?? ""}`] ?? [])[isBinding ? 1 : 0];
  return call === undefined ? null : { call, ...ids };
}

const callsOf: Readonly<Record<string, readonly MisbehavingCall[]>> = {
  PUT: ["provision", "bind"],
  PATCH: ["update"],
  DELETE: ["deprovision", "unbind"],
  GET: ["fetch", "fetch-binding"],
  "GET/last_operation": ["poll", "poll-binding"],
};

function decode(segment: string | undefined): string {
  try {
    return decodeURIComponent(segment ?? "");
  } catch {
    return segment ?? "";
  }
}

function fits(rule: Rule, asked: Asked, plan: string | undefined): boolean {
  const { call = calls, instance, binding } = rule;
  if (![call].flat().includes(asked.call)) return false;
  if (instance !== undefined && instance !== asked.instance) return false;
  if (binding !== undefined && binding !== asked.binding) return false;
  return rule.plan === undefined || rule.plan.replace(/^plan-/, "") === plan;
}

function subjectOf({ instance, binding }: Target): string {
  return JSON.stringify(binding === "" ? [instance] : [instance, binding]);
}

/** Reads so many bytes of a body, and no more. */
async function read(request: IncomingMessage, most: number): Promise<{ text: string; whole: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  if (most > 0)
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk as Buffer);
      length += (chunk as Buffer).length;
      if (length > most) return { text: Buffer.concat(chunks).subarray(0, most).toString(), whole: false };
    }
  return { text: Buffer.concat(chunks).toString(), whole: true };
}

function headLength({ method = "", url = "", rawHeaders }: IncomingMessage): number {
  const lines = rawHeaders.reduce((sum, text) => sum + Buffer.byteLength(text) + ": ".length, 0);
  return method.length + url.length + "  HTTP/1.1\r\n\r\n".length + lines;
}

function parse(text: string): unknown {
  try {
    return isDeeperThan(text, deepestBody) ? undefined : (JSON.parse(text) as unknown);
  } catch {
    throw new MisbehaviourError("the body is no JSON");
  }
}

function parseObject(text: string): JsonObject | undefined {
  if (text === "") return {};
  try {
    const value = parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function controlled(act: () => void): GoodAnswer {
  try {
    act();
    return { status: 200, body: {} };
  } catch (error) {
    if (error instanceof MisbehaviourError) return saying(400, error.message);
    throw error;
  }
}

function saying(status: number, description: string): GoodAnswer {
  return { status, body: { description } };
}

function asJson(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
