import type { AdminRouteRequest, AdminRoutes, InstanceService } from "@osbert/broker";
import type { Attribution, Page } from "@osbert/journal";
import { BrokerError, type JsonObject } from "@osbert/protocol";
import { type MatchedRoute, type Paging, readPaging, routeTable } from "@osbert/server";
import {
  type AdminDecision,
  confirmContent,
  confirmRemoval,
  type Decider,
  disable,
  drain,
  enable,
  hold,
  release,
  restore,
  withdraw,
} from "../reconcile/admin-decisions.js";
import type { Collection } from "../reconcile/collect.js";
import type { ReadingProgress } from "../reconcile/observation.js";
import { type SpecState, type StoredSource, specState, specStates } from "../reconcile/records.js";
import { isRepositoryName, isTag } from "../sources/names.js";
import type { Ref } from "../sources/source.js";
import { largestPush, type PushPorts, readPush } from "./pushes.js";
import type { ReadView } from "./read-view.js";
import { type ActionName, type BundleRouteName, bundleRoutes, isBundlePath, type ReadName } from "./routes.js";
import {
  type EventView,
  type JobView,
  type PreviewView,
  type RunView,
  type SpecView,
  sourceView,
  specSummary,
  specView,
} from "./views.js";

/** What the routes ask and do. */
export interface BundleAdminPorts {
  /** With what this process knows of their health beyond what is stored. */
  sources(): ReadonlyMap<string, StoredSource>;
  /** How far a reading of it in this process is. `null`: there is none. */
  reading(source: string): (ReadingProgress & { readonly since: number }) | null;
  /** The id of the reading that comes of it. `undefined`: there is no such source. */
  refresh(source: string, by: Attribution): Promise<string | undefined>;
  /** `undefined`: there is no such source, or no reading of it has such an id. */
  readingState(source: string, reading: string): Promise<"waiting" | "running" | "ended" | undefined>;
  decide(
    source: string,
    decision: Decision,
    by: Attribution & { readonly why: string },
  ): Promise<AdminDecision | undefined>;
  /** What a tag is now, asked of the source itself. `undefined`: this process is not configured with such a source. */
  read(source: string, ref: Ref): Promise<ReadView | undefined>;
  /** Newest first. `undefined`: there is no such source. */
  runs(source: string, page: Paging): Promise<Page<RunView> | undefined>;
  run(source: string, number: number): Promise<RunView | undefined>;
  /** Newest first, of a spec or of all. `undefined`: there is no such source. */
  events(source: string, spec: string | null, page: Paging): Promise<Page<EventView> | undefined>;
  collectable(): Promise<ReadonlyMap<string, Collection>>;
  /** What the sources of a file of settings would change. Throws a BrokerError that says what is wrong with it. */
  preview(config: string): Promise<readonly PreviewView[]>;
  dangling(page: Paging): Promise<Page<DanglingInstance>>;
  readonly pushes: PushPorts;
  /** The jobs of an instance, newest first. `undefined`: there is no such instance. */
  jobs(instance: AskedInstance, binding: string | null): Promise<readonly JobView[] | undefined>;
  /** What an action of a bundle has printed for people, without its secrets: from the runner here, or what the journal has kept of it. */
  log(
    job: string,
    instance: AskedInstance | null,
    lastBytes: number,
  ): Promise<{ readonly log: string; readonly from: "runner" | "journal" }>;
}

export interface AskedInstance {
  /** "" for a broker with one. */
  readonly platform: string;
  readonly instance: string;
}

/** An instance whose bundle cannot be found: nobody can bind, update or delete it as it was made. */
export interface DanglingInstance extends InstanceService {
  readonly why: string;
}

type PushAction = "push" | "removePushed" | "removeAllPushed";
type Decision = (stored: StoredSource, decider: Decider) => AdminDecision;
type Matched = MatchedRoute<typeof bundleRoutes>;

interface Asked {
  readonly ports: BundleAdminPorts;
  readonly matched: Matched;
  readonly query: URLSearchParams;
}

const defaultLimit = 100;
const lastLogBytes = 262_144;

