import { isKeepable, type OperationState } from "@osbert/journal";
import { BrokerError, type JsonObject } from "@osbert/protocol";
import { type Answer, type Api, authenticated, readJsonObject, readPaging, type WireRequest } from "@osbert/server";
import {
  type AuthenticationOptions,
  authentication,
  type Credential,
  type KnowsUser,
} from "@osbert/server/authentication";
import type { SeenRequest } from "@osbert/server/observe";
import type { AdminRoutes } from "../catalog/service-source.js";
import { answer } from "../endpoints/answer.js";
import { requiredText } from "../endpoints/fields.js";
import { checkId } from "../records/ids.js";
import type { InstanceAddress } from "../records/instance-key.js";
import { type InstancePhase, instancePhases } from "../records/instance-record.js";
import type { Operator } from "./operator.js";
import { attributionOf, type OperatorAttribution } from "./operator-attribution.js";
import {
  type ActionName,
  type AdminRouteName,
  isAdminPath,
  type MatchedAdminRoute,
  matchAdminRoute,
  type ReadName,
} from "./routes.js";

/** The admin API on the wire. */
export interface AdminOptions {
  /** Who may operate the broker. They open nothing else, and no platform's credential opens this. */
  readonly credentials: readonly Credential[];
}

/** A request as any server can give it. */
export type AdminRequest = WireRequest;

/** What of the platforms' side the admin API must know. */
export interface PlatformSide {
  readonly credentials: unknown;
  readonly authentication?: AuthenticationOptions;
}

/** Answers a request to the admin API; rejects with a BrokerError that says no. */
export interface AdminEndpoints {
  /** `knowsAnywhere`: whether someone of this user name is let in at any door of the broker. */
  (request: AdminRequest, requestId: string | null, seen?: Seen, knowsAnywhere?: KnowsUser): Promise<Answer>;
  /** Whether someone of this user name is let in here. */
  readonly knows: KnowsUser;
}

/** Who watches requests is told of these, too. */
type Seen = Pick<SeenRequest, "authenticating" | "authenticated"> & {
  matched(route: { readonly name: string; readonly instance?: string; readonly binding?: string }): void;
};

const largestBody = 65_536;
const longestReason = 1_000;

/** The endpoints below `/admin/v1` as an API of a server. */
export function adminApi<Watched extends SeenRequest & Seen>(
  ...given: Parameters<typeof adminEndpoints>
): Api<Watched> {
  const endpoints = adminEndpoints(...given);
  return {
    owns: isAdminPath,
    knows: endpoints.knows,
    respond: (request, { requestId, seen, knowsAnywhere }) => endpoints(request, requestId, seen, knowsAnywhere),
  };
}

/**
 * The endpoints under /admin/v1, for those with a credential of their own. In this order, so that nobody learns anything unasked: who
 * asks, what, with which body. Throws if a credential is also one of a platform's.
 */
