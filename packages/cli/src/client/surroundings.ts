import type { ExitStatus } from "./exit-status.js";

/** Where text goes; `isTTY` tells whether a person may be watching. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** What a command takes from the process that it runs in, and all that it takes. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `isTTY`: a person can be asked. */
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  /** Data alone. */
  readonly stdout: Sink;
  /** Progress, remarks and errors. */
  readonly stderr: Sink;
  readonly now: () => number;
  /** Calls back on Ctrl-C, which then does not end the process. The function that it returns ends that. */
  onInterrupt(listener: () => void): () => void;
  /** The status with which the process is to end, once there is nothing left to do. */
  endWith(status: ExitStatus): void;
}

/** The process itself. */
export function processSurroundings(): Surroundings {
  return {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    now: Date.now,
    onInterrupt(listener) {
      process.on("SIGINT", listener);
      return () => void process.off("SIGINT", listener);
    },
    endWith(status) {
      process.exitCode = status;
    },
  };
}

/** A reader that has seen enough (`osbert catalog | head`) is no error. */
export function endQuietlyWhenNobodyReads(output: NodeJS.WriteStream): void {
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}
