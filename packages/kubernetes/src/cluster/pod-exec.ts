import { Writable } from "node:stream";
import type { KubeConfig, V1Status } from "@kubernetes/client-node";
import type { CallOptions } from "./cluster.js";
import { ClusterError } from "./cluster-error.js";
import type { ObjectPlace } from "./cluster-object.js";
import { type ClusterAccess, CredentialReader } from "./credentials.js";

/** Runs programs in containers that run. A port of its own beside `Cluster`: few need it, and it takes a right of its own, `pods/exec`. */
export interface PodExec {
  /**
   * Runs a program to its end. Rejects with a `ClusterError` if it cannot be run there, because the container does not run (any more) or the
   * cluster does not answer; then it may have run nevertheless.
   */
  run(place: ObjectPlace, options: ExecOptions): Promise<ExecResult>;
}

export interface ExecOptions extends CallOptions {
  readonly container: string;
  /** Everybody who may look into the cluster's audit log can read it. */
  readonly command: readonly string[];
  /** Of its output; with more it is given up. */
  readonly mostBytes: number;
}

export interface ExecResult {
  readonly exitCode: number;
  /** Standard output. Standard error goes nowhere. */
  readonly output: Buffer;
}

const defaultTimeoutMs = 30_000;

/** By websocket, with the library that Kubernetes keeps, and with credentials as `openCluster` reads them. */
export async function openPodExec({ access }: { readonly access: ClusterAccess }): Promise<PodExec> {
  const credentials = new CredentialReader(access);
  await credentials.check();
  return { run: (place, options) => runOnce(credentials, place, options) };
}

async function runOnce(credentials: CredentialReader, place: ObjectPlace, options: ExecOptions): Promise<ExecResult> {
  const { signal, timeoutMs = defaultTimeoutMs, mostBytes, container, command } = options;
  signal?.throwIfAborted();
  const { Exec } = await import("@kubernetes/client-node");
  const { server, headers, tls, proxyAgent } = await credentials.get();
  // All that the library asks of a kubeconfig here.
  const config = {
    getCurrentCluster: () => ({ server: server.href.replace(/\/$/, "") }),
    applyToHTTPSOptions: async (given: Record<string, unknown>) => {
      Object.assign(
        given,
        tls,
        { headers, handshakeTimeout: timeoutMs },
        proxyAgent === null ? {} : { agent: proxyAgent },
      );
    },
  } as unknown as KubeConfig;
  const output = new Bounded(mostBytes);
  return new Promise<ExecResult>((resolve, reject) => {
    let close = () => {};
    const settle = (act: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      act();
      close();
    };
    const fail = (why: string, cause?: unknown) =>
      settle(() =>
        reject(new ClusterError("unavailable", `exec in ${place.namespace}/${place.name}: ${why}`, { cause })),
      );
    const abort = () => settle(() => reject(signal?.reason as Error));
    const timer = setTimeout(() => fail(`no end after ${timeoutMs} ms`), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    output.once("error", (error) => fail(error.message));
    const ended = (status: V1Status) => {
      const exitCode = exitCodeOf(status);
      if (exitCode === undefined) fail(status.message ?? "it could not be run");
      else settle(() => resolve({ exitCode, output: output.bytes }));
    };
    new Exec(config)
      .exec(place.namespace, place.name, container, [...command], output, null, null, false, ended)
      .then((socket) => {
        close = () => socket.close();
        socket.onclose = () => fail("the connection was closed");
        socket.onerror = () => fail("the connection broke");
      })
      .catch((error: unknown) => fail(messageOf(error), error));
  });
}

/** `undefined`: it never ran. */
function exitCodeOf({ status, reason, details }: V1Status): number | undefined {
  if (status === "Success") return 0;
  if (reason !== "NonZeroExitCode") return undefined;
  const code = Number(details?.causes?.find((cause) => cause.reason === "ExitCode")?.message);
  return Number.isInteger(code) ? code : undefined;
}

function messageOf(error: unknown): string {
  const { message } = error as { readonly message?: unknown };
  return typeof message === "string" ? message.slice(0, 300) : "it could not be run";
}

class Bounded extends Writable {
  readonly #most: number;
  readonly #pieces: Buffer[] = [];
  #length = 0;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  override _write(piece: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
    this.#length += piece.length;
    const isTooMuch = this.#length > this.#most;
    if (!isTooMuch) this.#pieces.push(Buffer.from(piece));
    done(isTooMuch ? new Error(`more than ${this.#most} bytes`) : undefined);
  }
}
