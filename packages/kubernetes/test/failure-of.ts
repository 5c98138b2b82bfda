import { expect } from "vitest";
import { ClusterError } from "../src/index.js";

/** What a call has failed with; it must fail, and as calls to a cluster do. */
export async function failureOf(call: Promise<unknown>): Promise<ClusterError> {
  const error: unknown = await call.then(
    () => new Error("it went through"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ClusterError);
  return error as ClusterError;
}
