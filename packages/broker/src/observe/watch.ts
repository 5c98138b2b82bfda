import type { Around, JournalEvent } from "@osbert/journal";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { BrokerEvent, Observer } from "./event.js";
import { instancePlace, operationPlace } from "./place.js";
import type { Tracing } from "./tracing.js";

/** Who watches a broker. */
export interface Watch {
  /** Tells all observers; none of them can harm the broker or another one. */
  readonly tell: Observer;
  readonly tracing: Tracing | undefined;
  readonly catalog: () => BrokerCatalog;
}

export interface WatchOptions {
  readonly observe?: Observer | readonly Observer[] | undefined;
  readonly tracing?: Tracing | undefined;
}

/** `undefined` if nobody does: then nothing is measured either. */
export function watchOf({ observe = [], tracing }: WatchOptions, catalog: () => BrokerCatalog): Watch | undefined {
  const observers = typeof observe === "function" ? [observe] : observe;
  if (observers.length === 0 && tracing === undefined) return undefined;
  const tell = (event: BrokerEvent) => {
    for (const observer of observers) {
      try {
        observer(event);
      } catch {
        // There is nobody else to tell.
      }
    }
  };
  return { tell, tracing, catalog };
}

/** What the journal tells, with the broker's names. */
export function brokerEvent(event: JournalEvent, catalog: BrokerCatalog): BrokerEvent {
  if ("labels" in event) return { ...event, ...operationPlace(event, catalog) };
  if ("key" in event) return { ...event, ...instancePlace(event.key) };
  return event;
}

/** What stands around the journal's attempts, with the broker's names. */
export function aroundOf(tracing: Tracing, catalog: () => BrokerCatalog): Around {
  return { attempt: (about) => tracing.attempt({ ...about, ...operationPlace(about, catalog()) }) };
}
