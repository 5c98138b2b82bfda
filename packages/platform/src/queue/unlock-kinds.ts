import type { OperationKinds } from "@osbert/journal";
import { control } from "../decisions/controls.js";
import { deskOf, type Request } from "../decisions/desk.js";
import { instances } from "../records/instance-record.js";
import { keys } from "../records/keys.js";
import { unlocks } from "../records/unlock-record.js";

/** Ends locks when their time has come: exactly once, and only the lock that it was made for. */
export function unlockKinds(): OperationKinds {
  return unlocks.kinds({
    unlock: {
      deadlineMs: null,
      async run({ input: { space, name, at }, transact }) {
        const unlock = instances.decide<null>((resource, now) => {
          const desk = deskOf(resource, now, byTime);
          if (desk?.data === undefined) return { result: null };
          const { change } = control(desk, { action: "unlock", at });
          // It was ended by hand, or its commit is still under way: that was decided on a revision that is over with this one, and is refused.
          const mayComeYet = (desk.data.lock?.at ?? 0) < at;
          return { result: null, ...(change !== undefined ? { change } : mayComeYet && { change: { parts: {} } }) };
        });
        await transact("unlock", keys.instance(space, name), unlock, { open: "all" });
        return null;
      },
      settle: () => ({ gone: true }),
    },
  });
}

/** Nobody asks: the time has come. */
const byTime: Request = {
  by: "platform",
  asked: "",
  ifMatch: null,
  keyPart: null,
  dryRun: false,
  intent: { identity: null, context: {} },
  catalogOf: () => 0,
  inputs: null,
  newId: "",
  preflight: () => ({ ok: true, findings: [] }),
};
