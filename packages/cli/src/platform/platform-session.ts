import { apiDescriptions, apiRoutes } from "@osbert/platform/api";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { isNotSent } from "@osbert/protocol/client";
import { type BrokerRequest, type BrokerResponse, brokerFetch } from "@osbert/protocol/node";
import { type ApiClient, apiClient, type SendRequest, ShapeError } from "@osbert/server/client";
import { brokerUrl, isOpenToReaders } from "../client/broker-url.js";
import { readLogin } from "../client/credentials.js";
import { errorCodeOf } from "../client/error-code.js";
import { CommandError } from "../client/exit-status.js";
import { readBounded } from "../client/read-bounded.js";
import type { Surroundings } from "../client/surroundings.js";
import type { PlatformOptions } from "./platform-options.js";
import { PlatformProblem } from "./platform-problem.js";
import { readTargetLogin, readTargets, type Target, targetNamed, targetsFolder } from "./targets.js";

/** Asks a route of the API by its name. */
export type PlatformClient = ApiClient<typeof apiRoutes, typeof apiDescriptions>;

/** JSON that goes into a body as it was written: a number beyond 2^53 would not come through otherwise. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A command's connection to a platform. */
export interface PlatformSession {
  readonly url: string;
  readonly space: string;
  readonly json: boolean;
  readonly surroundings: Surroundings;
  /** Asks a route of the API, with an answer that is as the route describes it. */
  readonly ask: PlatformClient;
  /** The same with headers, and with the text of the answer, in which numbers are as they were written. */
  askWith(headers: Readonly<Record<string, string | undefined>>): {
    readonly ask: PlatformClient;
    readonly text: () => string;
  };
  /** An answer that goes on for as long as someone listens. */
  stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<BrokerResponse>;
  readonly read: (file: string) => Promise<string>;
}

const defaultTimeoutSeconds = 60;
const largestAnswer = 16 * 1024 * 1024;

