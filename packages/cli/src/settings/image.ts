/** A catalog is fetched whole and often: pictures in it must be small. */
export const largestImageBytes = 131_072;

/** A picture as data URI; its type is told by its content, never by its name. `undefined`: it is none that browsers show. */
export function imageDataUri(bytes: Buffer): string | undefined {
  const type = imageType(bytes);
  return type === undefined ? undefined : `data:${type};base64,${bytes.toString("base64")}`;
}

function imageType(bytes: Buffer): string | undefined {
  const begins = (text: string, at = 0) => bytes.toString("latin1", at, at + text.length) === text;
  if (begins("\x89PNG\r\n\x1a\n")) return "image/png";
  if (begins("\xff\xd8\xff")) return "image/jpeg";
  if (begins("GIF87a") || begins("GIF89a")) return "image/gif";
  if (begins("RIFF") && begins("WEBP", 8)) return "image/webp";
  // Comments and declarations may come before it.
  const text = bytes.toString("utf8").trimStart();
  return text.startsWith("<") && /<svg[\s>]/.test(text.slice(0, 4_096)) ? "image/svg+xml" : undefined;
}
