import { randomBytes } from "node:crypto";
import { isJsonObject } from "@osbert/protocol";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { jobLabels, labels, saidName } from "./job-names.js";
import type { JobRecord, Kept } from "./job-record.js";
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

/** What a job has said so far whose output is made here. */
const running = "running";

/**
 * What jobs have said, kept beside their records, which own it: Secrets, because credentials may be among it. Output goes through as many as it
 * takes; the first has the end of the log besides, which is without secrets when it is written.
 *
 * Several may find at the same time that a job has ended, and one of them when its pod is gone already: each writes under a name of its own, and the
 * record names the one that counts. So nobody writes over what another has read.
 */
export class Said {
  readonly #cluster: Cluster;
  readonly #namespace: string;

  constructor(cluster: Cluster, namespace: string) {
    this.#cluster = cluster;
    this.#namespace = namespace;
  }

  /** Nothing counts before a record names it. */
  async write(record: JobRecord, out: Buffer, log: string): Promise<Pick<Kept, "said" | "parts">> {
    const said = randomBytes(4).toString("hex");
    const parts = Math.max(1, Math.ceil(out.length / partBytes));
    const written: ClusterObject[] = [];
    try {
      for (let part = 0; part < parts; part++) {
        const piece = out.subarray(part * partBytes, (part + 1) * partBytes);
        const data = { out: piece, ...(part === 0 && { log: Buffer.from(log) }) };
        written.push(await this.#cluster.create(kinds.secret, this.#object(record, said, part, data)));
      }
    } catch (error) {
      // It is tried again, under another name: a namespace that is full would get fuller each time. What cannot be removed now goes with the end of the job.
      for (const object of written) await this.#remove(object).catch(() => undefined);
      throw error;
    }
    return { said, parts };
  }

  /** Output from a byte on, about a part of it. */
  async read(record: JobRecord, { said, outputBytes }: Kept, from: number): Promise<Lines> {
    const first = Math.floor(from / partBytes);
    let bytes = (await this.#part(record, said, first)).out.subarray(from - first * partBytes);
    // A line may go over several parts.
    for (let part = first + 1; from + bytes.length < outputBytes; part++) {
      if (bytes.includes(10)) break;
      const more = (await this.#part(record, said, part)).out;
      if (more.length === 0) break;
      bytes = Buffer.concat([bytes, more]);
    }
    return wholeLines(bytes, from, from + bytes.length >= outputBytes);
  }

  async log(record: JobRecord, { said }: Pick<Kept, "said">): Promise<string> {
    return (await this.#part(record, said, 0)).log.toString("utf8");
  }

  /** What a job that runs has said so far, of one whose output is made here; and its log, if it was read before its pod went. */
  async soFar(record: JobRecord): Promise<{ readonly out: Buffer; readonly log: Buffer }> {
    return this.#part(record, running, 0);
  }

  /** Adds a line to that. `false`: somebody else did, or it would be too much. */
  async add(record: JobRecord, before: Buffer, line: string): Promise<boolean> {
    const after = Buffer.concat([before, Buffer.from(`${line}\n`)]);
    if (after.length > partBytes) return false;
    try {
      if (before.length === 0) {
        await this.#cluster.create(kinds.secret, this.#object(record, running, 0, { out: after }));
        return true;
      }
      const place = { namespace: this.#namespace, name: saidName(record.name, running, 0) };
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

  /** The same with all that there will be. */
  async replaceSoFar(record: JobRecord, out: Buffer, log: string): Promise<void> {
    const object = this.#object(record, running, 0, { out, log: Buffer.from(log) });
    await this.#cluster.apply(kinds.secret, object, { force: true });
  }

  /** Removes all that was written but what counts. */
  async removeOthers(record: JobRecord, { said, parts }: Pick<Kept, "said" | "parts">): Promise<void> {
    const counts = new Set(Array.from({ length: parts }, (_, part) => saidName(record.name, said, part)));
    const options = { namespace: this.#namespace, labels: `${labels.job}=${record.name}` };
    for await (const object of this.#cluster.list(kinds.secret, options)) {
      const { name, ownerReferences } = object.metadata;
      const isOwn = ownerReferences?.some((owner) => owner.uid === record.uid) === true;
      if (isOwn && !counts.has(name)) await this.#remove(object);
    }
  }

  async #remove({ metadata: { name, uid = "" } }: ClusterObject): Promise<void> {
    await this.#cluster.remove(kinds.secret, { namespace: this.#namespace, name }, { uid });
  }

  /** Leaves the log alone, in these words, and nothing of the output. */
  async forget(record: JobRecord, { said, parts }: Kept, log: string): Promise<void> {
    if (parts > 0) {
      const object = this.#object(record, said, 0, { out: Buffer.alloc(0), log: Buffer.from(log) });
      await this.#cluster.apply(kinds.secret, object, { force: true });
    }
    await this.removeOthers(record, { said, parts: Math.min(parts, 1) });
  }

  async #part(record: JobRecord, said: string, part: number): Promise<{ readonly out: Buffer; readonly log: Buffer }> {
    const place = { namespace: this.#namespace, name: saidName(record.name, said, part) };
    const found = await this.#cluster.read(kinds.secret, place);
    return { out: secretBytes(found, "out"), log: secretBytes(found, "log") };
  }

  #object({ name, uid }: JobRecord, said: string, part: number, data: Readonly<Record<string, Buffer>>): ClusterObject {
    return {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        ...{ name: saidName(name, said, part), namespace: this.#namespace, labels: jobLabels(name) },
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
