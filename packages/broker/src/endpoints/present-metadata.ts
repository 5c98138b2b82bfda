import type { Clock } from "@osbert/journal";
import type { InstanceMetadata } from "@osbert/protocol";
import type { ServiceSource } from "../catalog/service-source.js";
import { checkInstance } from "../operations/check-instance.js";
import type { InstanceAddress } from "../records/instance-key.js";

/** What is told of an instance at this moment. */
export type PresentMetadata = (address: InstanceAddress, serviceId: string) => Promise<InstanceMetadata | undefined>;

/** A platform waits for the answer, which is good without it. */
const withinMs = 2_000;

/** Asks the source of the services; what does not come in time, fails or cannot be given out is as if it had nothing to say. */
export function presentMetadata(source: ServiceSource | undefined, clock: Clock): PresentMetadata | undefined {
  if (source?.instanceMetadata === undefined) return undefined;
  return async (address, serviceId) => {
    let callOff: () => void = () => undefined;
    const late = new Promise<undefined>((resolve) => {
      callOff = clock.after(withinMs, () => resolve(undefined));
    });
    const asked = (async () => source.instanceMetadata?.(address, serviceId))();
    try {
      const metadata = (await Promise.race([asked.catch(() => undefined), late])) ?? undefined;
      return metadata === undefined || checkInstance({ metadata }) !== null ? undefined : metadata;
    } finally {
      callOff();
    }
  };
}

/** Labels and attributes of the one over those of the other, name by name. */
export function laidOver(recorded: InstanceMetadata | null, present: InstanceMetadata | undefined) {
  if (present === undefined) return recorded;
  const both = (name: "labels" | "attributes") => {
    const pairs = { ...recorded?.[name], ...present[name] };
    return Object.keys(pairs).length === 0 ? {} : { [name]: pairs };
  };
  const metadata = { ...recorded, ...both("labels"), ...both("attributes") };
  return Object.keys(metadata).length === 0 ? recorded : metadata;
}
