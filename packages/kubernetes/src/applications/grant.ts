import type { ApplicationKind } from "./application.js";

/** A namespace may have what an application offers: Kyma's ApplicationMapping, or an ApplicationGrant. */
export interface Grant {
  readonly namespace: string;
  /** Of the resource. */
  readonly name: string;
  readonly uid: string;
  /** It counts for applications of its own kind. */
  readonly kind: ApplicationKind;
  readonly application: string;
  /** Ids of services. `null`: everything, now and later. */
  readonly services: readonly string[] | null;
}
