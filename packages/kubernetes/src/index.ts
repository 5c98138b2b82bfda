export type {
  ApplyOptions,
  CallOptions,
  Cluster,
  ListOptions,
  LogOptions,
  PatchOperation,
  Preconditions,
  RemoveOptions,
  Watch,
  WatchChange,
  WatchOptions,
  WatchState,
} from "./cluster/cluster.js";
export { ClusterError, type ClusterFailure, clusterFailures } from "./cluster/cluster-error.js";
export type { ClusterEvent } from "./cluster/cluster-event.js";
export type { ClusterObject, ObjectKind, ObjectMetadata, ObjectPlace } from "./cluster/cluster-object.js";
export type { ClusterAccess } from "./cluster/credentials.js";
export { type OpenClusterOptions, openCluster } from "./cluster/open-cluster.js";
export type { WatchPace } from "./cluster/watch-pace.js";
