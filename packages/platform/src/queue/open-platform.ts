import { randomUUID } from "node:crypto";
import { type Journal, type JournalOptions, openJournal } from "@osbert/journal";
import { openBrokers } from "../brokers/open-brokers.js";
import { recheck } from "../brokers/recheck.js";
import { openCampaigns } from "../campaigns/open-campaigns.js";
import { settleBind } from "../decisions/settle-bind.js";
import { settleCreate } from "../decisions/settle-create.js";
import { settleDelete } from "../decisions/settle-delete.js";
import { settleUnbind } from "../decisions/settle-unbind.js";
import { settleUpdate } from "../decisions/settle-update.js";
import { instanceKinds, type KindPorts, type Settles } from "../operations/instance-kinds.js";
import { orphanKinds } from "../operations/orphan-kinds.js";
import type { Platform } from "../platform.js";
import { openRotations } from "../rotations/open-rotations.js";
import { JournalInstances } from "./instances.js";
import { JournalOrphans } from "./orphans.js";
import { JournalQuotas } from "./quotas.js";
import { unlockKinds } from "./unlock-kinds.js";

export interface PlatformOptions extends Omit<JournalOptions, "kinds"> {
  /** The word before originating identities, and in contexts. Default "osbert". */
  readonly platformName?: string;
  /** How long to wait in between. Default: as specified. */
  readonly pauses?: NonNullable<KindPorts["pauses"]>;
  /** Ids at brokers. Default: random UUIDs. */
  readonly newId?: () => string;
  /** How long a binding that was renewed is kept beside its successor. Default: an hour. */
  readonly overlapMs?: number;
}

export const settles: Settles = {
  create: settleCreate,
  adopt: settleCreate,
  update: settleUpdate,
  delete: settleDelete,
  bind: settleBind,
  unbind: settleUnbind,
};

/** A platform, and the journal under it. */
export type OpenedPlatform = Platform & { readonly journal: Journal };

/** Opens a platform on a store. It accepts and tells at once; it plays queues against brokers after `start`. */
export async function openPlatform(options: PlatformOptions): Promise<OpenedPlatform> {
  const { platformName = "osbert", pauses, newId = randomUUID, overlapMs, ...journalOptions } = options;
  let opened: Journal | undefined;
  const journal = (): Journal => {
    if (opened === undefined) throw new Error("the journal is not open yet");
    return opened;
  };
  const brokers = openBrokers({ journal, ...(options.random && { random: options.random }) });
  const ports: KindPorts = {
    brokers: brokers.port,
    journal,
    newId,
    recheck: recheck(brokers.port, () => journal().now()),
    ...(options.random && { random: options.random }),
    ...(pauses && { pauses }),
  };
  const quotas = new JournalQuotas({
    journal,
    brokers: async () => (await brokers.brokers.list()).map(({ name }) => name),
    newId,
  });
  // Asked only by what runs, which is after all of it is open.
  const instances = (): JournalInstances =>
    new JournalInstances({
      journal: journal(),
      brokers: brokers.port,
      offeringsCalled: (idOrName, broker) => brokers.brokers.offeringsCalled(idOrName, broker),
      quotas,
      platformName,
      newId,
    });
  const rotations = openRotations({ journal, instances, ...(overlapMs !== undefined && { overlapMs }) });
  const campaigns = openCampaigns({ journal, instances, brokers: brokers.port });
  opened = await openJournal({
    ...journalOptions,
    kinds: {
      ...brokers.kinds,
      ...instanceKinds(ports, settles),
      ...orphanKinds(ports),
      ...unlockKinds(),
      ...rotations.kinds,
      ...campaigns.kinds,
    },
  });
  try {
    await brokers.open();
    await quotas.open();
  } catch (error) {
    await opened.stop();
    throw error;
  }
  return {
    brokers: brokers.brokers,
    instances: instances(),
    orphans: new JournalOrphans(opened),
    freezes: brokers.freezes,
    quotas,
    visibilities: brokers.visibilities,
    rotations: rotations.rotations,
    campaigns: campaigns.campaigns,
    journal: opened,
    start: () => journal().start(),
    async stop() {
      // What runs needs its brokers to the end.
      await journal().stop();
      brokers.close();
      quotas.close();
    },
  };
}
