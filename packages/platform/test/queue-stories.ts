import { type Admitted, PlatformError } from "../src/index.js";
import { type QueueLab, queueLab } from "./queue-lab.js";

// How stories of the queue begin and end.

export const db = { offering: "db", plan: "small", parameters: '{"a":1,"b":1}' } as const;

export function operationOf(admitted: Admitted): string {
  if (admitted.kind !== "accepted" && admitted.kind !== "repeated") throw new Error(`it was ${admitted.kind}`);
  return admitted.operation;
}

/** What the platform says no with. */
export async function refusal(asked: Promise<unknown>): Promise<PlatformError> {
  const error = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof PlatformError) return error;
  throw error ?? new Error("it was not refused");
}

/** An instance with these parameters, whose queue is empty. */
export async function ready(
  options: Parameters<typeof queueLab>[0] = {},
  parameters: string = db.parameters,
): Promise<QueueLab> {
  const lab = await queueLab(options);
  await lab.journal.start();
  lab.answer(operationOf(await lab.instances.create(lab.ref, { ...db, parameters }, lab.asks("anna"))));
  await lab.until(async () => (await lab.see()).phase === "ready");
  return lab;
}

export async function emptied(lab: QueueLab) {
  await lab.until(async () => (await lab.see()).queue.length === 0);
  return lab.see();
}

/** The operation of what was asked for, when the broker has been sent it. */
export async function sent(lab: QueueLab, admitted: Promise<Admitted>): Promise<string> {
  const operation = operationOf(await admitted);
  await lab.until(() => lab.sent.includes(operation));
  return operation;
}

export async function update(lab: QueueLab, parameters: string, by = "anna"): Promise<string> {
  return operationOf(await lab.instances.update(lab.ref, { parameters }, lab.asks(by)));
}

export async function held(lab: QueueLab): Promise<readonly string[]> {
  return (await lab.see()).queue.filter(({ state }) => state === "held").map(({ operation }) => operation);
}
