import type { Counter, Histogram } from "prom-client";
import type { RequestAnswered } from "../observe/event.js";

/** What is counted of requests: all, by their status and the room's own labels; their durations; those that were not let in. */
export interface RequestMetrics<Label extends string> {
  readonly requests: Counter<Label | "status">;
  readonly requestDuration: Histogram<Label>;
  readonly refused: Counter<"status" | "user">;
}

export function countRequest<Label extends string>(
  { requests, requestDuration, refused }: RequestMetrics<Label>,
  event: RequestAnswered,
  labels: Readonly<Record<Label, string>>,
): void {
  const { status, tookMs } = event;
  requests.inc({ ...labels, status });
  if (event.refused !== null) refused.inc({ status, user: event.refused.user.kind });
  requestDuration.observe(labels, tookMs / 1_000);
}
