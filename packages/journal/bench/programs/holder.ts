import { randomUUID } from "node:crypto";
import { openJournal } from "@osbert/journal";
import { by, input } from "../operations.js";
import { connect, type Place } from "../places.js";
import { order, tell } from "../program.js";

/** Accepts operations and runs them into a step that never ends. */
const { place, operations } = await order<{ readonly place: Place; readonly operations: number }>();
let holding = 0;
const hold = () => {
  if (++holding === operations) tell({ holding });
  return new Promise<null>(() => {});
};
const journal = await openJournal({
  store: connect(place).store,
  kinds: { "one step": { run: (operation) => operation.step("hold", hold) } },
});
await journal.start();
const change = { accept: [{ kind: "one step", input }] };
const accept = () => journal.transact(randomUUID(), () => ({ result: null, change }), { by, likelyNew: true });
await Promise.all(Array.from({ length: operations }, accept));
