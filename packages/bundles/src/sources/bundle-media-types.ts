/**
 * How a bundle lies in a registry: what the sources read, and what `osbert bundle push` writes. All of it is for ever: a registry keeps
 * what was pushed under these names.
 */
export const bundleMediaTypes = {
  /** `artifactType` of the manifest of a bundle that is no image. */
  artifact: "application/vnd.osbert.bundle.v1",
  /**
   * Of its config blob: the bytes of osbert.yaml as the author wrote them, so that a fault names the author's line, and a manifest and one
   * small blob are all that is read of a bundle. JSON is YAML, and may stand here, too.
   */
  config: "application/vnd.osbert.bundle.config.v1+yaml",
  /** Of its layers: the files of the bundle's folder, osbert.yaml among them. Later layers lie over earlier ones. */
  files: "application/vnd.osbert.bundle.files.v1.tar+gzip",
} as const;

/** Labels of an image, or annotations of an index, that make it a bundle. */
export const bundleLabels = {
  /** osbert.yaml in base64. */
  osbert: "io.osbert.bundle",
  /** apb.yml in base64. */
  apb: "com.redhat.apb.spec",
  /** The runtime of a classic bundle; the first one that is there counts. Without any it is 1. */
  apbRuntime: ["com.redhat.bundle.runtime", "com.redhat.apb.runtime"],
} as const;
