import { defineResource } from "@osbert/journal";

/** An upgrade of many instances. Each of them is a part, under the state that it is in. */
export type CampaignShape = {
  data: CampaignData;
  parts: { readonly [id: `${TargetState}/${string}`]: TargetRecord };
  operations: { run: { input: null; result: null } };
};

export const campaignRecords = defineResource<CampaignShape>();

/** `skipped`: there was nothing to upgrade. `dropped`: the campaign was cancelled before its turn. */
export const targetStates = ["pending", "running", "succeeded", "failed", "skipped", "dropped"] as const;
export type TargetState = (typeof targetStates)[number];

export interface TargetRecord {
  readonly state: TargetState;
  /** The upgrade in the instance's queue. */
  readonly operation: string | null;
  readonly message: string | null;
  /** How often it was tried; each try has its own idempotency key. */
  readonly tries: number;
}

export interface CampaignWindow {
  readonly fromMinute: number;
  readonly untilMinute: number;
}

/** What is wanted of a campaign. */
export interface StartCampaign {
  readonly broker: string;
  /** Ids; missing: all. */
  readonly offering?: string;
  readonly plan?: string;
  readonly space?: string;
  /** Hours of the day in UTC, as minutes after midnight; over midnight if it ends before it begins. Missing: at any time. */
  readonly window?: CampaignWindow;
  /** Upgrades under way at a time. Default 5. */
  readonly atOnce?: number;
  /** It stops when more than this part of what has ended failed, from 0 to 1, once ten have ended or three failed in a row. Default 0.2. */
  readonly stopAtErrorRate?: number;
}

export interface CampaignData {
  readonly id: string;
  readonly broker: string;
  readonly offering: string | null;
  readonly plan: string | null;
  readonly space: string | null;
  readonly window: CampaignWindow | null;
  readonly atOnce: number;
  readonly stopAtErrorRate: number;
  readonly by: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /**
   * - `collecting`: it looks for its instances
   * - `retrying`: those that failed get another turn
   * - `running`
   * - `stopped`: too many failed; what is under way ends, and nothing new begins before `retry`
   * - `cancelled`
   * - `finished`
   */
  readonly state: "collecting" | "retrying" | "running" | "stopped" | "cancelled" | "finished";
  readonly counts: { readonly [State in TargetState]: number };
  /** When an instance last got from one state to another. */
  readonly movedAt?: number;
  /** Failures since the last success. */
  readonly failedInARow: number;
  readonly message: string | null;
  /** Whoever started it: goes along with every upgrade. */
  readonly identity: { readonly [name: string]: unknown } | null;
  /** How far instances were looked through; `null`: from the beginning, or to the end. */
  readonly cursor: string | null;
}