/** What sources of bundles add to the admin API. */
export function bundleAdmin(ports: BundleAdminPorts): AdminRoutes {
  const table = routeTable(bundleRoutes, "there is nothing at this path of the admin API for bundles");
  return {
    owns: isBundlePath,
    match(method, path) {
      const matched = table.match(method, path);
      return { name: `bundles ${matched.name}`, respond: (request) => respond(ports, matched, request) };
    },
  };
}

async function respond(ports: BundleAdminPorts, matched: Matched, request: AdminRouteRequest): Promise<object> {
  const { name, source, spec } = matched;
  const asked = { ports, matched, query: request.query };
  if (isRead(name)) return reads[name](asked);
  const { body, by, reason } = await request.action(name === "push" ? largestPush : undefined);
  if (name === "push") return ports.pushes.push(readPush(body), by);
  if (name === "removePushed" || name === "removeAllPushed") {
    const removed = await ports.pushes.remove(name === "removePushed" ? [spec] : "all", forceOf(body), {
      ...by,
      why: reason,
    });
    return { removed };
  }
  if (name === "refresh") {
    // Nothing would be read, and who waits for the reading would take its end for one.
    if (ports.sources().get(source)?.data.mode === "disabled")
      throw new BrokerError("conflict", `source ${source} is disabled: it is read when it is enabled`);
    const reading = await ports.refresh(source, by);
    if (reading === undefined) throw noSource(source);
    return { reading };
  }
  const decided = await ports.decide(source, decisions[name](spec, body), { ...by, why: reason });
  if (decided === undefined) throw noSource(source);
  if (decided.kind === "refused") throw new BrokerError("conflict", decided.why);
  return {};
}

const reads: Readonly<Record<ReadName, (asked: Asked) => Promise<object>>> = {
  sources: async ({ ports }) => ({
    items: [...ports.sources().values()].map(({ data }) => sourceView(data, ports.reading(data.name))),
    next: null,
  }),
  source: async (asked) => sourceView(sourceOf(asked).data, asked.ports.reading(asked.matched.source)),
  async read({ ports, matched: { source }, query }) {
    const [repository, tag] = [query.get("repository") ?? "", query.get("tag") || "latest"];
    if (!isRepositoryName(repository))
      throw new BrokerError("bad-request", "repository must be a name such as team/postgres");
    if (!isTag(tag)) throw new BrokerError("bad-request", "tag must be letters, digits, dots, dashes and underscores");
    const view = await ports.read(source, { repository, tag });
    if (view === undefined) throw noSource(source);
    return view;
  },
  async reading({ ports, matched: { source, reading } }) {
    const state = await ports.readingState(source, reading);
    if (state === undefined) throw new BrokerError("not-found", "there is no such reading of this source");
    return { reading, state };
  },
  async runs({ ports, matched: { source }, query }) {
    const page = await ports.runs(source, readPaging(query));
    if (page === undefined) throw noSource(source);
    return page;
  },
  async run({ ports, matched: { source, run } }) {
    const found = /^[0-9]{1,15}$/.test(run) ? await ports.run(source, Number(run)) : undefined;
    if (found === undefined)
      throw new BrokerError("not-found", "there is no such run of this source, or it is not kept any more");
    return found;
  },
  async events({ ports, matched: { source }, query }) {
    const page = await ports.events(source, query.get("spec") || null, readPaging(query));
    if (page === undefined) throw noSource(source);
    return page;
  },
  async specs(asked) {
    const { data, specs } = sourceOf(asked);
    const state = stateOf(asked.query);
    const { after, limit = defaultLimit } = readPaging(asked.query);
    const wanted = [...specs]
      .filter(
        ([id, record]) => (after === undefined || id > after) && (state === undefined || specState(record) === state),
      )
      .sort(([one], [other]) => (one < other ? -1 : 1));
    const items = wanted.slice(0, limit).map(([id, record]) => specSummary(data, id, record));
    return { items, next: wanted.length > limit ? (items.at(-1)?.id ?? null) : null };
  },
  spec: async (asked): Promise<SpecView> => {
    const { data, specs } = sourceOf(asked);
    const { spec } = asked.matched;
    const record = specs.get(spec);
    if (record === undefined) throw new BrokerError("not-found", `there is no such spec in ${data.name}`);
    return specView(data, spec, record);
  },
  pushed: async ({ ports }) => ({ items: await ports.pushes.list(), next: null }),
  async preview({ ports, query }) {
    const config = query.get("config") ?? "";
    // Only a name: whoever has a credential of this API must not have the broker read any file that there is.
    if (!/^[\w-][\w.-]{0,99}$/.test(config))
      throw new BrokerError("bad-request", "config must be the name of a file in the folder of the broker's settings");
    return { items: await ports.preview(config), next: null };
  },
  async collectable({ ports }) {
    const items = [...(await ports.collectable())].map(([source, { deleted, revisions, forgotten, kept }]) => ({
      ...{ source, deleted, revisions, forgotten, kept },
    }));
    return { items, next: null };
  },
  async dangling({ ports, query }) {
    const { items, next } = await ports.dangling(readPaging(query));
    const views = items.map(({ instance, platform, phase, serviceId, revision, why }) => ({
      ...{ instance, platform, phase, service_id: serviceId, revision, why },
    }));
    return { items: views, next };
  },
  async jobs({ ports, query }) {
    const asked = askedInstance(query);
    if (asked === null) throw new BrokerError("bad-request", "instance must be the id of an instance");
    const found = await ports.jobs(asked, query.get("binding") || null);
    if (found === undefined) throw new BrokerError("not-found", "there is no such instance");
    return { items: found, next: null };
  },
  async log({ ports, matched: { job }, query }) {
    if (!/^[A-Za-z0-9-]{1,100}$/.test(job))
      throw new BrokerError("bad-request", "a job's id has letters, digits and dashes");
    return { job, ...(await ports.log(job, askedInstance(query), lastLogBytes)) };
  },
};

