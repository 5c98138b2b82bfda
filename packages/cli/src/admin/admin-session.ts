import { adminDescriptions, adminRoutes } from "@osbert/broker/admin";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { BrokerAnswerError, isNotSent, parseRetryAfter } from "@osbert/protocol/client";
import { type BrokerRequest, type BrokerResponse, brokerFetch } from "@osbert/protocol/node";
import type { Route } from "@osbert/server";
import { type ApiClient, apiClient, type RouteDescription, type SendRequest, ShapeError } from "@osbert/server/client";
import { brokerUrl, defaultUrl, isOpenToReaders } from "../client/broker-url.js";
import { connectionOf } from "../client/connection-of.js";
import { loginAmong } from "../client/credentials.js";
import { CommandError } from "../client/exit-status.js";
import { readBounded } from "../client/read-bounded.js";
import type { Surroundings } from "../client/surroundings.js";

/** The options that every admin command has. */
export interface AdminOptions {
  readonly url?: string;
  readonly platform?: string;
  readonly credentialsFile?: string;
  readonly ca?: string;
  /** Seconds. */
  readonly requestTimeout?: number;
  readonly json?: boolean;
}

/** A command's connection to the admin API of a broker. */
export interface AdminSession {
  readonly url: string;
  readonly json: boolean;
  readonly surroundings: Surroundings;
  /** The options that lead to the same broker again. */
  readonly connection: readonly string[];
  /** Asks a route of the admin API, with an answer that is as the route describes it. */
  readonly ask: AdminClient;
  /** Asks other routes that the same API has. */
  client<
    const Routes extends readonly Route[],
    const Described extends Readonly<Record<Routes[number][2], RouteDescription>>,
  >(routes: Routes, described: Described): ApiClient<Routes, Described>;
}

type AdminClient = ApiClient<typeof adminRoutes, typeof adminDescriptions>;

const defaultTimeoutSeconds = 60;
/** A page has at most 500 items, each of bounded size. */
const largestAnswer = 16 * 1024 * 1024;

/** Reads what the options name and asks the broker nothing yet. */
export async function openAdminSession(options: AdminOptions, surroundings: Surroundings): Promise<AdminSession> {
  const { env, stderr } = surroundings;
  const read = (file: string) => readBounded(file, surroundings);
  const url = brokerUrl(options.url ?? (env.OSBERT_ADMIN_URL || defaultUrl), undefined);
  const { authorization, place } = await loginOf(env, options.credentialsFile, read);
  if (isOpenToReaders(url)) stderr.write("warning: the credentials go over the network unencrypted; use https\n");
  if (options.ca !== undefined && !url.startsWith("https:"))
    throw new CommandError("usage", "--ca is for a URL that begins with https://");
  const call = brokerFetch(options.ca === undefined ? {} : { ca: await read(options.ca) });
  const timeoutMs = (options.requestTimeout ?? defaultTimeoutSeconds) * 1_000;
  const send: SendRequest = async (method, path, { query, body }) => {
    const given = Object.entries({ platform: options.platform, ...query }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    );
    const search = new URLSearchParams(given).toString();
    const signal = AbortSignal.timeout(timeoutMs);
    const request: BrokerRequest = {
      method,
      headers: {
        accept: "application/json",
        authorization,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      // A redirect would take the credentials along to who knows where.
      redirect: "manual",
      signal,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    try {
      return await read200(place, await call(`${url}${path}${search === "" ? "" : `?${search}`}`, request));
    } catch (cause) {
      if (cause instanceof BrokerAnswerError || cause instanceof CommandError) throw cause;
      const sent = !isNotSent(cause, signal);
      const kind = signal.aborted ? "timed out" : sent ? "connection lost" : "no connection";
      throw new BrokerAnswerError(`the broker did not answer: ${kind}`, { kind, sent, cause });
    }
  };
  const client: AdminSession["client"] = (routes, described) => {
    const ask = apiClient(routes, described, send);
    return (...asked) => ask(...asked).catch(notOurs) as never;
  };
  return {
    url,
    json: options.json ?? false,
    surroundings,
    connection: connectionOf(options),
    ask: client(adminRoutes, adminDescriptions),
    client,
  };
}

/** Whoever answers is no broker of ours, or one of another version. */
function notOurs(error: unknown): never {
  if (!(error instanceof ShapeError)) throw error;
  throw new CommandError(
    "unreachable",
    `what answers there is not the admin API of an Osbert broker, or one of another version: ${error.message}`,
  );
}

/** The object in a 200; every other answer is an error, which its status decides before its body. `place`: where the login stands. */
async function read200(place: string, response: BrokerResponse): Promise<JsonObject> {
  const { status } = response;
  if (status === 401)
    throw new CommandError(
      "failed",
      `the broker does not know you: the name or the password in ${place} is wrong, or not one of its admin API.\n` +
        "Set OSBERT_ADMIN_LOGIN=name:password, or use --credentials-file. A platform's name and password do not open the admin API.",
    );
  const body = await readObject(response).catch((error: unknown) => {
    if (status >= 400) return undefined;
    throw error;
  });
  if (status === 200 && body !== undefined) return body;
  if (status === 404 && body?.error === undefined)
    throw new CommandError("unreachable", "what answers there has no admin API; is the URL that of an Osbert broker?");
  const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), Date.now);
  const answer = { status, body, retryAfterMs, etag: undefined };
  throw new BrokerAnswerError(`the broker answered ${status}`, { kind: "answer", answer });
}

async function readObject(response: BrokerResponse): Promise<JsonObject | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > largestAnswer)
      throw new BrokerAnswerError(`the broker's answer is larger than ${largestAnswer} bytes`, { kind: "too large" });
    chunks.push(chunk);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** From the file if one is named, else from the environment: never from the command line, which every user of the machine can read. */
async function loginOf(
  env: Surroundings["env"],
  file: string | undefined,
  read: (file: string) => Promise<string>,
): Promise<{ readonly authorization: string; readonly place: string }> {
  const { OSBERT_ADMIN_LOGIN: login = "", OSBERT_ADMIN_CREDENTIALS: accepted = "" } = env;
  const place = file ?? (login === "" && accepted !== "" ? "OSBERT_ADMIN_CREDENTIALS" : "OSBERT_ADMIN_LOGIN");
  const [text = ""] =
    file === undefined
      ? [login || loginAmong(accepted, "OSBERT_ADMIN_CREDENTIALS", "OSBERT_ADMIN_LOGIN")]
      : (await read(file)).split(/\r?\n/, 1);
  if (text === "" && file === undefined)
    throw new CommandError("usage", "set OSBERT_ADMIN_LOGIN=name:password, or use --credentials-file");
  if (text.indexOf(":") < 1) throw new CommandError("usage", `${place} must look like name:password`);
  return { authorization: `Basic ${Buffer.from(text).toString("base64")}`, place };
}
