import type { Run } from "./evidence.js";
import type { Violation } from "./violation.js";

/** A file has one owner at a time, however another process comes to it. */
export function ownerViolations({ witnessed }: Run): readonly Violation[] {
  return witnessed.flatMap((event) =>
    event.kind === "two owners"
      ? [{ kind: "two owners", story: `beside process ${event.process} by ${event.by}` } as const]
      : [],
  );
}
