import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { LeftOut } from "../servers.js";
import type { KeeperAnswer, KeeperRequest } from "./keeper-calls.js";
import { type Kubectl, kubectlOf } from "./kubectl.js";
import type { ClusterFacts, ClusterOptions, PartName } from "./options.js";

/** A cluster of one's own, which may be broken. It ends, with all that it has written, when this process does, however that ends. */
export interface Cluster {
  readonly facts: ClusterFacts;
  readonly kubectl: Kubectl;
  /** Adds what it does not have yet, and answers where everything is then. */
  add(options: ClusterOptions): Promise<ClusterFacts>;
  /** Ends a process where it stands. */
  stopPart(part: PartName): Promise<void>;
  /** Starts it again, on what it has written; resolves when it answers. */
  startPart(part: PartName): Promise<void>;
  /** The process keeps its connections, and answers nothing. */
  pausePart(part: PartName): Promise<void>;
  continuePart(part: PartName): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when there is none any more, wanted or not. */
  readonly gone: Promise<void>;
}

/** Starts a cluster, after its programs are built if they are not in the cache. */
export async function startCluster(
  options: ClusterOptions,
  tell: (line: string) => void = () => {},
): Promise<Cluster | LeftOut> {
  const keeper = startKeeper(tell);
  try {
    const facts = await keeper.ensure(options);
    if ("leftOut" in facts) {
      await keeper.stop();
      return facts;
    }
    const call = async (kind: Exclude<KeeperRequest["kind"], "ensure" | "stop">, part: PartName) => {
      await keeper.ask({ kind, part });
    };
    return {
      facts,
      kubectl: kubectlOf(facts),
      async add(more) {
        const all = await keeper.ensure(more);
        if ("leftOut" in all) throw new Error(all.leftOut);
        return all;
      },
      stopPart: (part) => call("stop part", part),
      startPart: (part) => call("start part", part),
      pausePart: (part) => call("pause part", part),
      continuePart: (part) => call("continue part", part),
      stop: keeper.stop,
      gone: keeper.gone,
    };
  } catch (error) {
    await keeper.stop().catch(() => undefined);
    throw error;
  }
}

/** The process that keeps a cluster. */
export interface Keeper {
  readonly ask: (request: KeeperRequest) => Promise<unknown>;
  /** Starts what of it does not run yet. */
  readonly ensure: (options: ClusterOptions) => Promise<ClusterFacts | LeftOut>;
  /** Ends the cluster and the keeper. */
  readonly stop: () => Promise<void>;
  readonly gone: Promise<void>;
}

export function startKeeper(tell: (line: string) => void): Keeper {
  const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const child = fork(fileURLToPath(new URL("keep-cluster.ts", import.meta.url)), [], {
    execArgv: ["--import", loader],
    // A group of its own: Ctrl-C in the terminal reaches this process, which then ends the cluster in its own time.
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const waiting = new Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }
  >();
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.on("message", (message: KeeperAnswer) => {
    if (message.kind === "told") return tell(message.line);
    const caller = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "answered") caller?.resolve(message.value);
    else caller?.reject(new Error(message.message));
    if (waiting.size === 0) child.channel?.unref();
  });
  child.once("exit", (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`the cluster's keeper ended: ${signal ?? code}`));
    waiting.clear();
  });
  child.unref();
  child.channel?.unref();
  let calls = 0;
  const ask: Keeper["ask"] = (request) =>
    new Promise((resolve, reject) => {
      const id = ++calls;
      waiting.set(id, { resolve, reject });
      child.channel?.ref();
      child.send({ ...request, id }, (error) => error && reject(error));
    });
  return {
    ask,
    gone,
    ensure: async (options) => (await ask({ kind: "ensure", options })) as ClusterFacts | LeftOut,
    async stop() {
      if (!child.connected) return gone;
      child.ref();
      await ask({ kind: "stop" }).finally(() => child.connected && child.disconnect());
      await gone;
    },
  };
}
