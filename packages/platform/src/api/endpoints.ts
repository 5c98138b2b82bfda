import type { Page } from "@osbert/journal";
import { type Answer, readPaging } from "@osbert/server";
import type { Shaped } from "@osbert/server/client";
import { PlatformError } from "../errors.js";
import type { Admitted, Asking, CreateInstance, InstanceView, RegisterBroker } from "../platform.js";
import { targetStates } from "../records/campaign-record.js";
import { deleteModes, type InstancePolicy, phases } from "../records/instance-record.js";
import { checkAccess, hasRole, spacesOf } from "./access.js";
import { type ApiRequest, askingOf, choiceIn, flagIn, invalid, refOf, seqIn, textIn } from "./api-request.js";
import type { apiDescriptions } from "./descriptions.js";
import { findOffering, marketplace, type Offers, offeredIn } from "./marketplace.js";
import { memberText } from "./member-text.js";
import { openApiDocument } from "./open-api.js";
import type { ApiRouteName } from "./routes.js";
import { bodyOf } from "./views.js";
import { jsonText, writeJson } from "./write-json.js";

type Endpoint = (request: ApiRequest) => Answer | Promise<Answer>;

/** What each route does. Who may ask, and the form of the body, were looked at before. */
export const endpoints: Readonly<Record<ApiRouteName, Endpoint>> = {
  openApi: () => ok(openApiDocument()),
  me({ caller: { name, access } }) {
    const spaces = spacesOf(access);
    return ok({ name, role: access.role, spaces: spaces === "all" ? null : spaces });
  },

  offerings: (request) =>
    ok(
      marketplace(offeredTo(request), {
        ...readPaging(request.query),
        ...textsIn(request.query, "broker", "name"),
      }),
    ),
  offering: (request) =>
    ok(bodyOf.offering(findOffering(offeredTo(request), request.matched.offering, textIn(request.query, "broker")))),

  brokers: async ({ platform }) => ok({ items: (await platform.brokers.list()).map(bodyOf.broker), next: null }),
  broker: async ({ platform, matched }) =>
    ok(bodyOf.broker(found(await platform.brokers.read(matched.broker), "there is no such broker"))),
  async registerBroker(request) {
    const { url, authentication, ...rest } = bodyAs(request, "registerBroker");
    const wanted = { url, authentication: authenticationOf(authentication), ...brokerOptionsOf(rest) };
    const view = await request.platform.brokers.register(request.matched.broker, wanted, askingOf(request));
    return { status: 201, body: writeJson(bodyOf.broker(view)) };
  },
  async changeBroker(request) {
    const { url, authentication, ...rest } = bodyAs(request, "changeBroker");
    const wanted = {
      ...(url !== undefined && { url }),
      ...(authentication !== undefined && { authentication: authenticationOf(authentication) }),
      ...brokerOptionsOf(rest),
    };
    return ok(bodyOf.broker(await request.platform.brokers.change(request.matched.broker, wanted, askingOf(request))));
  },
  async removeBroker(request) {
    const options = { force: flagIn(request.query, "force") };
    await request.platform.brokers.remove(request.matched.broker, options, askingOf(request));
    return ok({});
  },
  relistBroker: async (request) =>
    ok(bodyOf.broker(await request.platform.brokers.relist(request.matched.broker, askingOf(request)))),

  allInstances: (request) => instances(request, {}),
  instances: (request) => instances(request, { space: request.matched.space }),
  async instance(request) {
    const view = await readInstance(request);
    const etag = tagOf(view);
    const isKnown = request.header("if-none-match")?.trim() === etag;
    if (isKnown && view.queue.length === 0) return { status: 304, body: "", headers: { etag } };
    return changed(view);
  },
  async createInstance(request) {
    const wanted = wantedInstance(request, bodyAs(request, "createInstance"));
    return admitted(await request.platform.instances.create(refOf(request), wanted, askingOf(request)));
  },
  async updateInstance(request) {
    const { plan, after } = bodyAs(request, "updateInstance");
    const wanted = {
      ...(plan !== undefined && { plan }),
      ...parametersIn(request),
      ...(after !== undefined && { after }),
    };
    return admitted(await request.platform.instances.update(refOf(request), wanted, askingOf(request)));
  },
  async deleteInstance(request) {
    const { query, caller } = request;
    const mode = choiceIn(query, "mode", deleteModes);
    const { after, reason } = textsIn(query, "after", "reason");
    if (mode === "abandon" && !hasRole(caller.access, "operate"))
      throw new PlatformError("forbidden", "to abandon an instance needs the role operate");
    if (mode === "abandon" && reason === undefined) throw invalid("to abandon an instance needs a reason");
    if ((mode === "after") !== (after !== undefined)) throw invalid("mode=after and after=OPERATION need each other");
    const wanted = {
      ...(mode !== undefined && { mode }),
      ...(after !== undefined && { after }),
      ...(reason !== undefined && { reason }),
      cascade: flagIn(query, "cascade"),
      now: flagIn(query, "now"),
    };
    return admitted(await request.platform.instances.delete(refOf(request), wanted, askingOf(request)));
  },
  refreshInstance: async (request) =>
    admitted(await request.platform.instances.refresh(refOf(request), askingOf(request))),
  async upgradeInstance(request) {
    const { version } = bodyAs(request, "upgradeInstance");
    return admitted(await request.platform.instances.upgrade(refOf(request), version, askingOf(request)));
  },
  async adoptInstance(request) {
    const body = bodyAs(request, "adoptInstance");
    const wanted = { ...wantedInstance(request, body), osbId: body.osb_id };
    return admitted(await request.platform.instances.adopt(refOf(request), wanted, askingOf(request)));
  },
  restoreInstance: async (request) =>
    changed(await request.platform.instances.restore(refOf(request), askingOf(request))),
  async lockInstance(request) {
    const { reason, ...rest } = bodyAs(request, "lockInstance");
    const lock = { reason: reasonOf(reason), ...lockOptionsOf(rest) };
    return changed(await request.platform.instances.lock(refOf(request), lock, askingOf(request)));
  },
  async unlockInstance(request) {
    const { caller, platform } = request;
    const { lock, revision } = await readInstance(request);
    if (lock !== null && lock.by !== caller.name && !hasRole(caller.access, "operate"))
      throw new PlatformError("forbidden", `it was locked by ${lock.by}; an operator can unlock it, too`);
    // Another lock that comes in between is not lifted: it was not looked at.
    const asking: Asking = { ifMatch: revision, ...askingOf(request) };
    return changed(await platform.instances.unlock(refOf(request), asking));
  },
  async setPolicy(request) {
    const policy = policyOf(bodyAs(request, "setPolicy"));
    return changed(await request.platform.instances.setPolicy(refOf(request), policy, askingOf(request)));
  },

  queue: async (request) => ok({ items: (await readInstance(request)).queue.map(bodyOf.queued), next: null }),
  async queued(request) {
    const { operation } = request.matched;
    const { queue } = await readInstance(request);
    const intent = found(
      queue.find((each) => each.operation === operation),
      "it is not in the queue",
    );
    const after = await request.platform.instances.after(refOf(request), operation);
    return ok({ intent: bodyOf.queued(intent), after: after && bodyOf.state(after) });
  },
  async operation(request) {
    const view = await request.platform.instances.operation(refOf(request), request.matched.operation);
    return ok(bodyOf.operation(found(view, "there is no such operation, or nobody remembers it")));
  },
  cancel: async (request) =>
    changed(await request.platform.instances.cancel(refOf(request), request.matched.operation, askingOf(request))),
  retry: async (request) =>
    admitted(await request.platform.instances.retry(refOf(request), request.matched.operation, askingOf(request))),
  async hold(request) {
    const reason = reasonOf(bodyAs(request, "hold").reason);
    const { operation } = request.matched;
    return changed(await request.platform.instances.hold(refOf(request), operation, reason, askingOf(request)));
  },
  release: async (request) =>
    changed(await request.platform.instances.release(refOf(request), request.matched.operation, askingOf(request))),
  async journal(request) {
    const { platform, streams, query, header } = request;
    const { after, limit = usualLines } = readPaging(query);
    const wantsEvents = (header("accept") ?? "").split(",").some((type) => type.trim().startsWith("text/event-stream"));
    await readInstance(request);
    if (wantsEvents) {
      const last = seqIn(header("last-event-id")?.trim() || after, "Last-Event-ID") ?? 0;
      return streams.follow(platform.instances, refOf(request), last, request.caller.name);
    }
    const [from, to] = [seqIn(after, "after"), seqIn(textIn(query, "before"), "before")];
    const lines = await platform.instances.journal(refOf(request), {
      ...(from !== undefined && { after: from }),
      ...(to !== undefined && { before: to }),
      limit,
    });
    const isLast = to !== undefined || lines.length < limit;
    return ok({ items: lines.map(bodyOf.line), next: isLast ? null : String(lines.at(-1)?.seq) });
  },

  bindings: async (request) => ok({ items: (await readInstance(request)).bindings.map(bodyOf.binding), next: null }),
  async bind(request) {
    const { app_guid } = bodyAs(request, "bind");
    const wanted = {
      name: request.matched.binding,
      ...parametersIn(request),
      ...(app_guid !== undefined && { appGuid: app_guid }),
    };
    return admitted(await request.platform.instances.bind(refOf(request), wanted, askingOf(request)));
  },
  async binding(request) {
    const { bindings } = await readInstance(request);
    const binding = bindings.find(({ name }) => name === request.matched.binding);
    return ok(bodyOf.binding(found(binding, "there is no such binding")));
  },
  unbind: async (request) =>
    admitted(await request.platform.instances.unbind(refOf(request), request.matched.binding, askingOf(request))),
  async credentials(request) {
    const text = await request.platform.instances.credentials(refOf(request), request.matched.binding);
    return { ...ok(jsonText(text)), headers: { "cache-control": "no-store" } };
  },
  async rotate(request) {
    const { successor } = bodyAs(request, "rotate");
    const { binding } = request.matched;
    return admitted(await request.platform.instances.rotate(refOf(request), binding, successor, askingOf(request)));
  },

  async orphans({ platform, query }) {
    const state = choiceIn(query, "state", ["open", "held", "mitigated", "dismissed", "abandoned"]);
    const filter = { ...textsIn(query, "broker", "space"), ...(state !== undefined && { state }) };
    return pageOf(platform.orphans.list({ ...readPaging(query), ...filter }), bodyOf.orphan);
  },
  mitigateOrphan: async (request) =>
    ok(bodyOf.orphan(await request.platform.orphans.mitigate(request.matched.orphan, askingOf(request)))),
  async dismissOrphan(request) {
    const reason = reasonOf(bodyAs(request, "dismissOrphan").reason);
    return ok(bodyOf.orphan(await request.platform.orphans.dismiss(request.matched.orphan, reason, askingOf(request))));
  },

  allRotations: ({ platform, query }) => pageOf(platform.rotations.due(readPaging(query)), bodyOf.rotation),
  rotations: ({ platform, query, matched: { space } }) =>
    pageOf(platform.rotations.due({ space, ...readPaging(query) }), bodyOf.rotation),

  campaigns: ({ platform, query }) => pageOf(platform.campaigns.list(readPaging(query)), bodyOf.campaign),
  async startCampaign(request) {
    const { broker, offering, plan, space, window, at_once, stop_at_error_rate } = bodyAs(request, "startCampaign");
    const wanted = {
      broker,
      ...(offering !== undefined && { offering }),
      ...(plan !== undefined && { plan }),
      ...(space !== undefined && { space }),
      ...(window !== undefined && { window: { fromMinute: window.from_minute, untilMinute: window.until_minute } }),
      ...(at_once !== undefined && { atOnce: at_once }),
      ...(stop_at_error_rate !== undefined && { stopAtErrorRate: stop_at_error_rate }),
    };
    const view = await request.platform.campaigns.start(wanted, askingOf(request));
    return { status: 201, body: writeJson(bodyOf.campaign(view)) };
  },
  campaign: async ({ platform, matched }) =>
    ok(bodyOf.campaign(found(await platform.campaigns.read(matched.campaign), "there is no such campaign"))),
  campaignTargets({ platform, query, matched }) {
    const state = choiceIn(query, "state", targetStates);
    if (state === undefined) throw invalid(`state must be one of ${targetStates.join(", ")}`);
    return pageOf(platform.campaigns.targets(matched.campaign, { state, ...readPaging(query) }), bodyOf.target);
  },
  cancelCampaign: async (request) =>
    ok(bodyOf.campaign(await request.platform.campaigns.cancel(request.matched.campaign, askingOf(request)))),
  retryCampaign: async (request) =>
    ok(bodyOf.campaign(await request.platform.campaigns.retry(request.matched.campaign, askingOf(request)))),

  freezes: ({ platform }) => ok({ items: platform.freezes.list().map(bodyOf.freeze), next: null }),
  async freeze(request) {
    const { reason, space, broker, plan, ...rest } = bodyAs(request, "freeze");
    const wanted = {
      ...(space !== undefined && { space }),
      ...(broker !== undefined && { broker }),
      ...(plan !== undefined && { plan }),
      reason: reasonOf(reason),
      ...lockOptionsOf(rest),
    };
    return {
      status: 201,
      body: writeJson(bodyOf.freeze(await request.platform.freezes.freeze(wanted, askingOf(request)))),
    };
  },
  async thaw(request) {
    await request.platform.freezes.thaw(request.matched.freeze, askingOf(request));
    return ok({});
  },

  quotas: ({ platform }) => ok({ items: platform.quotas.list().map(bodyOf.quota), next: null }),
  async setQuota(request) {
    const asked = bodyAs(request, "setQuota");
    const { counts = "instances", limit, space = null, broker = null, offering = null, plan = null } = asked;
    const wanted = { counts, limit, space, broker, offering, plan };
    return ok(bodyOf.quota(await request.platform.quotas.set(request.matched.quota, wanted, askingOf(request))));
  },
  async removeQuota(request) {
    await request.platform.quotas.remove(request.matched.quota, askingOf(request));
    return ok({});
  },
  quotasOfSpace: async ({ platform, matched: { space } }) =>
    ok({ items: (await platform.quotas.usage(space)).map(bodyOf.quotaUsage), next: null }),

  visibilities: ({ platform }) => ok({ items: platform.visibilities.list().map(bodyOf.visibility), next: null }),
  async setVisibility(request) {
    const { plan = null, ...rest } = bodyAs(request, "setVisibility");
    const wanted = { ...rest, plan };
    const { visibility } = request.matched;
    return ok(bodyOf.visibility(await request.platform.visibilities.set(visibility, wanted, askingOf(request))));
  },
  async removeVisibility(request) {
    await request.platform.visibilities.remove(request.matched.visibility, askingOf(request));
    return ok({});
  },
};

