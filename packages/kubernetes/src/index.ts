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
export type { ClusterObject, ObjectKind, ObjectMetadata, ObjectPlace } from "./cluster/cluster-object.js";
