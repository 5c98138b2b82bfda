import { openJournal } from "@osbert/journal";
import { connect, type Place } from "../places.js";
import { order, tell, wallMs } from "../program.js";

export type Told =
  | { readonly kind: "ready" }
  | { readonly kind: "first step"; readonly opensAt: number; readonly runsAt: number };

/** Goes on with what another process has left, and tells when it ran the first step of that. */
const { place } = await order<{ readonly place: Place }>();
const opensAt = wallMs();
let first = true;
const step = () => {
  if (first) tell({ kind: "first step", opensAt, runsAt: wallMs() } satisfies Told);
  first = false;
  return new Promise<null>(() => {});
};
const journal = await openJournal({
  store: connect(place).store,
  kinds: { "one step": { run: (operation) => operation.step("hold", step) } },
});
await journal.start();
tell({ kind: "ready" } satisfies Told);
