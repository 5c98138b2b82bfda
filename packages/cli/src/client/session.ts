import {
  isDeeperThan,
  isJsonObject,
  type JsonObject,
  type OriginatingIdentity,
  type ServiceOffering,
} from "@osbert/protocol";
import { type CallOptions, type Client, createClient } from "@osbert/protocol/client";
import { brokerFetch } from "@osbert/protocol/node";
import { brokerUrl, defaultUrl, isOpenToReaders } from "./broker-url.js";
import { connectionOf } from "./connection-of.js";
import { type Login, readLogin } from "./credentials.js";
import { CommandError } from "./exit-status.js";
import { usableServices } from "./find-plan.js";
import { readBounded } from "./read-bounded.js";
import type { Surroundings } from "./surroundings.js";

/** The options that every client command has. */
export interface BrokerOptions {
  readonly url?: string;
  readonly platform?: string;
  readonly credentialsFile?: string;
  readonly ca?: string;
  /** Seconds. */
  readonly requestTimeout?: number;
  readonly originatingIdentity?: string;
  readonly json?: boolean;
}

/** A command's connection to its broker. */
export interface Session {
  readonly client: Client;
  readonly url: string;
  /** `undefined`: nobody in particular. */
  readonly login: Login | undefined;
  /** Goes along with every call. */
  readonly call: CallOptions;
  /** For machines: one JSON document on the standard output. */
  readonly json: boolean;
  /** The options that lead to the same broker again. */
  readonly connection: readonly string[];
  readonly surroundings: Surroundings;
  services(): Promise<readonly ServiceOffering[]>;
  /** The text of a file, or of the standard input. */
  readonly read: (file: string) => Promise<string>;
}

// A person watches: more often than a platform would look, unless the broker gives advice.
const pace = { firstMs: 500, factor: 1.4, longestMs: 5_000 };

/** Reads what the options name and asks the broker nothing yet. */
export async function openSession(options: BrokerOptions, surroundings: Surroundings): Promise<Session> {
  const read = (file: string) => readBounded(file, surroundings);
  const url = brokerUrl(options.url ?? (surroundings.env.OSBERT_URL || defaultUrl), options.platform);
  const login = await readLogin(surroundings.env, options.credentialsFile, read);
  if (login !== undefined && isOpenToReaders(url))
    surroundings.stderr.write("warning: the credentials go over the network unencrypted; use https\n");
  if (options.ca !== undefined && !url.startsWith("https:"))
    throw new CommandError("usage", "--ca is for a URL that begins with https://");
  const client = createClient({
    url,
    pace,
    ...(login !== undefined && { credentials: login.credentials }),
    ...(options.requestTimeout !== undefined && { timeoutMs: options.requestTimeout * 1_000 }),
    fetch: brokerFetch(options.ca === undefined ? {} : { ca: await read(options.ca) }),
  });
  const identity = options.originatingIdentity === undefined ? undefined : parseIdentity(options.originatingIdentity);
  const call: CallOptions = identity === undefined ? {} : { identity };
  return {
    client,
    url,
    login,
    call,
    json: options.json ?? false,
    connection: connectionOf(options),
    surroundings,
    read,
    async services() {
      const { catalog } = await client.catalog(call);
      return usableServices(catalog === "unchanged" ? { services: [] } : catalog);
    },
  };
}

function parseIdentity(text: string): OriginatingIdentity {
  const colon = text.indexOf(":");
  const platform = text.slice(0, Math.max(0, colon));
  const value = parseObject(text.slice(colon + 1));
  if (!/^[\x21-\x7e]{1,100}$/.test(platform) || value === undefined)
    throw new CommandError("usage", `--originating-identity must look like kubernetes:{"username":"jo"}`);
  return { platform, value };
}

function parseObject(text: string): JsonObject | undefined {
  if (isDeeperThan(text, 20)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
