import { fileURLToPath } from "node:url";

const mostFrames = 4;

/**
 * Whether an error looks like a mistake in the author's code rather than a misfortune outside: trying again will not help. What has a
 * cause was made of a misfortune, as the TypeError of a `fetch` that failed is.
 */
export function looksLikeABug(error: unknown): boolean {
  try {
    if (!(error instanceof Error) || error.cause !== undefined) return false;
    return ["TypeError", "ReferenceError", "RangeError", "AssertionError"].includes(error.name);
  } catch {
    return false;
  }
}

/** Where in the author's own files it was thrown, innermost first: frames of Node.js, of packages and of Osbert are left out. */
export function authorFrames(error: unknown): readonly string[] {
  const frames = framesOf(error);
  const own = frames.filter((frame) => !isForeign(frame));
  return (own.length > 0 ? own : frames).slice(0, mostFrames);
}

function framesOf(error: unknown): readonly string[] {
  try {
    const stack = error instanceof Error ? String(error.stack) : "";
    return stack
      .split("\n")
      .filter((line) => /^\s+at /.test(line))
      .map((line) => line.trim());
  } catch {
    return [];
  }
}

/** Where Osbert's packages lie: beside each other in a checkout, below node_modules elsewhere. */
const packages = fileURLToPath(new URL("../../../", import.meta.url));

function isForeign(frame: string): boolean {
  const place = frame.replace("file://", "");
  if (/[( ]node:|[/\\]node_modules[/\\]|<anonymous>/.test(place)) return true;
  const at = place.indexOf(packages);
  return at >= 0 && /^[^/\\]+[/\\](src|dist)[/\\]/.test(place.slice(at + packages.length));
}
