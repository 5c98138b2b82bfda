import { crc32 } from "node:zlib";

/** The longest block of deflate that is not compressed. */
const blockBytes = 65_535;
/** No name, no time, no hint, and a system that is not known. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/**
 * Bytes in gzip's form, not compressed. What a compressor makes depends on its version and on the processor; the digest of a bundle must
 * not, and bundles are small.
 */
export function storedGzip(bytes: Buffer): Buffer {
  const parts: Buffer[] = [header];
  for (let at = 0; at === 0 || at < bytes.length; at += blockBytes) {
    const block = bytes.subarray(at, at + blockBytes);
    const head = Buffer.alloc(5);
    head.writeUInt8(at + blockBytes >= bytes.length ? 1 : 0, 0);
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(block.length ^ 0xffff, 3);
    parts.push(head, block);
  }
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(bytes), 0);
  trailer.writeUInt32LE(bytes.length, 4);
  return Buffer.concat([...parts, trailer]);
}
