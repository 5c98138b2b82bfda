import type {
  ApplyOptions,
  CallOptions,
  Cluster,
  ListOptions,
  LogOptions,
  PatchOperation,
  Preconditions,
  RemoveOptions,
  Watch,
  WatchOptions,
} from "./cluster.js";
import { ClusterError } from "./cluster-error.js";
import type { ClusterEvent } from "./cluster-event.js";
import { apiVersionOf, type ClusterObject, type ObjectKind, type ObjectPlace, placeOf } from "./cluster-object.js";
import { hasFailedTest } from "./failed-tests.js";
import { isExpired, isSecretKind, listPages } from "./list-pages.js";
import { collectionPath, objectPath } from "./object-path.js";
import { ObjectWatch } from "./object-watch.js";
import { parseAnswer, readObject } from "./read-object.js";
import type { ClusterRequest, Transport } from "./transport.js";
import type { WatchPace } from "./watch-pace.js";

export interface HttpClusterParts {
  readonly transport: Transport;
  readonly fieldManager: string;
  readonly pace: WatchPace;
  readonly random: () => number;
  readonly observe: (event: ClusterEvent) => void;
}

const defaultTimeoutMs = 10_000;
/** Of one object; etcd takes 1.5 MiB. */
const mostObjectBytes = 33_554_432;
/** A list that grows too old again and again is given up. */
const mostRestarts = 5;

const pods: ObjectKind = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };

/** A cluster over HTTP. */
export class HttpCluster implements Cluster {
  readonly #parts: HttpClusterParts;
  readonly #watches = new Set<{ close(): void }>();
  #isClosed = false;

  constructor(parts: HttpClusterParts) {
    this.#parts = parts;
  }

