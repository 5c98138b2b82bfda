import type { Journal } from "@osbert/journal";
import type { LeftPlan } from "../decisions/left-plans.js";
import { planLabel } from "../records/instance-labels.js";
import { instances } from "../records/instance-record.js";
import { keys } from "../records/keys.js";

const asksAtOnce = 16;
const instancesLookedAt = 20;

/**
 * Which of these plans have instances, by their ids. One look for each, by the label that instances have: it is asked only when too much has left,
 * and all that has no instances goes then.
 */
export async function usedPlans(
  journal: Journal,
  broker: string,
  plans: readonly LeftPlan[],
): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  for (let from = 0; from < plans.length; from += asksAtOnce)
    await Promise.all(
      plans.slice(from, from + asksAtOnce).map(async ({ plan: { id } }) => {
        if (await isUsed(journal, broker, id)) used.add(id);
      }),
    );
  return used;
}

/** Other brokers may have a plan of the same id, and long ids the same label. So many of these hide it that it counts as used. */
async function isUsed(journal: Journal, broker: string, plan: string): Promise<boolean> {
  const label = { name: "plan", value: planLabel(plan) };
  const { items, next } = await journal.find({ label, prefix: keys.instances, limit: instancesLookedAt });
  const isOfIt = items.some((resource) => {
    const { data } = instances.resource(resource);
    return data.broker === broker && data.applied?.plan.id === plan;
  });
  return isOfIt || next !== null;
}
