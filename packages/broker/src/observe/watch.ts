import type { Around, JournalEvent } from "@osbert/journal";
import { anyNeeds, type News, type StderrLevel, tellAll } from "@osbert/server/observe";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { addressOrKey } from "../records/instance-key.js";
import type { BrokerEvent, Observer } from "./event.js";
import { operationAddress } from "./operation-address.js";
import { brokerStderrLog } from "./stderr-log.js";
import type { Tracing } from "./tracing.js";

/** Who watches a broker. */
export interface Watch {
  /** Tells all observers; none of them can harm the broker or another one. */
  readonly tell: Observer;
  readonly tracing: Tracing | undefined;
  /** Whether anyone makes something of such an event. */
  readonly needs: (news: News) => boolean;
  /** Whether anyone wants to know how long each call of the store takes. */
  readonly measuresStore: boolean;
  readonly catalog: () => BrokerCatalog;
}

export interface WatchOptions {
  readonly observe?: Observer | readonly Observer[] | undefined;
  readonly tracing?: Tracing | undefined;
  readonly stderr?: StderrLevel | undefined;
}

/** `undefined` if nobody does: then nothing is measured either. */
export function watchOf(
  { observe = [], tracing, stderr }: WatchOptions,
  catalog: () => BrokerCatalog,
): Watch | undefined {
  const given = typeof observe === "function" ? [observe] : observe;
  const level = stderr ?? (given.some(({ logs }) => logs) ? "nothing" : "warnings");
  const write = (text: string) => void process.stderr.write(text);
  const observers = level === "nothing" ? given : [...given, brokerStderrLog({ level, write, now: Date.now })];
  if (observers.length === 0 && tracing === undefined) return undefined;
  const measuresStore = given.length > 0;
  return { tell: tellAll(observers), needs: anyNeeds(observers), tracing, measuresStore, catalog };
}

/** What the journal tells, with the broker's names. */
export function brokerEvent(event: JournalEvent, catalog: BrokerCatalog): BrokerEvent {
  if ("labels" in event) return { ...event, ...operationAddress(event, catalog) };
  if ("key" in event) return { ...event, ...addressOrKey(event.key) };
  return event;
}

/** What stands around the journal's attempts, with the broker's names. */
export function aroundOf(tracing: Tracing, catalog: () => BrokerCatalog): Around {
  return { attempt: (about) => tracing.attempt({ ...about, ...operationAddress(about, catalog()) }) };
}