/** Reads what the options name and asks the platform nothing yet. */
export async function openPlatformSession(
  options: PlatformOptions,
  surroundings: Surroundings,
): Promise<PlatformSession> {
  const { env, stderr } = surroundings;
  const read = (file: string) => readBounded(file, surroundings);
  const found = await findTarget(options, env);
  const { url } = found;
  const authorization = await authorizationOf(options, env, found.login, read);
  if (isOpenToReaders(url)) stderr.write("warning: the credentials go over the network unencrypted; use https\n");
  const ca = options.ca ?? found.target?.ca ?? undefined;
  if (ca !== undefined && !url.startsWith("https:"))
    throw new CommandError("usage", "--ca is for a URL that begins with https://");
  const call = brokerFetch(ca === undefined ? {} : { ca: await read(ca) });
  const timeoutMs = (options.requestTimeout ?? defaultTimeoutSeconds) * 1_000;

  const request = async (method: string, path: string, init: BrokerRequest & { readonly signal: AbortSignal }) => {
    try {
      return await call(`${url}${path}`, {
        ...init,
        method,
        headers: { authorization, ...init.headers },
        // A redirect would take the credentials along to who knows where.
        redirect: "manual",
      });
    } catch (cause) {
      throw noAnswer(url, cause, init.signal);
    }
  };
  const sending =
    (headers: Readonly<Record<string, string | undefined>>, keep: (text: string) => void): SendRequest =>
    async (method, path, { query, body }) => {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await request(method, `${path}${searchOf(query)}`, {
        headers: {
          accept: "application/json",
          ...defined(headers),
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        signal,
        ...(body !== undefined && { body: bodyText(body) }),
      });
      const text = await readText(response, url, signal);
      const value = parse(text);
      if (response.status >= 200 && response.status < 300 && value !== undefined) {
        keep(text);
        return value;
      }
      throw PlatformProblem.of(response.status, value, url);
    };
  const askWith: PlatformSession["askWith"] = (headers) => {
    let last = "";
    const client = apiClient(
      apiRoutes,
      apiDescriptions,
      sending(headers, (text) => {
        last = text;
      }),
    );
    const ask: PlatformClient = (...asked) => client(...asked).catch(notOurs) as never;
    return { ask, text: () => last };
  };
  return {
    url,
    space: options.space ?? (env.OSBERT_PLATFORM_SPACE || found.target?.space || "default"),
    json: options.json ?? false,
    surroundings,
    ask: askWith({}).ask,
    askWith,
    async stream(path, headers, signal) {
      const response = await request("GET", path, { headers, signal });
      if (response.status === 200) return response;
      throw PlatformProblem.of(response.status, parse(await readText(response, url, signal)), url);
    },
    read,
  };
}

interface FoundTarget {
  readonly url: string;
  readonly target: Target | null;
  /** What is saved with the target. It goes to the target's own address and nowhere else. */
  readonly login: string | null;
}

async function findTarget(options: PlatformOptions, env: Surroundings["env"]): Promise<FoundTarget> {
  const given = options.url ?? (options.target === undefined ? env.OSBERT_PLATFORM_URL : undefined);
  if (options.url !== undefined && options.target !== undefined)
    throw new CommandError("usage", "--url and --target say the same in two ways; use one of them");
  if (given) return { url: platformUrl(given), target: null, login: null };
  const folder = targetsFolder(env);
  const { current, targets } = await readTargets(folder);
  const name = options.target ?? (env.OSBERT_PLATFORM_TARGET || current);
  if (name === null)
    throw new CommandError("usage", "which platform? Save one with osbert platform target add, or use --url");
  const target = targetNamed(targets, name);
  return { url: platformUrl(target.url), target, login: await readTargetLogin(folder, name) };
}

/** Without `/api/v1`, which people copy along. */
export function platformUrl(text: string): string {
  try {
    return brokerUrl(text.replace(/\/api(?:\/v1)?\/?$/, ""), undefined);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError("usage", ofPlatform(error.message));
  }
}

/** The pieces that are shared with the commands for brokers speak of brokers. */
export function ofPlatform(sentence: string): string {
  return sentence
    .replaceAll("broker", "platform")
    .replaceAll("OSBERT_LOGIN", "OSBERT_PLATFORM_LOGIN")
    .replaceAll("OSBERT_TOKEN", "OSBERT_PLATFORM_TOKEN");
}

async function authorizationOf(
  { credentialsFile }: PlatformOptions,
  env: Surroundings["env"],
  saved: string | null,
  read: (file: string) => Promise<string>,
): Promise<string> {
  const { OSBERT_PLATFORM_LOGIN: pair, OSBERT_PLATFORM_TOKEN: token } = env;
  const asked = credentialsFile !== undefined || Boolean(pair) || Boolean(token);
  try {
    const login =
      asked || saved === null
        ? await readLogin({ OSBERT_LOGIN: pair, OSBERT_TOKEN: token }, credentialsFile, read)
        : await readLogin({}, "the target's login", () => Promise.resolve(saved));
    if (login === undefined)
      throw new CommandError("usage", "set OSBERT_LOGIN=name:password or OSBERT_TOKEN, or use --credentials-file");
    return authorizationHeader(login.credentials);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError("usage", ofPlatform(error.message));
  }
}

function authorizationHeader(credentials: string | { readonly username: string; readonly password: string }): string {
  if (typeof credentials === "string") return credentials;
  return `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64")}`;
}

function notOurs(error: unknown): never {
  if (!(error instanceof ShapeError)) throw error;
  throw new CommandError(
    "unreachable",
    `what answers there is not the API of an Osbert platform, or one of another version: ${error.message}`,
  );
}

/** Nobody knows what became of a request that may have arrived. */
export class NoAnswerError extends CommandError {
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause: unknown) {
    super("unreachable", message, { cause });
    this.mayHaveArrived = mayHaveArrived;
  }
}

function noAnswer(url: string, cause: unknown, signal: AbortSignal): CommandError {
  const code = errorCodeOf(cause);
  const isNever = !signal.aborted && isNotSent(cause, signal);
  const kind = signal.aborted ? "it did not answer in time" : isNever ? "it cannot be reached" : "the connection broke";
  const message = `no answer from the platform at ${url}: ${kind}${code && ` (${code})`}`;
  return new NoAnswerError(message, !isNever, cause);
}

async function readText(response: BrokerResponse, url: string, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > largestAnswer)
        throw new CommandError("unreachable", `the platform's answer is larger than ${largestAnswer} bytes`);
      chunks.push(chunk);
    }
  } catch (cause) {
    throw cause instanceof CommandError ? cause : noAnswer(url, cause, signal);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function bodyText(body: object): string {
  const fields = Object.entries(body).flatMap(([name, value]: [string, unknown]) =>
    value === undefined
      ? []
      : [`${JSON.stringify(name)}:${value instanceof JsonText ? value.text : JSON.stringify(value)}`],
  );
  return `{${fields.join(",")}}`;
}

function searchOf(query: Readonly<Record<string, string | undefined>>): string {
  const search = new URLSearchParams(defined(query)).toString();
  return search === "" ? "" : `?${search}`;
}

function defined(all: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined));
}