export function adminEndpoints(
  operator: () => Operator,
  { credentials }: AdminOptions,
  platforms: PlatformSide = { credentials: [] },
  more?: AdminRoutes,
): AdminEndpoints {
  if (credentials.length === 0) throw new Error("admin.credentials must have at least one credential");
  const theirs = Array.isArray(platforms.credentials) ? (platforms.credentials as readonly Credential[]) : [];
  const isShared = (own: Credential) => theirs.some((other) => secretOf(other) === secretOf(own));
  if (credentials.some(isShared))
    throw new Error(
      "an admin credential must not be one of a platform, too: whoever has that could operate the broker",
    );
  // Counted apart from platforms: who guesses here is not let off by a success there.
  const authenticate = authentication(credentials, platforms.authentication);
  const knows: KnowsUser = (username) => authenticate.knows?.(username) === true;
  const respond: Respond = async (request, requestId, seen, knowsAnywhere = knows) => {
    seen?.matched({ name: "admin" });
    const told = { platform: "", seen, knowsAnywhere, otherwise: "a valid admin credential is needed" };
    return authenticated(authenticate, request, told, async (credential) => {
      const [path = "", search = ""] = splitOnce(request.url, "?");
      const query = new URLSearchParams(search);
      const bodyAndReason = async (mostBytes = largestBody) => {
        const body = await readBody(request, mostBytes);
        const by: OperatorAttribution = { operator: credential, reason: reasonOf(body), requestId };
        return { body, by };
      };
      if (more?.owns(path)) {
        const route = more.match(request.method, path);
        seen?.matched({ name: `admin ${route.name}` });
        const action = async (mostBytes?: number) => {
          const { body, by } = await bodyAndReason(mostBytes);
          return { body, by: attributionOf(by), reason: by.reason };
        };
        return answer("fetched", await route.respond({ query, action }));
      }
      const matched = matchAdminRoute(request.method, path);
      const { name, instance, binding } = matched;
      seen?.matched({ name: `admin ${name}`, instance, binding });
      const address = { platform: textOf(query, "platform") ?? "", instance };
      const asked: ReadRequest = { operator: operator(), address, matched, query };
      if (isRead(name)) return answer("fetched", await reads[name](asked));
      return answer("fetched", await actions[name]({ ...asked, ...(await bodyAndReason()) }));
    });
  };
  return Object.assign(respond, { knows });
}

type Respond = (...given: Parameters<AdminEndpoints>) => Promise<Answer>;

/** The same for credentials that let the same caller in. */
function secretOf({ platform: _, ...credential }: Credential): string {
  return JSON.stringify(credential);
}

/** What every endpoint is given. */
interface ReadRequest {
  readonly operator: Operator;
  readonly address: InstanceAddress;
  readonly matched: MatchedAdminRoute;
  readonly query: URLSearchParams;
}

/** What those are given that change something. */
interface ActionRequest extends ReadRequest {
  readonly body: JsonObject;
  readonly by: OperatorAttribution;
}

const reads: Readonly<Record<ReadName, (asked: ReadRequest) => Promise<object>>> = {
  instances: ({ operator, query }) => operator.instances({ ...readPaging(query), ...filterOf(query) }),
  instance: ({ operator, address }) => operator.instance(address),
  binding: ({ operator, address, matched }) => operator.binding(address, matched.binding),
  bindings: ({ operator, address, query }) => operator.bindings(address, readPaging(query)),
  journal: ({ operator, address, query }) => operator.entries(address, readPaging(query)),
  operation: ({ operator, address, matched }) => operator.operation(address, matched.operation),
  operations: ({ operator, query }) =>
    operator.operations({ ...readPaging(query), ...operationFilterOf(query), ...stateOf(query, openStates) }),
  services: async ({ operator }) => ({ items: operator.services(), next: null }),
  setAside: ({ operator, query }) => operator.setAside(readPaging(query)),
  keyRotation: async ({ operator }) => operator.keyRotation,
};

const actions: Readonly<Record<ActionName, (asked: ActionRequest) => Promise<object>>> = {
  retryAll: ({ operator, query, body, by }) => {
    const filter = bulkFilterOf(query, ["waiting", "failed"]);
    return operator.retryAll({ ...readPaging(query), ...filter }, by, dryRunOf(body));
  },
  cancelAll: ({ operator, query, body, by }) => {
    const filter = bulkFilterOf(query, ["running", "waiting", "queued", "held", "paused"]);
    return operator.cancelAll({ ...readPaging(query), ...filter }, by, dryRunOf(body));
  },
  retry: ({ operator, address, matched, by }) => operator.retry(address, matched.operation, by),
  async cancel({ operator, address, matched: { operation }, by }) {
    await operator.cancel(address, operation, by);
    return { operation };
  },
  async purge({ operator, address, by }) {
    await operator.purge(address, by);
    return {};
  },
  async purgeBinding({ operator, address, matched, by }) {
    await operator.purgeBinding(address, matched.binding, by);
    return {};
  },
  async forceDelete({ operator, address, body, by }) {
    const seconds = secondsOf(body.within_seconds, "within_seconds", 3_600);
    return operator.forceDelete(address, by, seconds === undefined ? {} : { withinMs: seconds * 1_000 });
  },
  async restore({ operator, address, by }) {
    await operator.restore(address, by);
    return {};
  },
  rotateKeys: ({ operator, by }) => operator.rotateKeys(by),
  pause: ({ operator, matched, by }) => operator.pause(matched.service, by),
  resume: ({ operator, matched, by }) => operator.resume(matched.service, by),
};

