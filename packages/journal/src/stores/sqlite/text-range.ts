/**
 * The texts that start with `prefix` and come after `after`, as bounds in the order of bytes: from `from` (included)
 * to `to` (not included; `null`: no end). For UTF-8 the order of bytes is that of code points.
 */
export function textRange(prefix: string, after: string | null): { readonly from: string; readonly to: string | null } {
  // Nothing lies between a text and the same text with a zero behind it.
  const next = after === null ? "" : `${after}\u0000`;
  return { from: isBefore(prefix, next) ? next : prefix, to: endOf(prefix) };
}

/**
 * The first text after all that start with `prefix`: its last code point that can be raised is raised, the rest
 * dropped.
 */
function endOf(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last >= 0x10ffff) continue;
    const raised = last === 0xd7ff ? 0xe000 : last + 1;
    return String.fromCodePoint(...points, raised);
  }
  return null;
}

function isBefore(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;
}
