/** How much of a source is read. What is beyond a limit is an error of the source, and never a shorter list. */
export interface SourceLimits {
  /** Of one request, from its first byte to the last one of its answer. */
  readonly requestMs: number;
  /** The same, of a layer with files. */
  readonly layerMs: number;
  /** A source that asks to come again within this time is waited for; else the one who reads is told. */
  readonly retryWithinMs: number;
  /** Of one list. */
  readonly pages: number;
  readonly pageBytes: number;
  readonly repositories: number;
  /** Of one repository. */
  readonly tags: number;
  readonly manifestBytes: number;
  readonly configBytes: number;
  /** Of the YAML of a bundle. */
  readonly specBytes: number;
  /** Of an index. */
  readonly platforms: number;
  readonly layers: number;
  /** As it is sent. */
  readonly layerBytes: number;
  /** All files of a bundle together, unpacked. */
  readonly filesBytes: number;
  readonly files: number;
  /** All blobs of an image together, as they are sent. */
  readonly imageBytes: number;
  readonly imageLayers: number;
  /** Of one digest. */
  readonly signatures: number;
  /** Of what one of them signs. */
  readonly signatureBytes: number;
}

const MiB = 1024 * 1024;

export const defaultSourceLimits: SourceLimits = {
  requestMs: 30_000,
  layerMs: 600_000,
  retryWithinMs: 5_000,
  pages: 2_000,
  pageBytes: 8 * MiB,
  repositories: 100_000,
  tags: 100_000,
  manifestBytes: 4 * MiB,
  configBytes: 4 * MiB,
  specBytes: MiB,
  platforms: 32,
  layers: 32,
  layerBytes: 256 * MiB,
  filesBytes: 512 * MiB,
  files: 20_000,
  imageBytes: 8_192 * MiB,
  imageLayers: 256,
  signatures: 64,
  signatureBytes: 65_536,
};
