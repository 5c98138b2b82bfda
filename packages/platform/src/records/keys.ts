/**
 * Keys of the platform's resources, and the way back. An instance is found by its name, so that a name is taken by one commit on one
 * resource (J2); what came before it under the same name stays in the same journal. Names have no slash.
 */
export const keys = {
  instance: (space: string, name: string): string => `instance/${space}/${name}`,
  instancesOf: (space: string): string => `instance/${space}/`,
  instances: "instance/",
  broker: (name: string): string => `broker/${name}`,
  brokers: "broker/",
  /** The names of all brokers with the number of their last change: one followed value, so that every process hears of each change. */
  brokerIndex: "platform/brokers",
  /** Freezes that hold for many instances: one followed value. */
  freezes: "platform/freezes",
  /** How many instances spaces may have, and what is offered in some of them only: a followed value each. */
  quotas: "platform/quotas",
  visibilities: "platform/visibilities",
  reservations: (space: string): string => `reservation/${space}`,
  orphan: (broker: string, instance: string, binding: string | null): string =>
    binding === null ? `orphan/${broker}/${instance}` : `orphan/${broker}/${instance}/${binding}`,
  orphansOf: (broker: string): string => `orphan/${broker}/`,
  orphans: "orphan/",
  /** When a binding is to be renewed. A resource of its own, so that it keeps nothing waiting in the instance's queue. */
  rotation: (space: string, instance: string, binding: string): string => `rotation/${space}/${instance}/${binding}`,
  rotationsOf: (space: string): string => `rotation/${space}/`,
  rotations: "rotation/",
  /** The end of a lock that has a time. A resource of its own, so that it keeps nothing waiting in the instance's queue. */
  unlock: (space: string, instance: string): string => `unlock/${space}/${instance}`,
  campaign: (id: string): string => `campaign/${id}`,
  campaigns: "campaign/",
} as const;

export interface InstanceRef {
  readonly space: string;
  readonly name: string;
}

export function instanceRef(key: string): InstanceRef | undefined {
  const match = /^instance\/([^/]+)\/([^/]+)$/.exec(key);
  return match?.[1] === undefined || match[2] === undefined ? undefined : { space: match[1], name: match[2] };
}

/** Everything that is sent to one broker shares a lane: its limit, and the pause while it cannot be reached. */
export function brokerLane(broker: string): string {
  return `broker/${broker}`;
}
