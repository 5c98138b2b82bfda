import { CommandError } from "../client/exit-status.js";
import type { PlatformSession } from "./platform-session.js";

/** A service and a plan by their names, as people say them. */
export interface NamedOffer {
  readonly broker?: string;
  readonly service?: string;
  readonly plan?: string;
}

/** Their ids and their broker, for the routes that take ids. Names of plans are for one service, and of services for one broker. */
export async function offeredIds(
  session: PlatformSession,
  { broker, service, plan }: NamedOffer,
): Promise<{ readonly broker?: string; readonly offering?: string; readonly plan?: string }> {
  if (service === undefined) {
    if (plan !== undefined) throw new CommandError("usage", "--plan is the plan of a service: say --service, too");
    return {};
  }
  const { items } = await session.ask("offerings", {}, { query: { broker, limit: "500" } });
  const found = items.filter((one) => one.name === service || one.id === service);
  const [offering, ...others] = found;
  if (offering === undefined)
    throw new CommandError("usage", `there is no service ${service}; osbert platform marketplace lists them`);
  if (others.length > 0) {
    const brokers = found.map((one) => one.broker).join(", ");
    throw new CommandError("usage", `several brokers offer ${service} (${brokers}); say --broker`);
  }
  if (plan === undefined) return { broker: offering.broker, offering: offering.id };
  const id = offering.plans.find((one) => one.name === plan || one.id === plan)?.id;
  if (id === undefined) {
    const plans = offering.plans.map(({ name }) => name).join(", ");
    throw new CommandError("usage", `${service} has no plan ${plan}; it has: ${plans}`);
  }
  return { broker: offering.broker, offering: offering.id, plan: id };
}

/** Names of services and plans by their ids, as far as they are offered. */
export async function offeredNames(session: PlatformSession): Promise<ReadonlyMap<string, string>> {
  const { items } = await session.ask("offerings", {}, { query: { limit: "500" } });
  return new Map(
    items.flatMap(({ id, name, plans }) => [
      [id, name] as const,
      ...plans.map((plan) => [plan.id, plan.name] as const),
    ]),
  );
}