/** What is offered in the space that is asked about, or in any of the caller's. */
function offeredTo({ platform, caller, query }: ApiRequest): Offers {
  const space = textIn(query, "space");
  if (space !== undefined) checkAccess(caller, "see", space);
  return offeredIn(platform, space === undefined ? spacesOf(caller.access) : [space]);
}

const usualLines = 100;
const longestReason = 1_000;

function ok(body: object): Answer {
  return { status: 200, body: writeJson(body) };
}

async function pageOf<Item>(pending: Promise<Page<Item>>, body: (item: Item) => object): Promise<Answer> {
  const { items, next } = await pending;
  return ok({ items: items.map(body), next });
}

/** An instance, with its entity tag. */
function changed(view: InstanceView): Answer {
  return { ...ok(bodyOf.instance(view)), headers: { etag: tagOf(view) } };
}

/** 202: it is kept, and not done yet. */
function admitted(outcome: Admitted): Answer {
  const body = writeJson(bodyOf.admitted(outcome));
  if (outcome.kind === "dry run") return { status: 200, body };
  const { instance } = outcome;
  const headers = { etag: tagOf(instance) };
  if (outcome.kind === "unchanged") return { status: 200, body, headers };
  const location = `/api/v1/spaces/${encodeURIComponent(instance.space)}/instances/${encodeURIComponent(instance.name)}`;
  return { status: 202, body, headers: { ...headers, location } };
}

