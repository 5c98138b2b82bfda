import { type Decision, refused } from "./decision.js";

/** A store keeps a megabyte of an instance or binding; the rest is for what the author adds: state, credentials, steps to undo. */
const mostBytes = 786_432;

/** Refuses what would be too large to keep once it is done: by then nobody could say that it was. `null`: there is room. */
export function sizeProblem(kept: { readonly [field: string]: object }): Decision | null {
  const text = JSON.stringify(kept);
  // A text has at most three bytes of UTF-8 for each of its code units: most texts need no count.
  if (text.length * 3 <= mostBytes || Buffer.byteLength(text) <= mostBytes) return null;
  return refused("too-large", `${Object.keys(kept).join(" and ")} would have more than ${mostBytes} bytes as JSON`);
}
