/**
 * The bytes of a value's JSON, in memory of their own. What `Buffer.from` makes of a short text is a part of a piece that others have parts of, too, and that
 * stays as long as one of them: kept for a while between many that are not, each text would keep several times its length.
 */
export function jsonBytes(value: unknown): Buffer {
  const text = JSON.stringify(value);
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