function isRead(name: AdminRouteName): name is ReadName {
  return Object.hasOwn(reads, name);
}

async function readBody(request: AdminRequest, mostBytes: number): Promise<JsonObject> {
  // A browser sends a form, or plain text, to any server without asking it; JSON it does not.
  if (request.header("content-type") === undefined)
    throw new BrokerError("bad-request", "the body must be JSON: send it with Content-Type application/json");
  return readJsonObject(request, mostBytes);
}

function reasonOf(body: JsonObject): string {
  const reason = requiredText(body, "reason").trim();
  if (reason === "" || reason.length > longestReason)
    throw new BrokerError("bad-request", `reason must be a text of 1 to ${longestReason} characters: why this is done`);
  if (!isKeepable(reason)) throw new BrokerError("bad-request", "reason must not hold NUL or half of a surrogate pair");
  return reason;
}

function filterOf(query: URLSearchParams) {
  const [platform, service, plan, phase] = ["platform", "service", "plan", "phase"].map((name) => textOf(query, name));
  if (phase !== undefined && !instancePhases.includes(phase as InstancePhase))
    throw new BrokerError("bad-request", `phase must be one of ${instancePhases.join(", ")}`);
  return {
    ...(platform !== undefined && { platform }),
    ...(service !== undefined && { service }),
    ...(plan !== undefined && { plan }),
    ...(phase !== undefined && { phase: phase as InstancePhase }),
  };
}

const openStates: readonly OperationState[] = ["running", "waiting", "queued", "held", "paused", "cancelling"];

function stateOf<State extends string>(query: URLSearchParams, states: readonly State[]): { readonly state?: State } {
  const text = textOf(query, "state");
  if (text === undefined) return {};
  const state = states.find((known) => known === text);
  if (state === undefined) throw new BrokerError("bad-request", `state must be one of ${states.join(", ")}`);
  return { state };
}

/** What is done to many must say to which: a filter that was forgotten, or left empty, would mean all. */
function bulkFilterOf<State extends string>(query: URLSearchParams, states: readonly State[]) {
  const filter = { ...operationFilterOf(query), ...stateOf(query, states) };
  if (Object.keys(filter).length === 0)
    throw new BrokerError("bad-request", "say which: by service, plan, platform, state, older_than_seconds or failing");
  return filter;
}

function dryRunOf({ dry_run: dryRun = false }: JsonObject): boolean {
  if (typeof dryRun !== "boolean") throw new BrokerError("bad-request", "dry_run must be true or false");
  return dryRun;
}

function operationFilterOf(query: URLSearchParams) {
  const [platform, service, plan] = ["platform", "service", "plan"].map((name) => textOf(query, name));
  const text = textOf(query, "older_than_seconds");
  const seconds = text === undefined ? undefined : secondsOf(Number(text), "older_than_seconds", 365 * 86_400);
  return {
    ...(platform !== undefined && { platform }),
    ...(service !== undefined && { service }),
    ...(plan !== undefined && { plan }),
    ...(seconds !== undefined && { olderThanMs: seconds * 1_000 }),
    ...(query.get("failing") === "true" && { failing: true }),
  };
}

function secondsOf(value: unknown, name: string, most: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !(value >= 0 && value <= most))
    throw new BrokerError("bad-request", `${name} must be a number of seconds from 0 to ${most}`);
  return value;
}

function textOf(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  checkId(text, name);
  return text;
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
