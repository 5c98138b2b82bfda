import { layoutMarks, layoutPath } from "../sources/image-layout.js";
import { type BuiltBundle, describeBlob } from "./build-bundle.js";
import { sameTar, type TarEntry } from "./same-tar.js";

/** A built bundle as the files of an OCI image layout, which other tools copy from (`skopeo copy oci:FOLDER …`), the index last. */
export function ociLayout({ manifest, blobs }: BuiltBundle): readonly LayoutFile[] {
  return [
    ...[...blobs, manifest].map(({ digest, bytes }) => ({ path: layoutPath(digest), bytes })),
    ...layoutMarks(describeBlob(manifest)),
  ];
}

export interface LayoutFile {
  readonly path: string;
  readonly bytes: Buffer;
}

/** The same layout as one file, for `oci-archive:FILE`. */
export function ociArchive(built: BuiltBundle): Buffer {
  const folders: readonly TarEntry[] = ["blobs", "blobs/sha256"].map((path) => ({ kind: "folder", path }));
  const files = ociLayout(built).map((file): TarEntry => ({ kind: "file", executable: false, ...file }));
  return sameTar([...folders, ...files]);
}