  async read(kind: ObjectKind, place: ObjectPlace, options: CallOptions = {}): Promise<ClusterObject | undefined> {
    return orMissing(this.#object(kind, { method: "GET", path: objectPath(kind, place) }, options));
  }

  async *list(kind: ObjectKind, options: ListOptions = {}): AsyncGenerator<ClusterObject, void> {
    for (let restarts = 0; ; restarts += 1) {
      try {
        const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
        for await (const page of listPages(this.#parts.transport, kind, { ...options, timeoutMs })) yield* page.objects;
        return;
      } catch (error) {
        if (!isExpired(error) || restarts === mostRestarts) throw error;
      }
    }
  }

  async apply(kind: ObjectKind, object: ClusterObject, options: ApplyOptions = {}): Promise<ClusterObject> {
    return this.#apply(kind, object, "", options);
  }

  async applyStatus(kind: ObjectKind, object: ClusterObject, options: ApplyOptions = {}): Promise<ClusterObject> {
    return this.#apply(kind, object, "/status", options);
  }

  async create(kind: ObjectKind, object: ClusterObject, options: CallOptions = {}): Promise<ClusterObject> {
    const { namespace } = placeOf(object);
    return this.#object(
      kind,
      {
        method: "POST",
        path: collectionPath(kind, namespace),
        query: { fieldManager: this.#parts.fieldManager },
        body: jsonBody(withKind(kind, object)),
      },
      options,
    );
  }

  async patch(
    kind: ObjectKind,
    place: ObjectPlace,
    operations: readonly PatchOperation[],
    options: CallOptions = {},
  ): Promise<ClusterObject | undefined> {
    const request = {
      method: "PATCH",
      path: objectPath(kind, place),
      query: { fieldManager: this.#parts.fieldManager },
      body: { type: "application/json-patch+json", text: JSON.stringify(operations) },
    } as const;
    try {
      return await orMissing(this.#object(kind, request, options));
    } catch (error) {
      // The server says the same of a test that does not hold and of a patch that does not fit: the object itself tells which it was.
      if (!(error instanceof ClusterError) || error.status !== 422 || operations[0]?.op !== "test") throw error;
      const now = await this.read(kind, place, options);
      if (now === undefined) return undefined;
      if (!hasFailedTest(now, operations)) throw error;
      throw new ClusterError("conflict", "a test of the patch does not hold", { cause: error, status: 422 });
    }
  }

  async remove(
    kind: ObjectKind,
    place: ObjectPlace,
    seen: Preconditions,
    options: RemoveOptions = {},
  ): Promise<"removed" | "gone" | "changed"> {
    const { uid, resourceVersion } = seen;
    const body = jsonBody({
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid, resourceVersion },
      propagationPolicy: options.propagation ?? "Background",
    });
    try {
      await this.#send(kind, { method: "DELETE", path: objectPath(kind, place), body }, options);
      return "removed";
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      if (error.failure === "not found") return "gone";
      if (error.failure === "conflict" && /precondition/i.test(error.message)) return "changed";
      throw error;
    }
  }

  async log(place: ObjectPlace, { container, lastBytes, ...options }: LogOptions): Promise<string | undefined> {
    let tail = Buffer.alloc(0);
    const take = (bytes: Buffer) => {
      const longer = Buffer.concat([tail, bytes]);
      tail = longer.subarray(Math.max(0, longer.length - lastBytes));
    };
    // A line has at least one byte, so this many lines hold as many bytes; what is before them is not sent at all.
    const query = { container, tailLines: String(lastBytes) };
    try {
      const request = requestOf(pods, { method: "GET", path: `${objectPath(pods, place)}/log`, query }, options);
      await this.#parts.transport.pass(request, take);
      return wholeCharacters(tail);
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      if (error.failure === "not found") return undefined;
      // There is none yet.
      if (error.status === 400 && /waiting to start|host assigned/.test(error.message)) return "";
      throw error;
    }
  }

  watch<Kept>(kind: ObjectKind, options: WatchOptions<Kept>): Watch<Kept> {
    const { transport, pace, random, observe } = this.#parts;
    const watch = new ObjectWatch(
      { transport, pace, random, observe, ended: () => this.#watches.delete(watch) },
      kind,
      options,
    );
    if (this.#isClosed) watch.close();
    else this.#watches.add(watch);
    return watch;
  }

  close(): void {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.close();
    this.#parts.transport.close();
  }

  async #apply(kind: ObjectKind, object: ClusterObject, part: string, options: ApplyOptions): Promise<ClusterObject> {
    const force = options.force === undefined ? undefined : String(options.force);
    return this.#object(
      kind,
      {
        method: "PATCH",
        path: `${objectPath(kind, placeOf(object))}${part}`,
        query: { fieldManager: this.#parts.fieldManager, force },
        body: { type: "application/apply-patch+yaml", text: JSON.stringify(withKind(kind, object)) },
      },
      options,
    );
  }

  async #object(kind: ObjectKind, request: Asked, options: CallOptions): Promise<ClusterObject> {
    return readObject(kind, parseAnswer(await this.#send(kind, request, options)));
  }

  async #send(kind: ObjectKind, request: Asked, options: CallOptions): Promise<Buffer> {
    return this.#parts.transport.send(requestOf(kind, request, options), mostObjectBytes);
  }
}

type Asked = Pick<ClusterRequest, "method" | "path" | "query" | "body">;

function requestOf(
  kind: ObjectKind,
  asked: Asked,
  { signal, timeoutMs = defaultTimeoutMs }: CallOptions,
): ClusterRequest {
  return { ...asked, signal, timeoutMs, isSecret: isSecretKind(kind) };
}

/** An object that is not there is an answer. */
async function orMissing<Value>(call: Promise<Value>): Promise<Value | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ClusterError && error.failure === "not found") return undefined;
    throw error;
  }
}

function withKind(kind: ObjectKind, object: ClusterObject): ClusterObject {
  return { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind };
}

function jsonBody(value: unknown) {
  return { type: "application/json", text: JSON.stringify(value) };
}

/** Bytes that were cut in the middle of a character begin with what is left of it. */
function wholeCharacters(bytes: Buffer): string {
  let from = 0;
  while (from < 3 && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return bytes.toString("utf8", from);
}
