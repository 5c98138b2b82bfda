import { defineResource } from "@osbert/journal";

/** The renewal of one binding. A resource of its own, because it waits for months, and nothing may wait for it. */
export type RotationShape = {
  data: RotationData;
  parts: Record<never, never>;
  operations: { renew: { input: null; result: { readonly end: RotationData["state"] } } };
};

export const rotationRecords = defineResource<RotationShape>();

export const rotationStates = ["scheduled", "renewing", "overlapping", "renewed", "failed", "over"] as const;

export interface RotationData {
  readonly space: string;
  readonly instance: string;
  readonly binding: string;
  /** Which one: a name may be another's later. Rows of before it was kept lack it. */
  readonly bindingId?: string;
  /** As the broker said it. */
  readonly expiresAt: string | null;
  readonly renewBefore: string | null;
  /** When its successor is bound. */
  readonly renewAt: number;
  /**
   * - `scheduled`: until `renewAt`
   * - `renewing`: its successor is being bound
   * - `overlapping`: both are there
   * - `renewed`: the old one is unbound
   * - `failed`: it cannot be renewed; `message` says why
   * - `over`: somebody else has ended it
   */
  readonly state: (typeof rotationStates)[number];
  /** The binding that takes its place. */
  readonly successor: string | null;
  readonly message: string | null;
}
