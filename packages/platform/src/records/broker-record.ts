import { defineResource } from "@osbert/journal";
import type { ServiceOffering, ServicePlan } from "@osbert/protocol";

/** A registered broker is a resource: its data tells how to reach it, its parts what it offers. */
export type BrokerShape = {
  data: BrokerData;
  /** The catalog of a revision, in pages: `page/{revision}/{number}`. A page of another revision is what a process that died has left. */
  parts: { readonly [id: `page/${string}`]: CatalogPage };
  operations: {
    /** Lives as long as the registration: reads the catalog when it is due, and probes a broker that is down. */
    follow: { input: null; result: null };
    /** Takes the broker out of the index of all brokers; forced, its instances become unmanaged before. */
    remove: { input: { readonly force: boolean }; result: null };
  };
};

export const brokerRecords = defineResource<BrokerShape>();

/** Secrets: the whole record is encrypted at rest where the store is, and none of it is ever told. */
export type BrokerAuthentication =
  | { readonly kind: "none" }
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
  | { readonly kind: "bearer"; readonly token: string };

export interface BrokerData {
  readonly name: string;
  readonly url: string;
  readonly authentication: BrokerAuthentication;
  /** PEM texts. */
  readonly ca: string | null;
  readonly clientCertificate: { readonly certificate: string; readonly key: string } | null;
  readonly limits: BrokerLimits;
  readonly quirks: { readonly notFoundMeansGone: boolean };
  readonly relistMs: number;
  readonly registeredBy: string;
  readonly registeredAt: number;
  /** Raised by whoever wants the catalog to be read now. */
  readonly asked: number;
  readonly catalog: KnownCatalog;
  readonly health: BrokerHealth;
  /** Offerings that answered ConcurrencyError to a bind beside another: their binds go one after the other until then. */
  readonly serialBindings: { readonly [offering: string]: number };
  /** Being removed, or removed. */
  readonly removed: boolean;
}

/** What is known of a broker's catalog. */
export interface KnownCatalog {
  /** 0: none was read yet. */
  readonly revision: number;
  readonly pages: number;
  readonly offerings: number;
  readonly etag: string | null;
  /** When it was last read whole, or found to be the same. */
  readonly readAt: number | null;
  /** What is wrong with the last reading. What was known before still counts. */
  readonly fault: string | null;
  /** The `asked` that the last reading was begun for. */
  readonly answered: number;
}

/** A part of a catalog: offerings, each followed by its plans. Nothing in it is larger than a page may be. */
export type CatalogPage = readonly CatalogItem[];

export type CatalogItem =
  | { readonly kind: "offering"; readonly offering: Omit<ServiceOffering, "plans">; readonly leftAt: number | null }
  | { readonly kind: "plan"; readonly plan: ServicePlan; readonly leftAt: number | null };

export interface BrokerLimits {
  /** Requests under way at a time, in all processes. */
  readonly inFlight: number;
  readonly timeoutMs: number;
}

export interface BrokerHealth {
  readonly state: "unknown" | "ok" | "failing" | "unauthorized";
  readonly since: number;
  readonly message: string | null;
  /**
   * How often in a row it was found to be down. With `ok`: a probe was answered, and nothing else yet, so that one request at a time is sent until
   * one is answered.
   */
  readonly failures: number;
}

/** An offering as the catalog had it last. What left the catalog is marked, and stays for its instances. */
export interface OfferingRecord {
  readonly offering: ServiceOffering;
  readonly leftAt: number | null;
  /** By plan id: when it left. The plan stays in the offering. */
  readonly plansLeft: { readonly [plan: string]: number };
}
