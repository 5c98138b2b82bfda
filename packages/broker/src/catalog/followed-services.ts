import type { Attribution, Followed, Json } from "@osbert/journal";
import type { Service } from "../service/service.js";
import type { ServiceSource, ServiceSourcePorts } from "./service-source.js";

/** What `followedServices` takes. */
export interface FollowedServicesOptions {
  /** The key in the journal under which the snapshot is kept. Without a slash. */
  readonly key: string;
  /** Makes services of a snapshot. Pure; what it throws leaves what was offered before. */
  readonly services: (snapshot: Json) => readonly Service[];
  /** A service at a revision that left the snapshot. Default: none are kept. */
  readonly resolve?: ServiceSource["resolve"];
}

/** A source whose snapshot is in the store: published by one process, it is offered by all of them at once, and after a restart. */
export interface FollowedServices extends ServiceSource {
  /** Offers what is made of this snapshot from now on. Durable when it resolves. Rejects, and changes nothing, if that cannot be offered. */
  publish(snapshot: Json, by: Attribution): Promise<void>;
}

/** A source of services for `createBroker` that keeps its snapshot in the broker's own store. */
export function followedServices({ key, services, resolve }: FollowedServicesOptions): FollowedServices {
  if (key.includes("/") || key.startsWith("broker."))
    throw new Error(`the key of followed services must not have a slash in it, nor begin with broker.: ${key}`);
  let snapshot: Followed<Json> | undefined;
  let check: ServiceSourcePorts["check"] = () => undefined;
  let offered: { readonly of: Json; readonly services: readonly Service[] } | undefined;
  return {
    async open({ journal, changed, check: checkServices }: ServiceSourcePorts) {
      check = checkServices;
      snapshot = await journal.followed(key, (data: Json): Json => data);
      snapshot.onChange(changed);
    },
    get services() {
      const present = snapshot?.value ?? null;
      if (present === null) return undefined;
      const known = offered?.of === present ? offered : { of: present, services: services(present) };
      offered = known;
      return known.services;
    },
    async resolve(serviceId, revision) {
      return resolve?.(serviceId, revision);
    },
    async publish(next, by) {
      if (snapshot === undefined) throw new Error("services are published when their broker has started");
      // As every process will read it.
      check(services(JSON.parse(JSON.stringify(next)) as Json));
      await snapshot.update(() => ({ value: next }), { by });
    },
    close() {
      snapshot?.close();
      snapshot = undefined;
    },
  };
}
