import { fork } from "node:child_process";
import { once } from "node:events";

/** Another process of the benchmark's, started with an order, which tells what happens. It ends with this one. */
export interface Program<Told> {
  /** When it was started, on the clock of `wallMs`. */
  readonly startedAt: number;
  /** The next thing that it tells. Rejects if it has ended, or says nothing for two minutes. */
  next(): Promise<Told>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** The programs of the folder "programs". */
export type ProgramName = "acceptor" | "benchmark" | "holder" | "nothing" | "sleeper" | "successor";

const longestSilenceMs = 120_000;

/** A clock that means the same in all processes of a machine. */
export function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

/** `patience`: how many times longer than usual it may be silent. */
export function startProgram<Told>(
  name: ProgramName,
  order: object,
  execArgv: readonly string[] = [],
  patience = 1,
): Program<Told> {
  const startedAt = wallMs();
  const child = fork(new URL(`./programs/${name}.js`, import.meta.url), [], { execArgv: [...execArgv] });
  const ended = once(child, "exit");
  const told: Told[] = [];
  let listener = (): void => undefined;
  child.on("message", (message) => {
    told.push(message as Told);
    listener();
  });
  child.on("exit", () => listener());
  child.send(order);
  return {
    startedAt,
    async next() {
      const giveUpAt = performance.now() + longestSilenceMs * patience;
      for (;;) {
        const next = told.shift();
        if (next !== undefined) return next;
        if (isGone(child)) throw new Error(`the program ${name} ended and had more to tell`);
        if (performance.now() >= giveUpAt) throw new Error(`the program ${name} has said nothing for too long`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, giveUpAt - performance.now());
          listener = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
    async kill() {
      child.kill("SIGKILL");
      if (!isGone(child)) await ended;
    },
  };
}

/** In a program: the order that it was started with. Without whoever gave it, the program ends. */
export async function order<Order>(): Promise<Order> {
  process.once("disconnect", () => process.exit(1));
  const [message] = (await once(process, "message")) as [Order];
  return message;
}

/** In a program: to whoever started it. */
export function tell(told: object): void {
  process.send?.(told);
}

function isGone(child: { readonly exitCode: number | null; readonly signalCode: string | null }): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
