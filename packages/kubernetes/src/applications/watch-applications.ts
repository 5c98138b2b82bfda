import type { Cluster, Watch, WatchState } from "../cluster/cluster.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import type { ApplicationKind } from "./application.js";
import { applicationKinds } from "./application-kinds.js";
import { parseApplication } from "./parse-application.js";
import { parseGrant } from "./parse-grant.js";
import type { Seen, SeenApplication, SeenGrant } from "./reconcile-applications.js";

export interface WatchApplicationsOptions {
  /** Kinds of resources that describe applications. Default: all that there are. */
  readonly kinds?: readonly ApplicationKind[];
  /** Where the Secrets of applications are. */
  readonly secretNamespace: string;
  /** Something has changed, of what is seen or of how it can be seen. */
  readonly changed: () => void;
}

/** What this process sees of applications and grants. */
export interface WatchedApplications {
  /** Of all that is watched, the worst. A kind that the cluster does not know counts only if it knows none. */
  readonly state: WatchState;
  /** Why it is not current, for a person. */
  readonly why: string | null;
  readonly seen: Seen;
  close(): void;
}

/** From best to worst. */
const states: readonly WatchState[] = ["current", "no such kind", "starting", "behind", "forbidden", "too many"];
const mostGrants = 50_000;
const mostApplications = 5_000;

/** Watches applications and grants of the cluster, of each no more than is offered of it. */
export function watchApplications(cluster: Cluster, options: WatchApplicationsOptions): WatchedApplications {
  const { kinds = ["kyma", "osbert"], secretNamespace, changed } = options;
  const watches = kinds.map((kind) => ({
    kind,
    applications: cluster.watch<SeenApplication>(applicationKinds[kind].applications, {
      keep: (object) => keepApplication(kind, object, secretNamespace),
      changed: () => changed(),
      most: mostApplications,
    }),
    grants: cluster.watch<SeenGrant>(applicationKinds[kind].grants, {
      keep: (object) => keepGrant(kind, object),
      changed: () => changed(),
      most: mostGrants,
    }),
  }));
  const all = watches.flatMap(({ applications, grants }) => [applications, grants] as const);
  const isUnknown = ({ applications, grants }: (typeof watches)[number]) =>
    applications.state === "no such kind" && grants.state === "no such kind";
  /** Those of kinds that the cluster knows; where it knows none, all. */
  const known = (): readonly Watch<unknown>[] => {
    const there = watches.filter((watch) => !isUnknown(watch));
    return there.length === 0 ? all : there.flatMap(({ applications, grants }) => [applications, grants]);
  };
  const worst = () =>
    known().reduce((one, other) => (states.indexOf(other.state) > states.indexOf(one.state) ? other : one));
  const complete = (what: "applications" | "grants") =>
    new Set(watches.filter((watch) => watch[what].state === "current").map(({ kind }) => kind));
  return {
    get state() {
      return worst().state;
    },
    get why() {
      return worst().why;
    },
    get seen() {
      return {
        complete: { applications: complete("applications"), grants: complete("grants") },
        isSettled: worst().state === "current",
        applications: watches.flatMap(({ applications }) => [...applications.values()]),
        grants: watches.flatMap(({ grants }) => [...grants.values()]),
      };
    },
    close() {
      for (const watch of all) watch.close();
    },
  };
}

function keepApplication(kind: ApplicationKind, object: ClusterObject, secretNamespace: string): SeenApplication {
  const { name, uid = "", generation = 0 } = object.metadata;
  return { kind, name, uid, generation, ...parseApplication(kind, object, { secretNamespace }) };
}

/** One that cannot be read grants nothing. */
function keepGrant(kind: ApplicationKind, object: ClusterObject): SeenGrant {
  const { name, namespace = "", uid = "", generation = 0 } = object.metadata;
  const { grant, findings } = parseGrant(kind, object);
  const nothing = { namespace, name, uid, kind, application: "", services: [] };
  return { grant: grant ?? nothing, generation, findings };
}
