import { Readable } from "node:stream";
import { create, Header } from "tar";
import { type LayoutManifest, layoutPath } from "./image-layout.js";

/**
 * A layout of an image as the one archive that podman and docker both load. Docker wants `manifest.json`, which says which of the blobs are the
 * image; what is gone from the registry is loaded as it was, and has the digest of its config as its id.
 */
export function layoutArchive(folder: string, { config, layers }: LayoutManifest): Readable {
  const paths = layers.map(({ digest }) => layoutPath(digest));
  const manifest = [{ Config: layoutPath(config.digest), RepoTags: null, Layers: paths }];
  const bytes = Buffer.from(JSON.stringify(manifest));
  const header = Buffer.alloc(blockBytes);
  new Header({ path: "manifest.json", mode: 0o644, type: "File", size: bytes.length }).encode(header, 0);
  const padding = Buffer.alloc(-bytes.length & (blockBytes - 1));
  const files = create({ cwd: folder, portable: true }, ["oci-layout", "index.json", "blobs"]);
  return Readable.from(
    (async function* () {
      yield* [header, bytes, padding];
      yield* files;
    })(),
    { objectMode: false },
  );
}

const blockBytes = 512;
