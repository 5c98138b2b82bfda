import { type Program, startProgram } from "./program.js";
import type { Told } from "./programs/successor.js";

/** Waits for the first step that a successor runs. Times are on the clock of `wallMs`. */
export async function firstStep(
  successor: Program<Told>,
): Promise<{ readonly opensAt: number; readonly runsAt: number }> {
  for (;;) {
    const told = await successor.next();
    if (told.kind === "first step") return told;
  }
}

/** How long Node takes to come to the first line of a program: no successor is faster. */
export async function timeOfBareNode(): Promise<number> {
  const nothing = startProgram<{ readonly at: number }>("nothing", {});
  const { at } = await nothing.next();
  await nothing.kill();
  return at - nothing.startedAt;
}
