import type { apiDescriptions } from "@osbert/platform/api";
import type { Shaped } from "@osbert/server/client";
import { type Command, InvalidArgumentError, Option } from "commander";
import { facts } from "../admin/print.js";
import { type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { offeredIds, offeredNames } from "./offered-ids.js";
import {
  type PageOptions,
  type PlatformOptions,
  type WaitOptions,
  withPageOptions,
  withPlatformOptions,
  withWaitOptions,
} from "./platform-options.js";
import type { PlatformSession } from "./platform-session.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { uniqueId } from "./unique-id.js";
import { waitWithProgress } from "./wait-with-progress.js";

type Campaign = Shaped<(typeof apiDescriptions)["campaign"]["answer"]>;

const theCampaign = "its id, or how that begins";
const targetStates = ["pending", "running", "succeeded", "failed", "skipped", "dropped"] as const;

/** `osbert platform campaigns …`: upgrades of many instances. */
export function registerCampaignCommands(platform: Command, surroundings: Surroundings): void {
  const campaigns = platform
    .command("campaigns")
    .summary("upgrade many instances, some at a time")
    .description(
      "Campaigns upgrade many instances to the maintenance versions that the catalog has now: some at a time, in a window, and no further when too many fail.",
    );
  registerStart(campaigns, surroundings);
  registerList(campaigns, surroundings);
  registerShow(campaigns, surroundings);
  registerTargets(campaigns, surroundings);
  registerCancel(campaigns, surroundings);
  registerRetry(campaigns, surroundings);
}

interface StartOptions extends PlatformOptions, WaitOptions {
  readonly service?: string;
  readonly plan?: string;
  readonly ofSpace?: string;
  readonly window?: Window;
  readonly atOnce?: number;
  readonly stopAt?: number;
}

function registerStart(campaigns: Command, surroundings: Surroundings): void {
  const command = campaigns
    .command("start")
    .summary("upgrade all instances that lag behind")
    .description(
      "Upgrades all instances of a broker that lag behind their plan's maintenance version, and waits until that is over. Those that are up to date are left alone.",
    )
    .argument("<broker>", "whose instances")
    .option("--service <name>", "only of this service")
    .option("--plan <name>", "only of this plan of the service")
    .option("--of-space <name>", "only of this space")
    .option("--window <from-until>", "only at these hours of the day (UTC), such as 22:00-04:00", parseWindow)
    .option("--at-once <number>", "so many upgrades under way at a time (default 5, at most 100)", parseAtOnce)
    .option("--stop-at <percent>", "stop when more than so many percent failed (default 20)", parsePercent)
    .action((broker: string, options: StartOptions) =>
      runPlatformCommand(options, surroundings, "start the campaign", async (session) => {
        const { window, atOnce, stopAt, ofSpace } = options;
        const ids = await offeredIds(session, { ...options, broker });
        const body = { broker, ...ids, space: ofSpace, window, at_once: atOnce, stop_at_error_rate: stopAt };
        return follow(session, options, await session.ask("startCampaign", {}, { body }));
      }),
    );
  withPlatformOptions(withWaitOptions(command));
  withExamples(command, [
    {
      does: "at night, ten at a time",
      command: "osbert platform campaigns start databases --window 22:00-04:00 --at-once 10 --no-wait",
    },
    {
      does: "one plan, and not one failure",
      command: "osbert platform campaigns start databases --service database --plan small --stop-at 0",
    },
  ]);
}

function registerList(campaigns: Command, surroundings: Surroundings): void {
  const command = campaigns
    .command("list")
    .summary("list campaigns")
    .description("Lists campaigns and how far they are.")
    .action((options: PageOptions) =>
      runPlatformCommand(options, surroundings, "list the campaigns", async (session) => {
        const names = session.json ? new Map<string, string>() : await offeredNames(session);
        return printPage(
          session,
          (query) => session.ask("campaigns", {}, { query }),
          options,
          ["ID", "OF", "STATE", "BY", "STARTED", "PROGRESS"],
          (one) => [one.id, scopeOf(one, names), one.state, one.by, one.started_at, progressOf(one)],
          "there are none",
        );
      }),
    );
  withPageOptions(command);
  withExamples(command, [{ does: "is one under way?", command: "osbert platform campaigns list" }]);
}

function registerShow(campaigns: Command, surroundings: Surroundings): void {
  const command = campaigns
    .command("show")
    .summary("show how far a campaign is")
    .description("Shows a campaign: what it is about, how far it is, and why it has stopped.")
    .argument("<campaign>", theCampaign)
    .action((beginning: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, "show the campaign", async (session) => {
        const campaign = await session.ask("campaign", { campaign: await campaignId(session, beginning) });
        const text = session.json ? `${plainJson(campaign)}\n` : campaignText(campaign, await offeredNames(session));
        surroundings.stdout.write(text);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "how far is it?", command: "osbert platform campaigns show 0f3c2a" }]);
}

function registerTargets(campaigns: Command, surroundings: Surroundings): void {
  const command = campaigns
    .command("targets")
    .summary("list the instances of a campaign")
    .description("Lists the instances of a campaign that are in one state, with what went wrong.")
    .argument("<campaign>", theCampaign)
    .addOption(new Option("--state <state>", "which ones").choices([...targetStates]).default("failed"))
    .action((beginning: string, options: PageOptions & { readonly state: string }) =>
      runPlatformCommand(options, surroundings, "list the instances", async (session) => {
        const campaign = await campaignId(session, beginning);
        return printPage(
          session,
          (page) => session.ask("campaignTargets", { campaign }, { query: { ...page, state: options.state } }),
          options,
          ["SPACE", "INSTANCE", "STATE", "TRIES", "OPERATION", ""],
          (one) => [one.space, one.instance, one.state, String(one.tries), one.operation ?? "-", one.message ?? ""],
          `none is ${options.state}`,
        );
      }),
    );
  withPageOptions(command);
  withExamples(command, [{ does: "what went wrong?", command: "osbert platform campaigns targets 0f3c2a" }]);
}

function registerCancel(campaigns: Command, surroundings: Surroundings): void {
  const command = campaigns
    .command("cancel")
    .summary("end a campaign")
    .description("Ends a campaign: what has not begun never does. What is at a broker runs to its end.")
    .argument("<campaign>", theCampaign)
    .action((beginning: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, "cancel the campaign", async (session) => {
        const id = await campaignId(session, beginning);
        const campaign = await session.ask("cancelCampaign", { campaign: id }, { body: {} });
        const line = `${id} is cancelled: ${progressOf(campaign)}`;
        surroundings.stdout.write(`${session.json ? plainJson(campaign) : plainText(line)}\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "no further", command: "osbert platform campaigns cancel 0f3c2a" }]);
}

function registerRetry(campaigns: Command, surroundings: Surroundings): void {
  const command = campaigns
    .command("retry")
    .summary("try those that failed once more")
    .description(
      "Upgrades once more those whose upgrade failed, and waits until that is over. It also goes on with a campaign that stopped.",
    )
    .argument("<campaign>", theCampaign)
    .action((beginning: string, options: PlatformOptions & WaitOptions) =>
      runPlatformCommand(options, surroundings, "retry the campaign", async (session) => {
        const campaign = await campaignId(session, beginning);
        return follow(session, options, await session.ask("retryCampaign", { campaign }, { body: {} }));
      }),
    );
  withPlatformOptions(withWaitOptions(command));
  withExamples(command, [{ does: "the broker is mended", command: "osbert platform campaigns retry 0f3c2a" }]);
}

/** Waits until nothing of it is under way any more, and tells what came of it. One that stopped, or in which something failed, has failed. */
async function follow(session: PlatformSession, options: WaitOptions, begun: Campaign): Promise<ExitStatus> {
  const { stdout, stderr } = session.surroundings;
  const { id } = begun;
  let last = begun;
  const waited = options.wait
    ? await waitWithProgress(session, `campaign ${id}`, options.timeout, async () => {
        last = await session.ask("campaign", { campaign: id });
        return isOver(last) ? { kind: "ended", end: last } : { kind: "open", news: progressOf(last) };
      })
    : ({ kind: "not waited" } as const);
  if (session.json) stdout.write(`${plainJson(last)}\n`);
  if (waited.kind !== "ended") {
    const why = { "not waited": "it has begun", interrupted: "no longer waiting", "timed out": "the time is up" };
    stderr.write(`${why[waited.kind]}; it goes on. To look at it: osbert platform campaigns show ${id}\n`);
    if (!session.json && !options.wait) stdout.write(`${id}\n`);
    return options.wait ? exitStatuses.inProgress.status : exitStatuses.succeeded.status;
  }
  const { state, message, counts } = last;
  if (!session.json) stdout.write(`${plainText(`campaign ${id} is ${state}: ${progressOf(last)}`)}\n`);
  if (state === "finished" && counts.failed === 0) return exitStatuses.succeeded.status;
  const why = message ?? `${counts.failed} upgrades failed`;
  const next = state === "cancelled" ? "" : `; osbert platform campaigns targets ${id} lists them, retry tries again`;
  stderr.write(`error: ${plainText(why + next)}\n`);
  return exitStatuses.failed.status;
}

function isOver({ state, counts, ended_at }: Campaign): boolean {
  if (state === "finished") return true;
  return state === "stopped" ? counts.running === 0 : state === "cancelled" && ended_at !== null;
}

async function campaignId(session: PlatformSession, beginning: string): Promise<string> {
  if (/^[0-9a-f-]{36}$/.test(beginning)) return beginning;
  const ids: string[] = [];
  let after: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const { items, next } = await session.ask("campaigns", {}, { query: { limit: "500", after } });
    ids.push(...items.map(({ id }) => id));
    if (next === null) break;
    after = next;
  }
  return uniqueId(ids, beginning, "campaign");
}

const mostPages = 20;

function campaignText(campaign: Campaign, names: ReadonlyMap<string, string>): string {
  const { window, at_once, stop_at_error_rate, ended_at } = campaign;
  return facts({
    campaign: campaign.id,
    of: scopeOf(campaign, names),
    state: campaign.state,
    progress: progressOf(campaign),
    "": campaign.message ?? "",
    "started by": `${campaign.by}, ${campaign.started_at}`,
    ended: ended_at ?? "",
    window: window === null ? "" : `${clock(window.from_minute)}-${clock(window.until_minute)} UTC`,
    bounds: `${at_once} at a time, stops when more than ${Math.round(stop_at_error_rate * 100)} % fail`,
  });
}

function scopeOf({ broker, offering, plan, space }: Campaign, names: ReadonlyMap<string, string>): string {
  const parts = [
    `broker ${broker}`,
    offering && `service ${names.get(offering) ?? offering}`,
    plan && `plan ${names.get(plan) ?? plan}`,
    space && `space ${space}`,
  ];
  return parts.filter(Boolean).join(", ");
}

function progressOf({ state, counts }: Campaign): string {
  const { pending, running, succeeded, failed, skipped, dropped } = counts;
  const all = pending + running + succeeded + failed + skipped + dropped;
  if (state === "collecting") return `looks for instances, ${all} so far`;
  const parts = [
    `${succeeded} of ${all} upgraded`,
    running > 0 && `${running} under way`,
    pending > 0 && `${pending} to come`,
    failed > 0 && `${failed} failed`,
    skipped > 0 && `${skipped} had nothing to do`,
    dropped > 0 && `${dropped} dropped`,
  ];
  return parts.filter(Boolean).join(", ");
}

interface Window {
  readonly from_minute: number;
  readonly until_minute: number;
}

function parseWindow(text: string): Window {
  const [, ...parts] = /^([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  const [fromHour = 0, fromMinute = 0, untilHour = 0, untilMinute = 0] = parts.map(Number);
  const window = { from_minute: fromHour * 60 + fromMinute, until_minute: untilHour * 60 + untilMinute };
  if (parts.length === 0 || window.from_minute === window.until_minute)
    throw new InvalidArgumentError("It must be two times of the day, such as 22:00-04:00.");
  return window;
}

function clock(minute: number): string {
  return [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, "0")).join(":");
}

function parseAtOnce(text: string): number {
  if (!/^[0-9]{1,3}$/.test(text) || Number(text) < 1 || Number(text) > 100)
    throw new InvalidArgumentError("It must be a whole number from 1 to 100.");
  return Number(text);
}

/** As a part of one, which is what the API takes. */
function parsePercent(text: string): number {
  if (!/^[0-9]{1,3}%?$/.test(text) || Number.parseInt(text, 10) > 100)
    throw new InvalidArgumentError("It must be a number of percent, from 0 to 100.");
  return Number.parseInt(text, 10) / 100;
}
