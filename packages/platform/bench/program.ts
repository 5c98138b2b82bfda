import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Figure } from "./figure.js";

/** What a program of the folder "programs" is told. */
export interface Order {
  /** Where it may leave things; whoever started it removes them. */
  readonly folder: string;
  /** Small sizes, to see that it works. */
  readonly quick: boolean;
}

/** Each measures something in a process of its own. */
export type ProgramName = "accept" | "play" | "read" | "polled";

/** Far more than any of them takes: it is ended then. */
const longestMs = 600_000;

/** Runs a program to its end, within its time, and answers what it has measured. */
export async function runProgram(name: ProgramName, order: Order): Promise<readonly Figure[]> {
  const execArgv = ["--expose-gc", ...process.execArgv];
  const child = fork(new URL(`./programs/${name}.js`, import.meta.url), [], { execArgv });
  const overdue = setTimeout(() => child.kill("SIGKILL"), longestMs);
  const told: Figure[] = [];
  child.on("message", (figures) => told.push(...(figures as readonly Figure[])));
  child.send(order);
  await ended(child);
  clearTimeout(overdue);
  if (child.exitCode !== 0) throw new Error(`the program ${name} has failed`);
  return told;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

/** In a program: does what it was ordered, tells what came of it, and ends. */
export async function measure(work: (order: Order) => Promise<readonly Figure[]>): Promise<void> {
  process.once("disconnect", () => process.exit(1));
  const [order] = (await once(process, "message")) as [Order];
  const figures = await work(order);
  await new Promise((resolve) => process.send?.(figures, undefined, {}, resolve));
  process.exit(0);
}
