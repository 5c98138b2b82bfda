import type { Answer } from "@osbert/server";

/** Every outcome that is not an error, and its status. Errors have their own table (brokerErrors). */
export const statuses = {
  created: 201,
  "in progress": 202,
  "exists already": 200,
  fetched: 200,
  updated: 200,
  deleted: 200,
  unchanged: 304,
} as const;

export type OutcomeName = keyof typeof statuses;

export function answer(
  outcome: OutcomeName,
  body: object | string,
  headers?: Readonly<Record<string, string>>,
): Answer {
  return headers === undefined ? { status: statuses[outcome], body } : { status: statuses[outcome], body, headers };
}

/** Of identical requests at once, one has made it; to the others, which waited for the same operation, it was there. */
export function madeBy(began: boolean): "created" | "exists already" {
  return began ? "created" : "exists already";
}

/** B6: what goes on is told with the advice when to ask next, if the operator gives one. */
export function inProgressAnswer(
  outcome: "in progress" | "fetched",
  body: object,
  { retryAfterSeconds }: { readonly retryAfterSeconds: number | null },
): Answer {
  return answer(outcome, body, retryAfterSeconds === null ? undefined : { "retry-after": String(retryAfterSeconds) });
}

/** What answers tell of an instance: only what there is. */
export function instanceBody(dashboardUrl: string | null, metadata: object | null): object {
  return { ...(dashboardUrl !== null && { dashboard_url: dashboardUrl }), ...(metadata !== null && { metadata }) };
}
