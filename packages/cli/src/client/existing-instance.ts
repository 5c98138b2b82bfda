import type { ServiceOffering, ServicePlan } from "@osbert/protocol";
import { BrokerAnswerError } from "@osbert/protocol/client";
import { CommandError } from "./exit-status.js";
import { findIds, findPlan, findServiceId, type Ids, type Wanted } from "./find-plan.js";
import { plainText } from "./plain-text.js";
import type { Session } from "./session.js";

/**
 * The service and plan of an instance, from the broker itself: there is no file here that could be wrong about it. Where it does not
 * tell (not retrievable, still being made, or failed), they are what the options say, or the only ones that it offers.
 */
export async function existingInstance(session: Session, instance: string, wanted: Wanted): Promise<Ids> {
  const services = await session.services();
  const told = await lookUp(session, services, instance, wanted);
  return typeof told === "object" ? told : explained(instance, told, () => findIds(services, wanted));
}

/** The same for an update, which can do without the present plan: `to` is the plan that it leads to. */
export async function instanceToUpdate(
  session: Session,
  instance: string,
  wanted: Wanted,
  to: string | undefined,
): Promise<{
  readonly now: Partial<Ids> & Pick<Ids, "serviceId">;
  readonly plan: ServicePlan | undefined;
}> {
  const services = await session.services();
  const told = await lookUp(session, services, instance, wanted);
  const now =
    typeof told === "object"
      ? told
      : explained(instance, told, () =>
          wanted.plan !== undefined
            ? findIds(services, wanted)
            : {
                serviceId:
                  to === undefined
                    ? findServiceId(services, wanted.service)
                    : findPlan(services, { ...wanted, plan: to }).service.id,
              },
        );
  const plan = to === undefined ? undefined : findPlan(services, { service: now.serviceId, plan: to }).plan;
  return { now, plan };
}

/** A text says why the broker does not tell. */
async function lookUp(
  session: Session,
  services: readonly ServiceOffering[],
  instance: string,
  wanted: Wanted,
): Promise<Ids | string> {
  if (wanted.service !== undefined && wanted.plan !== undefined) return findIds(services, wanted);
  // A catalog that is empty now says nothing of what it once offered: a namespace may have lost its grants, and wants to delete what it has.
  if (services.length > 0 && !services.some(isRetrievable)) return "it does not let instances be fetched";
  const told = await ask(session, instance);
  return typeof told === "object" ? agreed(services, instance, told, wanted) : told;
}

function explained<T>(instance: string, why: string, find: () => T): T {
  try {
    return find();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError(
      "usage",
      `the broker does not tell the service and plan of ${plainText(instance)} (${plainText(why)}): ${error.message}`,
    );
  }
}

interface Told {
  readonly serviceId: string;
  readonly planId: string;
}

/** A text says why it does not tell. */
async function ask(session: Session, instance: string): Promise<Told | string> {
  try {
    const { body } = await session.client.fetchInstance(instance, session.call);
    const { service_id: serviceId, plan_id: planId } = body;
    if (typeof serviceId === "string" && typeof planId === "string") return { serviceId, planId };
    return "its answer leaves them out";
  } catch (error) {
    // Credentials that are wrong now will be wrong for the change too; the same for a broker that is not there.
    if (!(error instanceof BrokerAnswerError) || error.status === null || [401, 403].includes(error.status))
      throw error;
    return `it answered ${error.status}`;
  }
}

function agreed(services: readonly ServiceOffering[], instance: string, told: Told, wanted: Wanted): Ids {
  const service = services.find(({ id }) => id === told.serviceId);
  const plan = service?.plans.find(({ id }) => id === told.planId);
  const differs =
    (wanted.service !== undefined && ![told.serviceId, service?.name].includes(wanted.service)) ||
    (wanted.plan !== undefined && ![told.planId, plan?.name].includes(wanted.plan));
  if (differs)
    throw new CommandError(
      "usage",
      `${plainText(instance)} is of service ${plainText(service?.name ?? told.serviceId)}, plan ${plainText(plan?.name ?? told.planId)}; leave --service and --plan away, or give both`,
    );
  return { ...told, offer: service && plan && { service, plan } };
}

function isRetrievable(service: ServiceOffering): boolean {
  return service.instances_retrievable === true;
}
