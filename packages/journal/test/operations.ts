import type { OpenOperation } from "../src/operation.js";
import { emptyState, type ResourceState } from "../src/state.js";

/** An open operation for tests of decisions: exclusive, ready, without a deadline. */
export function operation(id: string, rest: Partial<OpenOperation> = {}): OpenOperation {
  return {
    id,
    kind: "job",
    part: null,
    mode: "exclusive",
    lane: "job",
    acceptedAt: 0,
    deadlineAt: null,
    readyAt: 0,
    held: false,
    cancel: null,
    attempts: 0,
    failures: 0,
    requestId: null,
    lastError: null,
    description: null,
    steps: [],
    waits: [],
    ...rest,
  };
}

/** Names with what is special about them: "x1" is exclusive, "s1" shared, a "!" behind it means held, "@5" ready at 5, "†9" deadline at 9. */
export function queue(text: string): readonly OpenOperation[] {
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => {
      const name = /^[xs][0-9]+/.exec(word)?.[0] ?? word;
      return operation(name, {
        mode: name.startsWith("s") ? "shared" : "exclusive",
        held: word.includes("!"),
        readyAt: Number(/@([0-9]+)/.exec(word)?.[1] ?? 0),
        deadlineAt: word.includes("†") ? Number(/†([0-9]+)/.exec(word)?.[1]) : null,
        cancel: word.includes("~")
          ? { reason: "not wanted", attribution: { actor: { type: "user", subject: "ann" } } }
          : null,
      });
    });
}

export function stateOf(text: string, rest: Partial<ResourceState> = {}): ResourceState {
  return { ...emptyState, open: queue(text), ...rest };
}

export function names(operations: readonly OpenOperation[]): string {
  return operations.map(({ id }) => id).join(" ");
}
