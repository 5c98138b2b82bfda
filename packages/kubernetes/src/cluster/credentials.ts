import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import type { Agent } from "node:http";
import type { RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { ClusterError } from "./cluster-error.js";

/** Where the address of an API server and the credentials for it come from. */
export type ClusterAccess =
  /** The service account of the pod that this runs in. `mount`: a folder before /var/run/secrets, for trials outside of a pod. */
  | { readonly kind: "in cluster"; readonly mount?: string }
  /** A kubeconfig: tokens, files with tokens, client certificates, exec plugins. `context`: default the current one. */
  | { readonly kind: "kubeconfig"; readonly file: string; readonly context?: string };

/** What a request needs to reach the server and to be known there. */
export interface Credentials {
  /** Counts up with each reading. */
  readonly generation: number;
  readonly server: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
  /** Through a proxy, if the kubeconfig has one. */
  readonly proxyAgent: Agent | null;
  /** What must never be told. */
  readonly secrets: readonly string[];
}

export type TlsMaterial = Pick<
  RequestOptions,
  "ca" | "cert" | "key" | "passphrase" | "servername" | "rejectUnauthorized"
>;

/** Files and plugins are asked again after so long; tokens of service accounts are renewed long before they end. */
const freshMs = 60_000;
/** After an answer 401 they are asked at once, but no more often than this: a plugin is a process, and may ask a person. */
const renewEveryMs = 5_000;
/** An exec plugin that takes longer is ended. */
const pluginMs = 30_000;

/**
 * Reads credentials with the library that Kubernetes keeps, as often as they may have changed. What it says of a failure may quote a token, so it
 * is not told.
 */
export class CredentialReader {
  readonly #access: ClusterAccess;
  readonly #nowMs: () => number;
  #config: KubeConfig | undefined;
  #current: Credentials | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<Credentials> | undefined;
  #generation = 0;

  constructor(access: ClusterAccess, nowMs: () => number = () => performance.now()) {
    this.#access = access;
    this.#nowMs = nowMs;
  }

  /** Finds out whether there is a server to speak to at all, without asking plugins. */
  async check(): Promise<void> {
    this.#config = await this.#load();
  }

  /** As fresh as can be expected. Many callers, one reading. What cannot be read now is used as it was: the server says whether it still counts. */
  async get(): Promise<Credentials> {
    const last = this.#current;
    if (last === undefined) return this.#readOnce();
    if (this.#nowMs() < this.#readAtMs + freshMs) return last;
    return this.#readOnce().catch(() => {
      this.#readAtMs = this.#nowMs() - freshMs + renewEveryMs;
      return last;
    });
  }

  /** The server does not know these: reads them anew, unless that was done since. `undefined`: it was just done, to no avail. */
  async renew(refused: Credentials): Promise<Credentials | undefined> {
    if (this.#current !== undefined && this.#current.generation !== refused.generation) return this.#current;
    if (this.#nowMs() < this.#renewedAtMs + renewEveryMs) return undefined;
    this.#renewedAtMs = this.#nowMs();
    this.#config = undefined;
    return this.#readOnce();
  }

  #readOnce(): Promise<Credentials> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<Credentials> {
    const config = this.#config ?? (await this.#load());
    const cluster = config.getCurrentCluster();
    const user = config.getCurrentUser();
    const options: RequestOptions & { headers: Record<string, string> } = { headers: {} };
    try {
      await config.applyToHTTPSOptions(options);
    } catch (error) {
      this.#config = undefined;
      throw new ClusterError("unauthorized", `credentials could not be read: ${nameOf(error)}`);
    }
    // The library keeps what plugins and providers gave it for as long as that counts; the rest it reads when it loads.
    this.#config = user?.exec || user?.authProvider ? config : undefined;
    const headers = headersOf(options);
    const { ca, cert, key, passphrase, servername, rejectUnauthorized } = options;
    this.#readAtMs = this.#nowMs();
    this.#generation += 1;
    this.#current = {
      generation: this.#generation,
      server: new URL(cluster?.server ?? ""),
      headers,
      tls: defined({ ca, cert, key, passphrase, servername, rejectUnauthorized }),
      proxyAgent: cluster?.proxyUrl ? (options.agent as Agent) : null,
      secrets: Object.values(headers).flatMap((value) => [value, value.replace(/^\S+ /, "")]),
    };
    return this.#current;
  }

  async #load(): Promise<KubeConfig> {
    // It takes a second to load, so only those pay for it who speak to a cluster.
    const { KubeConfig: Config } = await import("@kubernetes/client-node");
    const config = new Config();
    const access = this.#access;
    try {
      if (access.kind === "in cluster") config.loadFromCluster(access.mount ?? "");
      else {
        config.loadFromString(withTokenFiles(await readFile(access.file, "utf8"), access.file));
        config.makePathsAbsolute(dirname(access.file));
        if (access.context !== undefined) config.setCurrentContext(access.context);
      }
    } catch (error) {
      throw new ClusterError("unauthorized", `${placeOfAccess(access)} could not be read: ${nameOf(error)}`);
    }
    refuseUnusable(config, access);
    preparePlugin(config);
    return config;
  }
}

