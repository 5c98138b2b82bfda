import {
  anyObject,
  boolean,
  choice,
  described,
  list,
  nullable,
  number,
  object,
  optional,
  page,
  type RouteDescription,
  type Shape,
  text,
} from "@osbert/server/client";
import { deleteModes } from "../records/instance-record.js";
import { type Role, roles } from "./access.js";
import {
  admitted,
  binding,
  broker,
  campaign,
  campaignTarget,
  dayWindow,
  freeze,
  instance,
  instanceSummary,
  journalLine,
  offering,
  offeringSummary,
  operation,
  orphan,
  queuedIntent,
  quota,
  quotaUsage,
  rotation,
  state,
  time,
  visibility,
} from "./answer-shapes.js";
import type { ApiRouteName } from "./routes.js";

const parameters = described(
  optional(anyObject),
  "Sent to the broker as they are written here. Numbers beyond 2^53 stay whole.",
);
const partOfPolicy = object({
  on_failure: optional(choice(["auto", "halt", "continue"])),
  concurrency: optional(choice(["queue", "reject", "replace"])),
  orphans: optional(choice(["mitigate", "confirm", "hold"])),
});
const wantedInstance = {
  broker: described(optional(text), "Needed where several brokers offer it."),
  offering: described(text, "Its name or id."),
  plan: described(text, "Its name or id."),
  parameters,
  policy: optional(partOfPolicy),
} as const;

const authentication = object({
  kind: choice(["none", "basic", "bearer"]),
  username: described(optional(text), "Of basic."),
  password: described(optional(text), "Of basic."),
  token: described(optional(text), "Of bearer."),
});
const wantedBroker = {
  ca: described(optional(text), "PEM of who must have signed the broker's certificate."),
  client_certificate: described(optional(object({ certificate: text, key: text })), "PEM, for mutual TLS."),
  limits: optional(object({ in_flight: optional(number), timeout_ms: optional(number) })),
  quirks: optional(object({ not_found_means_gone: optional(boolean) })),
  relist_ms: described(optional(number), "How often the catalog is read."),
} as const;

const reason = described(text, "Why, for whoever reads the journal later.");
const wantedHold = {
  effect: optional(choice(["queue", "reject"])),
  deletes_exempt: optional(boolean),
  until: described(optional(time), "When it ends by itself."),
} as const;
const nothing = object({});
const paging = ["limit", "after"] as const;

/** What a route of the API takes, who may ask, and how it answers: one description for the API, its clients and its document. */
export interface ApiRouteDescription extends RouteDescription {
  readonly summary: string;
  readonly role: Role;
  readonly body?: Shape<unknown>;
  /** How a success is answered. Default 200. */
  readonly statuses?: readonly number[];
  /** It is a wanted change: takes If-Match, Idempotency-Key and `dry_run`. */
  readonly intent?: true;
  /** It changes something at once: takes If-Match. */
  readonly control?: true;
  /** It can also be followed with server-sent events, each of them one of these. */
  readonly events?: Shape<unknown>;
}

const intent = { role: "change", answer: admitted, statuses: [200, 202], intent: true } as const;
const control = { role: "change", answer: instance, control: true } as const;

