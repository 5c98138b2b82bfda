import type { ClusterOptions, PartName } from "./options.js";

/** What a cluster's keeper is asked. */
export type KeeperRequest =
  | { readonly kind: "ensure"; readonly options: ClusterOptions }
  | { readonly kind: "start part" | "stop part" | "pause part" | "continue part"; readonly part: PartName }
  | { readonly kind: "stop" };

export type KeeperCall = KeeperRequest & { readonly id: number };

export type KeeperAnswer =
  | { readonly kind: "told"; readonly line: string }
  | { readonly kind: "answered"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
