import type { Attribution, Journal } from "@osbert/journal";

/** Who has done what no person asked for. */
export const byEventFlow: Attribution = { actor: { type: "system", subject: "events" } };

/** Operations of a resource that wait look now. Of one that has none, or that is not there, nothing is changed. */
export async function hurryWaiting(journal: Journal, key: string): Promise<void> {
  await journal.transact(
    key,
    (resource) => {
      const waiting = resource?.open.filter(({ state }) => state === "waiting").map(({ id }) => id) ?? [];
      return { result: null, ...(waiting.length > 0 && { change: { hurry: waiting } }) };
    },
    { by: byEventFlow },
  );
}