/** What is open moves on without a new revision: such an answer is never the one that is told of the same revision later. */
function tagOf({ revision, queue }: InstanceView): string {
  return queue.length === 0 ? `"${revision}"` : `"${revision}-open"`;
}

async function readInstance(request: ApiRequest): Promise<InstanceView> {
  return found(await request.platform.instances.read(refOf(request)), "there is no such instance");
}

async function instances({ platform, query }: ApiRequest, where: { readonly space?: string }): Promise<Answer> {
  const phase = choiceIn(query, "phase", phases);
  const filter = { ...where, ...textsIn(query, "broker"), ...(phase !== undefined && { phase }) };
  return pageOf(platform.instances.list({ ...readPaging(query), ...filter }), bodyOf.summary);
}

function found<T>(value: T | undefined, otherwise: string): T {
  if (value === undefined) throw new PlatformError("not-found", otherwise);
  return value;
}

type BodyName = {
  [Name in ApiRouteName]: (typeof apiDescriptions)[Name] extends { readonly body: unknown } ? Name : never;
}[ApiRouteName];

/** The body with its type: it was looked at when it was read. */
function bodyAs<Name extends BodyName>({ body }: ApiRequest, _: Name): Shaped<(typeof apiDescriptions)[Name]["body"]> {
  return body.value as never;
}

