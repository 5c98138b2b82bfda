import { Header, Pax } from "tar";

/** An entry of an archive. */
export type TarEntry =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "file"; readonly path: string; readonly executable: boolean; readonly bytes: Buffer };

/** An archive that depends on its entries alone: no times, no owners, and of modes whether a file can be run. */
export function sameTar(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const bytes = entry.kind === "file" ? entry.bytes : Buffer.alloc(0);
    return [...headersOf(entry, bytes.length), bytes, Buffer.alloc(-bytes.length & (blockBytes - 1))];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

const blockBytes = 512;

function headersOf(entry: TarEntry, size: number): readonly Buffer[] {
  const path = entry.kind === "folder" ? `${entry.path}/` : entry.path;
  const linkpath = entry.kind === "link" ? entry.target : "";
  const mode = entry.kind === "folder" || (entry.kind === "file" && entry.executable) ? 0o755 : 0o644;
  const type = ({ folder: "Directory", link: "SymbolicLink", file: "File" } as const)[entry.kind];
  const header = new Header({ path, linkpath, mode, type, size, uid: 0, gid: 0, mtime: new Date(0) });
  const block = Buffer.alloc(blockBytes);
  const isComplete = !header.encode(block, 0);
  // A name that is too long, or not of ASCII, stands in a header of its own before.
  return isComplete ? [block] : [new Pax({ path, ...(linkpath !== "" && { linkpath }), size }).encode(), block];
}
