import { isJsonObject } from "@osbert/protocol";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { jobLabels, saidName } from "./job-names.js";
import type { JobRecord } from "./job-record.js";
import { kinds } from "./kinds.js";

/** Whole lines of text, and where to read on. */
export interface Lines {
  readonly lines: readonly string[];
  readonly next: number;
}

/** Of a Secret: it may have 1 MiB, and its log is in the first. */
const partBytes = 524_288;
/** Of the log of a job that has ended. */
export const keptLogBytes = 262_144;

/**
 * What jobs have said, kept beside their records, which own it: Secrets, because credentials may be among it. Output goes through as many as it
 * takes; the first has the end of the log besides, which is without secrets when it is written.
 */
export class Said {
  readonly #cluster: Cluster;
  readonly #namespace: string;

  constructor(cluster: Cluster, namespace: string) {
    this.#cluster = cluster;
    this.#namespace = namespace;
  }

  /** Answers how many parts there are. Written twice, it is the same. */
  async write(record: JobRecord, out: Buffer, log: string): Promise<number> {
    const parts = Math.max(1, Math.ceil(out.length / partBytes));
    for (let part = 0; part < parts; part++) {
      const piece = out.subarray(part * partBytes, (part + 1) * partBytes);
      const data = { out: piece, ...(part === 0 && { log: Buffer.from(log) }) };
      await this.#cluster.apply(kinds.secret, this.#object(record, part, data), { force: true });
    }
    return parts;
  }

  /** Output from a byte on, about a part of it. */
  async read(record: JobRecord, from: number, total: number): Promise<Lines> {
    const first = Math.floor(from / partBytes);
    let bytes = (await this.#part(record, first)).out.subarray(from - first * partBytes);
    // A line may go over several parts.
    for (let part = first + 1; from + bytes.length < total; part++) {
      if (bytes.includes(10)) break;
      const more = (await this.#part(record, part)).out;
      if (more.length === 0) break;
      bytes = Buffer.concat([bytes, more]);
    }
    return wholeLines(bytes, from, from + bytes.length >= total);
  }

  async log(record: JobRecord): Promise<string> {
    return (await this.#part(record, 0)).log.toString("utf8");
  }

  /** What a job that runs has said so far, of one whose output is made here. */
  async soFar(record: JobRecord): Promise<Buffer> {
    return (await this.#part(record, 0)).out;
  }

  /** Adds a line to that. `false`: somebody else did, or it would be too much. */
  async add(record: JobRecord, before: Buffer, line: string): Promise<boolean> {
    const after = Buffer.concat([before, Buffer.from(`${line}\n`)]);
    if (after.length > partBytes) return false;
    try {
      if (before.length === 0) {
        await this.#cluster.create(kinds.secret, this.#object(record, 0, { out: after }));
        return true;
      }
      const place = { namespace: this.#namespace, name: saidName(record.name, 0) };
      const changed = await this.#cluster.patch(kinds.secret, place, [
        { op: "test", path: "/data/out", value: before.toString("base64") },
        { op: "replace", path: "/data/out", value: after.toString("base64") },
      ]);
      return changed !== undefined;
    } catch (error) {
      if (error instanceof ClusterError && error.failure === "conflict") return false;
      throw error;
    }
  }

  /** Leaves the log alone, in other words, and nothing of the output. */
  async forget(record: JobRecord, parts: number, log: string): Promise<void> {
    await this.#cluster.apply(kinds.secret, this.#object(record, 0, { out: Buffer.alloc(0), log: Buffer.from(log) }), {
      force: true,
    });
    for (let part = 1; part < parts; part++) {
      const place = { namespace: this.#namespace, name: saidName(record.name, part) };
      const found = await this.#cluster.read(kinds.secret, place);
      if (found?.metadata.uid !== undefined)
        await this.#cluster.remove(kinds.secret, place, { uid: found.metadata.uid });
    }
  }

  async #part(record: JobRecord, part: number): Promise<{ readonly out: Buffer; readonly log: Buffer }> {
    const found = await this.#cluster.read(kinds.secret, {
      namespace: this.#namespace,
      name: saidName(record.name, part),
    });
    return { out: secretBytes(found, "out"), log: secretBytes(found, "log") };
  }

  #object({ name, uid }: JobRecord, part: number, data: Readonly<Record<string, Buffer>>): ClusterObject {
    return {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        ...{ name: saidName(name, part), namespace: this.#namespace, labels: jobLabels(name) },
        ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name, uid }],
      },
      type: "Opaque",
      data: Object.fromEntries(Object.entries(data).map(([key, bytes]) => [key, bytes.toString("base64")])),
    };
  }
}

/** What a Secret has under a key. */
export function secretBytes(secret: ClusterObject | undefined, key: string): Buffer {
  const data = isJsonObject(secret?.data) ? secret.data : {};
  const text = data[key];
  return Buffer.from(typeof text === "string" ? text : "", "base64");
}

/** Lines of bytes that begin at `from`; half a line only at the end of all. */
export function wholeLines(bytes: Buffer, from: number, isAll: boolean): Lines {
  const end = isAll ? bytes.length : bytes.lastIndexOf(10) + 1;
  const text = bytes.toString("utf8", 0, end);
  return { lines: text === "" ? [] : text.replace(/\n$/, "").split("\n"), next: from + end };
}

/** The last bytes, from the beginning of a line on: half a line may begin with half a secret, which nobody would know again. */
export function lastLines(bytes: Buffer, lastBytes: number): string {
  const from = Math.max(0, bytes.length - lastBytes);
  const start = from === 0 ? 0 : bytes.indexOf(10, from) + 1 || bytes.length;
  return bytes.toString("utf8", start);
}