/** As they were written. */
function parametersIn({ body }: ApiRequest): { readonly parameters?: string } {
  const text = memberText(body.text, "parameters");
  return text === undefined ? {} : { parameters: text };
}

function wantedInstance(
  request: ApiRequest,
  { broker, offering, plan, policy }: Shaped<(typeof apiDescriptions)["createInstance"]["body"]>,
): CreateInstance {
  return {
    offering,
    plan,
    ...(broker !== undefined && { broker }),
    ...parametersIn(request),
    ...(policy !== undefined && { policy: policyOf(policy) }),
  };
}

function policyOf(policy: Shaped<(typeof apiDescriptions)["setPolicy"]["body"]>): Partial<InstancePolicy> {
  const { on_failure, concurrency, orphans } = policy;
  return {
    ...(on_failure !== undefined && { onFailure: on_failure }),
    ...(concurrency !== undefined && { concurrency }),
    ...(orphans !== undefined && { orphans }),
  };
}

type WantedBroker = Shaped<(typeof apiDescriptions)["registerBroker"]["body"]>;

/** What one way needs and another does not have, in the words of the request. */
function authenticationOf(given: WantedBroker["authentication"]): RegisterBroker["authentication"] {
  const { kind, username, password, token } = given;
  switch (kind) {
    case "none":
      return { kind };
    case "basic":
      if (username === undefined || password === undefined)
        throw invalid("authentication of the kind basic needs username and password");
      return { kind, username, password };
    case "bearer":
      if (token === undefined) throw invalid("authentication of the kind bearer needs a token");
      return { kind, token };
  }
}

