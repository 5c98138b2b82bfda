const number = "(?:0|[1-9][0-9]*)";
const prerelease = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
const pattern = new RegExp(
  `^${number}\\.${number}\\.${number}(?:-${prerelease}(?:\\.${prerelease})*)?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$`,
);

/** Semantic Versioning 2.0, as `maintenance_info.version` has to be. */
export function isSemanticVersion(text: string): boolean {
  return text.length <= 255 && pattern.test(text);
}