const decisions: Readonly<
  Record<Exclude<ActionName, "refresh" | PushAction>, (spec: string, body: JsonObject) => Decision>
> = {
  disable: () => disable,
  enable: () => enable,
  drain: () => drain,
  confirmRemoval: (_, body) => (stored, by) => confirmRemoval(stored, textOf(body, "observation"), by),
  hold: (spec) => (stored, by) => hold(stored, spec, by),
  release: (spec) => (stored, by) => release(stored, spec, by),
  withdraw: (spec) => (stored, by) => withdraw(stored, spec, by),
  restore: (spec) => (stored, by) => restore(stored, spec, by),
  confirmContent: (spec, body) => (stored, by) =>
    confirmContent(stored, spec, textOf(body, "digest") as `sha256:${string}`, by),
};

function forceOf({ force = false }: JsonObject): boolean {
  if (typeof force !== "boolean") throw new BrokerError("bad-request", "force must be true or false");
  return force;
}

function askedInstance(query: URLSearchParams): AskedInstance | null {
  const instance = query.get("instance") ?? "";
  return instance === "" ? null : { platform: query.get("platform") ?? "", instance };
}

function isRead(name: BundleRouteName): name is ReadName {
  return Object.hasOwn(reads, name);
}

function sourceOf({ ports, matched: { source } }: Asked): StoredSource {
  const found = ports.sources().get(source);
  if (found === undefined) throw noSource(source);
  return found;
}

function noSource(name: string): BrokerError {
  return new BrokerError("not-found", `there is no source of bundles ${JSON.stringify(name.slice(0, 100))}`);
}

function stateOf(query: URLSearchParams): SpecState | undefined {
  const text = query.get("state");
  if (text === null || text === "") return undefined;
  const state = specStates.find((known) => known === text);
  if (state === undefined) throw new BrokerError("bad-request", `state must be one of ${specStates.join(", ")}`);
  return state;
}

function textOf(body: JsonObject, name: string): string {
  const text = body[name];
  if (typeof text !== "string" || text === "") throw new BrokerError("bad-request", `${name} must be a text`);
  return text;
}
