import { isJsonObject } from "@osbert/protocol";
import type { ListOptions } from "./cluster.js";
import { ClusterError } from "./cluster-error.js";
import type { ClusterObject, ObjectKind } from "./cluster-object.js";
import { collectionPath } from "./object-path.js";
import { parseAnswer, readObject } from "./read-object.js";
import { AnswerTooLarge, type Transport } from "./transport.js";

export interface Page {
  readonly objects: readonly ClusterObject[];
  /** Of the whole list; a watch from here on misses nothing. */
  readonly resourceVersion: string;
  readonly isLast: boolean;
}

export interface PageOptions extends ListOptions {
  readonly timeoutMs: number;
}

const mostPageBytes = 33_554_432;
const objectsOfPage = 500;

/**
 * A list, page by page. All pages are of one moment; when the server has forgotten that (410), this throws, and the list is no list. Where objects
 * are so large that a page would be more than is taken, pages become smaller.
 */
export async function* listPages(
  transport: Transport,
  kind: ObjectKind,
  options: PageOptions,
): AsyncGenerator<Page, void> {
  let limit = objectsOfPage;
  let next: string | undefined;
  do {
    let answer: Buffer;
    try {
      answer = await transport.send(
        {
          method: "GET",
          path: collectionPath(kind, options.namespace),
          query: {
            limit: String(limit),
            continue: next,
            labelSelector: options.labels,
            fieldSelector: options.fields,
          },
          isSecret: isSecretKind(kind),
          signal: options.signal,
          timeoutMs: options.timeoutMs,
        },
        mostPageBytes,
      );
    } catch (error) {
      if (!(error instanceof AnswerTooLarge) || limit === 1) throw error;
      limit = Math.max(1, Math.floor(limit / 10));
      continue;
    }
    const page = readPage(kind, answer);
    next = page.next;
    yield { objects: page.objects, resourceVersion: page.resourceVersion, isLast: next === undefined };
    if (next === undefined) return;
  } while (true);
}

/** The server has forgotten the moment that was asked for. */
export function isExpired(error: unknown): boolean {
  return error instanceof ClusterError && error.status === 410;
}

/** What they hold is not to be told. */
export function isSecretKind({ group, plural }: ObjectKind): boolean {
  return group === "" && plural === "secrets";
}

function readPage(kind: ObjectKind, answer: Buffer) {
  const { items, metadata } = parseAnswer(answer);
  if (
    !isJsonObject(metadata) ||
    typeof metadata.resourceVersion !== "string" ||
    !(Array.isArray(items) || items === null)
  ) {
    throw new ClusterError("unavailable", "the answer is no list");
  }
  return {
    objects: (items ?? []).map((item) => readObject(kind, item)),
    resourceVersion: metadata.resourceVersion,
    next: typeof metadata.continue === "string" && metadata.continue !== "" ? metadata.continue : undefined,
  };
}
