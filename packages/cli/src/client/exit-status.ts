/** What the status with which a client command ends means. Scripts rely on it; the help and the reference page print it. */
export const exitStatuses = {
  succeeded: { status: 0, meaning: "it succeeded (with --no-wait: the broker has taken the order)" },
  failed: { status: 1, meaning: "the broker refused, or the operation failed" },
  usage: {
    status: 2,
    meaning: "the command line, a file or a setting is wrong; nothing was sent that changes anything",
  },
  inProgress: {
    status: 3,
    meaning: "still in progress: --timeout is over, waiting was interrupted, or the broker says so",
  },
  unreachable: {
    status: 4,
    meaning: "no broker's answer: no connection, no answer in time, or something that no broker says",
  },
} as const;

/** For the end of a command's help. `end`: who is talked to. */
export function statusHelp(end: "broker" | "platform"): string {
  const lines = Object.values(exitStatuses).map(
    ({ status, meaning }) => `  ${status}  ${meaning.replaceAll("broker", end)}`,
  );
  return `\nExit status:\n${lines.join("\n")}`;
}

export type ExitStatus = (typeof exitStatuses)[keyof typeof exitStatuses]["status"];

/** A command cannot go on. The message says what to do, and never carries a secret. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly status: ExitStatus;

  constructor(status: keyof typeof exitStatuses, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = exitStatuses[status].status;
  }
}