function refuseUnusable(config: KubeConfig, access: ClusterAccess): void {
  const context = config.getContextObject(config.getCurrentContext());
  const where = placeOfAccess(access);
  if (context === null) {
    throw new ClusterError(
      "unauthorized",
      `${where} has no context ${JSON.stringify(config.getCurrentContext() ?? "")}`,
    );
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null)
    throw new ClusterError("unauthorized", `${where} has no cluster ${JSON.stringify(context.cluster)}`);
  if (!URL.canParse(cluster.server)) throw new ClusterError("unauthorized", `${where} has no address of a server`);
  if (config.getCurrentUser() === null) {
    throw new ClusterError("unauthorized", `${where} has no user ${JSON.stringify(context.user)}`);
  }
}

/** kubectl calls it `tokenFile` and takes it from the folder of the kubeconfig; the library looks for `token-file`, and takes it as it stands. */
function withTokenFiles(text: string, file: string): string {
  return text.replace(
    /^(\s*(?:- )?)tokenFile:[ \t]*(['"]?)(.+?)\2[ \t]*$/gm,
    (_line, indent: string, _quote: string, path: string) =>
      `${indent}token-file: ${JSON.stringify(resolve(dirname(file), path))}`,
  );
}

/**
 * Plugins want to be told the version that they shall speak (KUBERNETES_EXEC_INFO), which the library does not do; and it would wait for one that
 * hangs forever, and for one that asks a person on its standard input.
 */
function preparePlugin(config: KubeConfig): void {
  const exec = config.getCurrentUser()?.exec;
  if (!exec) return;
  const info = { apiVersion: exec.apiVersion, kind: "ExecCredential", spec: { interactive: false } };
  exec.env = [...(exec.env ?? []), { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) }];
  const { authenticators } = config as unknown as {
    readonly authenticators: readonly { execFn?: typeof spawnPlugin }[];
  };
  for (const authenticator of authenticators) {
    if (authenticator.execFn !== undefined) authenticator.execFn = spawnPlugin;
  }
}

function spawnPlugin(command: string, args: readonly string[] | undefined, options: SpawnOptions): ChildProcess {
  const plugin = spawn(command, args ?? [], { ...options, timeout: pluginMs, killSignal: "SIGKILL" });
  plugin.stdin?.on("error", () => undefined).end();
  return plugin;
}

function headersOf({ headers, auth }: RequestOptions & { headers: Record<string, string> }): Record<string, string> {
  const basic = auth ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {};
  // Files with tokens often end with a line's end.
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()]);
  return { ...basic, ...Object.fromEntries(given) };
}

function placeOfAccess(access: ClusterAccess): string {
  return access.kind === "in cluster" ? "the service account" : `the kubeconfig ${access.file}`;
}

/** Codes and classes are the library's or the system's; messages may quote what was read. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  return (error as NodeJS.ErrnoException).code ?? error.name;
}

function defined<Values extends object>(values: Values): { [Key in keyof Values]: Exclude<Values[Key], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(entries) as { [Key in keyof Values]: Exclude<Values[Key], undefined> };
}
