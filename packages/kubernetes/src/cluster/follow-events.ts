import type { ObjectKind } from "./cluster-object.js";
import { collectionPath } from "./object-path.js";
import { LineSplitter } from "./split-lines.js";
import type { Transport } from "./transport.js";
import type { WatchPace } from "./watch-pace.js";

/** One connection on which a server tells what becomes of objects. */
export interface Following {
  readonly kind: ObjectKind;
  readonly namespace: string | undefined;
  readonly labels: string | undefined;
  readonly fields: string | undefined;
  /** From where on. */
  readonly resourceVersion: string;
  readonly watchMs: number;
  readonly signal: AbortSignal;
  /** The server is there: an event came, or the connection has held for a while. One that accepts and at once hangs up has not been heard. */
  readonly heard: () => void;
  /** One event, as text. May throw: then the connection ends with that. */
  readonly event: (line: string) => void;
}

/** Of one event. */
const mostLineBytes = 16_777_216;

/** Resolves when the server has ended it, as it was asked to; rejects when it broke off or went quiet. */
export async function followEvents(transport: Transport, pace: WatchPace, following: Following): Promise<void> {
  const { kind, namespace, labels, fields, resourceVersion, watchMs, signal, heard, event } = following;
  const timeoutSeconds = Math.max(1, Math.round(watchMs / 1_000));
  const lines = new LineSplitter(mostLineBytes);
  let settled: NodeJS.Timeout | undefined;
  try {
    await transport.stream(
      {
        method: "GET",
        path: collectionPath(kind, namespace),
        query: {
          watch: "true",
          allowWatchBookmarks: "true",
          resourceVersion,
          timeoutSeconds: String(timeoutSeconds),
          labelSelector: labels,
          fieldSelector: fields,
        },
        signal,
        timeoutMs: pace.timeoutMs,
      },
      pace.quietMs,
      {
        opened: () => {
          settled = setTimeout(heard, pace.settledMs);
        },
        chunk: (bytes) => {
          for (const line of lines.split(bytes)) {
            event(line);
            clearTimeout(settled);
            heard();
          }
        },
      },
    );
  } finally {
    clearTimeout(settled);
  }
}
