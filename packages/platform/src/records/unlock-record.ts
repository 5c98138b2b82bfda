import { defineResource } from "@osbert/journal";

/** When a lock is over: an operation that waits until then. */
export type UnlockShape = {
  data: null;
  parts: Record<never, never>;
  operations: {
    unlock: {
      input: {
        readonly space: string;
        readonly name: string;
        /** Which lock: when it was set. */
        readonly at: number;
      };
      result: null;
    };
  };
};

export const unlocks = defineResource<UnlockShape>();
