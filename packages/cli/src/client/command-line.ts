import type { Session } from "./session.js";
import { shellQuote } from "./shell-quote.js";

/** What a command line to copy names besides the command. */
export interface Named {
  readonly instance: string;
  readonly binding?: string | undefined;
  readonly operation?: string | undefined;
  readonly serviceId?: string | undefined;
  readonly planId?: string | undefined;
}

/** A command for the same broker, to be copied into a shell: ids in place of names, as they stay what they are. */
export function commandLine(session: Pick<Session, "connection">, command: string, named: Named): string {
  const options = {
    "--operation": named.operation,
    "--service": named.serviceId,
    "--plan": named.planId,
  };
  const words = [
    "osbert",
    command,
    named.instance,
    ...(named.binding === undefined ? [] : [named.binding]),
    ...Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name, value])),
    ...session.connection,
  ];
  return words.map(shellQuote).join(" ");
}
