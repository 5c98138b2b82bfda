import type { Journal } from "@osbert/journal";
import type { InUse } from "../reconcile/next-state.js";

/** Which services and plans have instances: one indexed look each. */
export async function inUse(
  journal: Journal,
  { services, plans }: { readonly services: readonly string[]; readonly plans: readonly string[] },
): Promise<InUse> {
  const used = async (name: "service" | "plan", ids: readonly string[]) => {
    const found = new Set<string>();
    for (const id of ids) if (await hasInstances(journal, name, id)) found.add(id);
    return found;
  };
  return { services: await used("service", services), plans: await used("plan", plans) };
}

/** One that cannot be read is no item, but there is a next page behind it; it is an instance all the same. */
export async function hasInstances(journal: Journal, name: "service" | "plan", id: string): Promise<boolean> {
  const { items, next } = await journal.find({ label: { name, value: id }, limit: 1 });
  return items.length > 0 || next !== null;
}
