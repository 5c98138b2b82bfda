import { randomUUID } from "node:crypto";
import type { Journal, OperationKinds, Page, TypedDecide } from "@osbert/journal";
import type { BrokerPort } from "../brokers/broker-port.js";
import { newCampaign } from "../decisions/campaign.js";
import { PlatformError } from "../errors.js";
import type { Asking, Campaigns, CampaignTarget, CampaignView, Instances, StartCampaign } from "../platform.js";
import {
  type CampaignData,
  type CampaignShape,
  campaignRecords,
  type TargetState,
} from "../records/campaign-record.js";
import { keys } from "../records/keys.js";
import { runCampaign } from "./run-campaign.js";

export interface OpenCampaignsOptions {
  readonly journal: () => Journal;
  readonly brokers: BrokerPort;
  readonly instances: () => Pick<Instances, "upgrade" | "cancel">;
}

export interface OpenedCampaigns {
  readonly kinds: OperationKinds;
  readonly campaigns: Campaigns;
}

export function openCampaigns(options: OpenCampaignsOptions): OpenedCampaigns {
  return {
    kinds: campaignRecords.kinds({ run: runCampaign(options) }),
    campaigns: new JournalCampaigns(options),
  };
}

class JournalCampaigns implements Campaigns {
  readonly #options: OpenCampaignsOptions;

  constructor(options: OpenCampaignsOptions) {
    this.#options = options;
  }

  async start(wanted: StartCampaign, { by, identity }: Asking): Promise<CampaignView> {
    const { journal, brokers } = this.#options;
    const id = randomUUID();
    const data = newCampaign(id, wanted, by.actor.subject, identity ?? null, journal().now());
    if (brokers.broker(data.broker) === undefined) throw new PlatformError("not-found", "there is no such broker");
    const start = campaignRecords.decide(() => ({ result: null, change: { data, accept: [{ kind: "run" }] } }));
    await journal().transact(keys.campaign(id), start, { by, likelyNew: true });
    return viewOf(data);
  }

  async read(id: string): Promise<CampaignView | undefined> {
    if (!isId(id)) return undefined;
    const resource = campaignRecords.resource(await this.#options.journal().read(keys.campaign(id)));
    return resource && viewOf(resource.data);
  }

  async list(page: { readonly after?: string; readonly limit?: number } = {}): Promise<Page<CampaignView>> {
    const { items, next } = await this.#options.journal().find({ prefix: keys.campaigns, ...page });
    return { items: items.map((resource) => viewOf(campaignRecords.resource(resource).data)), next };
  }

  async targets(
    id: string,
    { state, ...page }: { readonly state: TargetState; readonly after?: string; readonly limit?: number },
  ): Promise<Page<CampaignTarget>> {
    if ((await this.read(id)) === undefined) throw noCampaign();
    const prefix = `${state}/` as const;
    const found = await this.#options.journal().parts(keys.campaign(id), prefix, page);
    const { items, next } = campaignRecords.partsUnder(prefix, found);
    return {
      items: items.map((part) => {
        const [, space = "", instance = ""] = part.id.split("/");
        return { ...part.value, space, instance };
      }),
      next,
    };
  }

  /** What has ended stays as it ended. */
  cancel(id: string, asking: Asking): Promise<CampaignView> {
    return this.#decide(id, asking, (data) => {
      if (data.state === "cancelled") return data;
      if (data.state === "finished") throw new PlatformError("too-late", "the campaign has finished");
      return { ...data, state: "cancelled", message: `cancelled by ${asking.by.actor.subject}` };
    });
  }

  retry(id: string, asking: Asking): Promise<CampaignView> {
    return this.#decide(id, asking, (data) => {
      if (data.state === "cancelled") throw new PlatformError("too-late", "the campaign was cancelled");
      if (data.state === "collecting") throw new PlatformError("busy", "the campaign still looks for its instances");
      return { ...data, state: "retrying", endedAt: null };
    });
  }

  /** Whoever runs it looks at once; if nobody does any more, it is run again. */
  async #decide(id: string, { by }: Asking, decide: (data: CampaignData) => CampaignData): Promise<CampaignView> {
    if (!isId(id)) throw noCampaign();
    const decision: TypedDecide<CampaignShape, null> = (resource) => {
      if (resource === undefined) throw noCampaign();
      after = decide(resource.data);
      const open = resource.open.map(({ id: operation }) => operation);
      return {
        result: null,
        change: { data: after, ...(open.length > 0 ? { hurry: open } : { accept: [{ kind: "run" as const }] }) },
      };
    };
    let after: CampaignData | undefined;
    await this.#options.journal().transact(keys.campaign(id), campaignRecords.decide(decision), { by });
    if (after === undefined) throw noCampaign();
    return viewOf(after);
  }
}

function viewOf({ identity: _identity, cursor: _cursor, ...view }: CampaignData): CampaignView {
  return view;
}

function isId(id: string): boolean {
  return /^[0-9a-f-]{36}$/.test(id);
}

function noCampaign(): PlatformError {
  return new PlatformError("not-found", "there is no such campaign");
}
