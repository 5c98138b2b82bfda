import type { SourcePorts } from "@osbert/bundles";
import type { Settings } from "../settings/table.js";

/**
 * Opens image streams of the cluster that the settings name: one edge to it for all sources, made when the first one asks. Rejects with a
 * UserError if there is none; whether it answers shows when it is read.
 */
export function openImageStreams(settings: Settings): NonNullable<SourcePorts["imageStreams"]> {
  let opened: Promise<Opened> | undefined;
  return async (namespaces) => {
    opened ??= open(settings);
    const { cluster, imageStreamSource } = await opened;
    return imageStreamSource(cluster, namespaces);
  };
}

type Opened = Awaited<ReturnType<typeof open>>;

/** Loaded only where it is needed: who has no cluster does not wait for it. */
async function open(settings: Settings) {
  const { imageStreamSource } = await import("@osbert/kubernetes");
  const { openClusterOf } = await import("./open-cluster.js");
  return { cluster: await openClusterOf(settings), imageStreamSource };
}
