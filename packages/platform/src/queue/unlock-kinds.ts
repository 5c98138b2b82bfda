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
          const decided = desk?.data === undefined ? undefined : control(desk, { action: "unlock", at });
          return { result: null, ...(decided?.change !== undefined && { change: decided.change }) };
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
