import { createHash } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** One call that reached the cloud, as its log tells it. */
export interface Call {
  readonly cluster: string;
  readonly call: string;
  readonly outcome: "done" | "done before" | "no answer" | "answer lost";
}

export interface CloudOptions {
  /** How often, of one, a call fails. Default 0.2. */
  readonly flakiness?: number;
  /** How long a call takes. Default 5 seconds. */
  readonly latencyMs?: number;
  readonly random?: () => number;
}

/** What a call is about, and how it is called off. */
export interface CallContext {
  /** The same call with the same key is done once. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

/**
 * A provider of machines that is as slow and as unreliable as real ones, and needs nothing but a folder: a machine is a file. It keeps a
 * log of every call, so that one can see afterwards what was really done, and how often.
 */
export class PretendCloud {
  readonly #folder: string;
  readonly #options: Required<CloudOptions>;

  constructor(folder: string, options: CloudOptions = {}) {
    this.#folder = folder;
    this.#options = { flakiness: 0.2, latencyMs: 5_000, random: Math.random, ...options };
  }

  /** Starts a machine and answers its name: for the same key, the same machine. */
  order(cluster: string, call: string, context: CallContext): Promise<string> {
    const machine = `machine-${hash(context.idempotencyKey).slice(0, 12)}`;
    return this.#call(cluster, call, context, async () => {
      await mkdir(this.#folderOf(cluster), { recursive: true });
      const outcome = await writeFile(join(this.#folderOf(cluster), machine), "", { flag: "wx" }).then(
        () => "done" as const,
        wasThere,
      );
      return [machine, outcome];
    });
  }

  /** Does something to a machine that does no harm the second time. */
  configure(cluster: string, call: string, context: CallContext): Promise<null> {
    return this.#call(cluster, call, context, async () => [null, "done"]);
  }

  /** Removes all machines of a cluster, also those that somebody ordered and never heard of. */
  removeAll(cluster: string, call: string, context: CallContext): Promise<null> {
    return this.#call(cluster, call, context, async () => {
      await rm(this.#folderOf(cluster), { recursive: true, force: true });
      return [null, "done"];
    });
  }

  /** The machines of a cluster that there are. */
  async machines(cluster: string): Promise<readonly string[]> {
    return readdir(this.#folderOf(cluster)).catch(() => []);
  }

  /** Every call so far, in order. */
  async calls(): Promise<readonly Call[]> {
    const text = await readFile(this.#log, "utf8").catch(() => "");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Call);
  }

  /** Half of the failures come before anything was done, the other half after it: only an idempotency key helps against those. */
  async #call<T>(
    cluster: string,
    call: string,
    { signal }: CallContext,
    act: () => Promise<readonly [T, Call["outcome"]]>,
  ): Promise<T> {
    const { random, flakiness, latencyMs } = this.#options;
    const luck = random();
    await sleep(latencyMs / 2, undefined, { signal });
    if (luck < flakiness / 2) {
      await this.#note({ cluster, call, outcome: "no answer" });
      throw new Error("the cloud does not answer");
    }
    const [result, outcome] = await act();
    await this.#note({ cluster, call, outcome: luck < flakiness ? "answer lost" : outcome });
    await sleep(latencyMs / 2, undefined, { signal });
    if (luck < flakiness) throw new Error("the cloud did it, but its answer was lost");
    return result;
  }

  async #note(call: Call): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    await appendFile(this.#log, `${JSON.stringify(call)}\n`);
  }

  get #log(): string {
    return join(this.#folder, "calls.jsonl");
  }

  #folderOf(cluster: string): string {
    return join(this.#folder, hash(cluster));
  }
}

function wasThere(error: unknown): "done before" {
  if ((error as { code?: string }).code === "EEXIST") return "done before";
  throw error;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