function brokerOptionsOf(
  given: Omit<WantedBroker, "url" | "authentication">,
): Omit<RegisterBroker, "url" | "authentication"> {
  const { ca, client_certificate, limits, quirks, relist_ms } = given;
  return {
    ...(ca !== undefined && { ca }),
    ...(client_certificate !== undefined && { clientCertificate: client_certificate }),
    ...(limits !== undefined && {
      limits: {
        ...(limits.in_flight !== undefined && { inFlight: limits.in_flight }),
        ...(limits.timeout_ms !== undefined && { timeoutMs: limits.timeout_ms }),
      },
    }),
    ...(quirks?.not_found_means_gone !== undefined && {
      quirks: { notFoundMeansGone: quirks.not_found_means_gone },
    }),
    ...(relist_ms !== undefined && { relistMs: relist_ms }),
  };
}

function textsIn<const Name extends string>(
  query: URLSearchParams,
  ...names: readonly Name[]
): { readonly [Each in Name]?: string } {
  const given = names.map((name) => [name, textIn(query, name)] as const);
  return Object.fromEntries(given.filter(([, text]) => text !== undefined)) as { readonly [Each in Name]?: string };
}

function lockOptionsOf({
  effect,
  deletes_exempt,
  until,
}: Omit<Shaped<(typeof apiDescriptions)["lockInstance"]["body"]>, "reason">) {
  return {
    ...(effect !== undefined && { effect }),
    ...(deletes_exempt !== undefined && { deletesExempt: deletes_exempt }),
    ...(until !== undefined && { until: timeIn(until, "until") }),
  };
}

function reasonOf(text: string): string {
  const reason = text.trim();
  if (reason === "" || reason.length > longestReason)
    throw invalid(`reason must be a text of 1 to ${longestReason} characters: why this is done`);
  return reason;
}

function timeIn(text: string, name: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw invalid(`${name} must be a time such as 2030-01-31T12:00:00Z`);
  return ms;
}
