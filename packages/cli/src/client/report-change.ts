import type { Changed } from "@osbert/protocol/client";
import { commandLine } from "./command-line.js";
import { type ExitStatus, exitStatuses } from "./exit-status.js";
import { plainJson, plainText } from "./plain-text.js";
import type { Session } from "./session.js";
import type { WaitResult } from "./wait-for-end.js";

/** A change of an instance or a binding, as far as it has come. */
export interface Report {
  readonly instance: string;
  readonly binding?: string;
  /** "my-db is provisioned" */
  readonly done: string;
  readonly serviceId?: string;
  readonly planId?: string;
  readonly changed: Changed<object>;
  readonly waited: WaitResult;
  /** What a machine is told besides. */
  readonly data?: object;
  /** Further lines for a person. */
  readonly lines?: readonly string[];
  /** For data that a person wants on the standard output: the sentences then go to the standard error. */
  readonly output?: string;
}

/** Prints what became of a change, and gives the status to end with. */
export function reportChange(session: Session, report: Report): ExitStatus {
  const { stdout, stderr } = session.surroundings;
  const { waited, changed } = report;
  const operation = changed.kind === "accepted" ? changed.operation : undefined;
  if (session.json) stdout.write(`${plainJson(document(report, operation))}\n`);
  if (waited.kind === "in progress") {
    stderr.write(stillGoing(session, report, operation, waited.why));
    return waited.why === "not waited" ? exitStatuses.succeeded.status : exitStatuses.inProgress.status;
  }
  if (!session.json) {
    const sentences = [report.done, ...(report.lines ?? [])].map((line) => `${plainText(line)}\n`).join("");
    (report.output === undefined ? stdout : stderr).write(sentences);
    if (report.output !== undefined) stdout.write(report.output);
  }
  return exitStatuses.succeeded.status;
}

function document(report: Report, operation: string | undefined): object {
  const { waited } = report;
  return {
    instance: report.instance,
    binding: report.binding,
    state: waited.kind,
    description: waited.kind === "succeeded" ? waited.description : undefined,
    service_id: report.serviceId,
    plan_id: report.planId,
    operation,
    ...report.data,
  };
}

const beginnings = {
  "not waited": "the broker has taken the order and works on it",
  interrupted: "no longer waiting; the operation goes on at the broker",
  "timed out": "the time is up; the operation goes on at the broker",
} as const;

function stillGoing(
  session: Session,
  report: Report,
  operation: string | undefined,
  why: keyof typeof beginnings,
): string {
  const { instance, binding, serviceId, planId } = report;
  const command = commandLine(session, "last-operation", { instance, binding, operation, serviceId, planId });
  const subject = plainText(binding ?? instance);
  return `${subject}: ${beginnings[why]}. To look at it (--wait goes on waiting):\n  ${command}\n`;
}