export const apiDescriptions = {
  openApi: { summary: "This document.", role: "see", answer: anyObject },
  me: {
    summary: "Who asks, and what they may do.",
    role: "see",
    answer: object({
      name: text,
      role: choice(roles),
      spaces: described(nullable(list(text)), "null: all."),
    }),
  },

  offerings: {
    summary: "The marketplace: what can be had in a space, or in any of the caller's, and in which plans.",
    role: "see",
    query: ["space", "broker", "name", ...paging],
    answer: page(offeringSummary),
  },
  offering: {
    summary: "One offering by its name or id, with the schemas of its plans.",
    role: "see",
    query: ["space", "broker"],
    answer: offering,
  },

  brokers: { summary: "All registered brokers.", role: "operate", answer: page(broker) },
  broker: { summary: "One broker, with its health.", role: "operate", answer: broker },
  registerBroker: {
    summary: "Registers a broker. Answers when its catalog was read, or could not be.",
    role: "operate",
    body: object({ url: text, authentication, ...wantedBroker }),
    answer: broker,
    statuses: [201],
  },
  changeBroker: {
    summary: "Changes address, credentials or limits. Operations under way go on with them; what is not said stays.",
    role: "operate",
    body: object({ url: optional(text), authentication: optional(authentication), ...wantedBroker }),
    answer: broker,
  },
  removeBroker: {
    summary:
      "Removes a broker. Refused while it has instances, or the ledger of orphans has rows of it, unless forced: then they stay, as unmanaged and in the ledger.",
    role: "operate",
    query: ["force"],
    answer: nothing,
  },
  relistBroker: { summary: "Reads its catalog now.", role: "operate", body: nothing, answer: broker },

  allInstances: {
    summary: "Instances of all spaces.",
    role: "operate",
    query: ["broker", "phase", ...paging],
    answer: page(instanceSummary),
  },
  instances: {
    summary: "Instances of a space.",
    role: "see",
    query: ["broker", "phase", ...paging],
    answer: page(instanceSummary),
  },
  createInstance: { ...intent, summary: "Wants an instance.", query: ["dry_run"], body: object(wantedInstance) },
  instance: {
    summary: "Everything about an instance: what it is, what is under way, what it will be.",
    role: "see",
    answer: instance,
  },
  updateInstance: {
    ...intent,
    summary: "Wants another plan, or other parameters. What is not said stays.",
    query: ["dry_run"],
    body: object({
      plan: described(optional(text), "Its name or id."),
      parameters,
      after: described(optional(list(text)), "Operations that must have succeeded before it."),
    }),
  },
  deleteInstance: {
    ...intent,
    summary: `Wants it gone. mode is one of ${deleteModes.join(", ")}; abandon needs the role operate and a reason.`,
    query: ["mode", "after", "cascade", "now", "reason", "dry_run"],
  },
  refreshInstance: { ...intent, summary: "Sends its parameters again.", query: ["dry_run"], body: nothing },
  upgradeInstance: {
    ...intent,
    summary: "Wants its plan's new maintenance version.",
    query: ["dry_run"],
    body: object({ version: optional(text) }),
  },
  adoptInstance: {
    ...intent,
    role: "operate",
    summary: "Takes over what a broker has already, by its id there.",
    query: ["dry_run"],
    body: object({ ...wantedInstance, osb_id: text }),
  },
  restoreInstance: { ...control, summary: "Undoes a delete that was not sent, or was refused.", body: nothing },
  lockInstance: {
    ...control,
    summary: "Locks it: changes wait, or are refused.",
    body: object({
      reason,
      ...wantedHold,
    }),
  },
  unlockInstance: {
    ...control,
    summary: "Unlocks it. Another one's lock is lifted by an operator.",
    body: nothing,
  },
  setPolicy: { ...control, summary: "Changes its policies.", body: partOfPolicy },

  queue: { summary: "What is wanted of it, in order.", role: "see", answer: page(queuedIntent) },
  queued: {
    summary: "One of them, and what the instance will be after it.",
    role: "see",
    answer: object({ intent: queuedIntent, after: nullable(state) }),
  },
  operation: {
    summary:
      "What became of one wanted change, also of an instance that is gone; of one that is open, where it is in the queue.",
    role: "see",
    answer: operation,
  },
  cancel: { ...control, summary: "Cancels what is queued, or asks what runs to stop.", body: nothing },
  retry: { ...intent, summary: "Wants once more what failed.", query: ["dry_run"], body: nothing },
  hold: { ...control, summary: "Holds back what is queued.", body: object({ reason }) },
  release: { ...control, summary: "Lets go on what is held.", body: nothing },
  journal: {
    summary:
      "What was asked, sent, answered and decided. With Accept: text/event-stream, each line as it comes, from Last-Event-ID on.",
    role: "see",
    query: ["before", ...paging],
    answer: page(journalLine),
    events: journalLine,
  },

  bindings: { summary: "Its bindings, without credentials.", role: "see", answer: page(binding) },
  bind: {
    ...intent,
    summary: "Wants a binding.",
    query: ["dry_run"],
    body: object({ parameters, app_guid: optional(text) }),
  },
  binding: { summary: "One binding, without credentials.", role: "see", answer: binding },
  unbind: { ...intent, summary: "Wants a binding gone.", query: ["dry_run"] },
  credentials: {
    summary: "What its broker answered to the bind: credentials, drains, mounts, endpoints. Needs the role change.",
    role: "change",
    answer: anyObject,
  },
  rotate: {
    ...intent,
    summary: "Wants a successor of a binding. The old one stays for the overlap, and is then unbound.",
    query: ["dry_run"],
    body: object({ successor: described(optional(text), "Its name.") }),
  },

  orphans: {
    summary: "What may exist at brokers although nobody has it.",
    role: "operate",
    query: ["broker", "space", "state", ...paging],
    answer: page(orphan),
  },
  mitigateOrphan: { summary: "Deletes it at the broker now.", role: "operate", body: nothing, answer: orphan },
  dismissOrphan: {
    summary: "Lets it be, for a reason.",
    role: "operate",
    body: object({ reason }),
    answer: orphan,
  },

  allRotations: {
    summary: "Bindings of all spaces that are to be renewed, soonest first.",
    role: "operate",
    query: paging,
    answer: page(rotation),
  },
  rotations: {
    summary: "Bindings of a space that are to be renewed, soonest first.",
    role: "see",
    query: paging,
    answer: page(rotation),
  },

  campaigns: { summary: "Upgrades of many instances.", role: "operate", query: paging, answer: page(campaign) },
  startCampaign: {
    summary: "Upgrades many instances to the maintenance version that the catalog has now.",
    role: "operate",
    body: object({
      broker: text,
      offering: described(optional(text), "Its id; missing: all."),
      plan: described(optional(text), "Its id; missing: all."),
      space: optional(text),
      window: optional(dayWindow),
      at_once: described(optional(number), "Upgrades under way at a time."),
      stop_at_error_rate: described(optional(number), "From 0 to 1."),
    }),
    answer: campaign,
    statuses: [201],
  },
  campaign: { summary: "How far it is.", role: "operate", answer: campaign },
  campaignTargets: {
    summary: "Its instances in one state.",
    role: "operate",
    query: ["state", ...paging],
    answer: page(campaignTarget),
  },
  cancelCampaign: { summary: "What has not begun never does.", role: "operate", body: nothing, answer: campaign },
  retryCampaign: {
    summary: "Those that failed once more. It also goes on with one that stopped.",
    role: "operate",
    body: nothing,
    answer: campaign,
  },

  freezes: { summary: "Changes of many instances that are held back.", role: "operate", answer: page(freeze) },
  freeze: {
    summary: "Holds back changes: of a space, a broker, a plan, or of all.",
    role: "operate",
    body: object({
      reason,
      space: optional(text),
      broker: optional(text),
      plan: described(optional(text), "Its id."),
      ...wantedHold,
    }),
    answer: freeze,
    statuses: [201],
  },
  thaw: { summary: "Ends a freeze.", role: "operate", answer: nothing },

  quotas: { summary: "How many instances and bindings spaces may have.", role: "operate", answer: page(quota) },
  setQuota: {
    summary: "Sets a quota by its name. What is there stays, also if there is more of it.",
    role: "operate",
    body: object({
      limit: described(number, "Of one space: what is there, and what is asked for."),
      counts: described(optional(choice(["instances", "bindings"])), "Missing: instances."),
      space: described(optional(text), "Missing: it holds for each space on its own."),
      broker: described(optional(text), "Missing: of any broker."),
      offering: described(optional(text), "Its id; missing: any."),
      plan: described(optional(text), "Its id; missing: any."),
    }),
    answer: quota,
  },
  removeQuota: { summary: "Removes a quota.", role: "operate", answer: nothing },
  quotasOfSpace: {
    summary: "Quotas that hold in a space, and what is used of them.",
    role: "see",
    answer: page(quotaUsage),
  },

  visibilities: { summary: "What is offered in some spaces only.", role: "operate", answer: page(visibility) },
  setVisibility: {
    summary:
      "Offers an offering, or one of its plans, in these spaces only. Instances that are there stay, and can be changed and deleted.",
    role: "operate",
    body: object({
      broker: text,
      offering: described(text, "Its id."),
      plan: described(optional(text), "Its id; missing: all plans that have no rule of their own."),
      spaces: described(list(text), "Empty: nowhere."),
    }),
    answer: visibility,
  },
  removeVisibility: {
    summary: "Removes a visibility: what no rule names is offered everywhere.",
    role: "operate",
    answer: nothing,
  },
} as const satisfies Readonly<Record<ApiRouteName, ApiRouteDescription>>;
