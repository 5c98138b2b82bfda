import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** One process of a cluster. */
export interface PartCommand {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Where what it prints is added. */
  readonly log: string;
  /** Is true once it answers; an error counts as not yet. */
  readonly isReady: () => Promise<boolean>;
  /** The command is a step into other namespaces, and the part is its child. */
  readonly isInNamespaces?: boolean;
}

/** A process that can be ended and started again. It ends with this process, however that ends. */
export interface Part {
  readonly name: string;
  /** Resolves when it answers. Does nothing if it runs. */
  start(): Promise<void>;
  /** Ends it where it stands, as a loss of power would. */
  stop(): Promise<void>;
  /** It keeps its connections, and answers nothing. */
  pause(): void;
  continue(): void;
}

export function makePart(name: string, what: PartCommand): Part {
  let running: ChildProcess | undefined;
  const signal = (to: NodeJS.Signals) => {
    if (running?.pid === undefined) throw new Error(`${name} does not run`);
    const pids = what.isInNamespaces ? childrenOf(running.pid) : [running.pid];
    for (const pid of pids) process.kill(pid, to);
  };
  const stop = async () => {
    if (running !== undefined && !hasEnded(running)) {
      const gone = once(running, "exit");
      signal("SIGKILL");
      await gone;
    }
    running = undefined;
  };
  return {
    name,
    stop,
    pause: () => signal("SIGSTOP"),
    continue: () => signal("SIGCONT"),
    async start() {
      if (running !== undefined && !hasEnded(running)) return;
      const child = launch(what);
      running = child;
      let failure = "";
      child.once("error", (error) => {
        failure = error.message;
      });
      const giveUpAtMs = performance.now() + readyWithinMs;
      while (!(await what.isReady().catch(() => false))) {
        if (hasEnded(child)) failure = "ended";
        if (performance.now() > giveUpAtMs) failure = "did not answer";
        if (failure === "") await sleep(50);
        else {
          await stop();
          throw new Error(`${name} ${failure}:\n${lastLines(what.log)}`);
        }
      }
    },
  };
}

function launch({ command, env, log }: PartCommand): ChildProcess {
  const output = openSync(log, "a");
  const stdio = ["ignore", output, output] as const;
  const child = spawn("setpriv", ["--pdeathsig", "KILL", ...command], {
    env: { ...process.env, ...env },
    stdio: [...stdio],
  });
  closeSync(output);
  return child;
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** A machine with much else to do takes its time. */
const readyWithinMs = 120_000;

function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [pid] : text.split(" ").map(Number);
}

function lastLines(log: string): string {
  return readFileSync(log, "utf8").trimEnd().split("\n").slice(-15).join("\n");
}
