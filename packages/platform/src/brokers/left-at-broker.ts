import type { Journal } from "@osbert/journal";
import { keys } from "../records/keys.js";
import type { OrphanData } from "../records/orphan-record.js";

/** Keys of some instances that the broker has. One that cannot be read is one, too, and there is a next page behind it. */
export async function instancesOf(journal: Journal, broker: string, limit: number): Promise<readonly string[]> {
  const { items, next } = await journal.find({
    label: { name: "broker", value: broker },
    prefix: keys.instances,
    limit,
  });
  if (items.length === 0 && next !== null) throw new Error("an instance of the broker cannot be read");
  return items.map(({ key }) => key);
}

/**
 * Keys of some rows of the ledger that have not ended: what they tell of may still be at the broker. Asked after `instancesOf`: whoever suspects
 * something has its row in the ledger before its instance lets go of the broker.
 */
export async function openOrphansOf(journal: Journal, broker: string, limit: number): Promise<readonly string[]> {
  const found: string[] = [];
  for (const state of notEnded) {
    const { items, next } = await journal.find({
      label: { name: "state", value: state },
      prefix: keys.orphansOf(broker),
      limit,
    });
    if (items.length === 0 && next !== null) throw new Error("a row of the ledger cannot be read");
    found.push(...items.map(({ key }) => key));
  }
  return found.slice(0, limit);
}

const notEnded: readonly OrphanData["state"][] = ["open", "held", "abandoned"];
