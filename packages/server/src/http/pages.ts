import type { Authenticate } from "../authentication/authenticate.js";
import { authentication } from "../authentication/authentication.js";
import type { Credential } from "../authentication/credential.js";
import { type KnowsUser, refusedCaller } from "../authentication/refused-caller.js";
import type { SeenRequest } from "../observe/seen-request.js";
import type { Answer } from "./answer.js";
import { authenticated } from "./authenticated.js";
import type { Api } from "./http-end.js";
import { methodNotAllowed } from "./method-not-allowed.js";
import type { WireRequest } from "./wire.js";

/** What is answered for those who run a server, beside its API. */
export interface PagesOptions {
  /** Whether requests should be sent to this process, for `/readyz`. */
  readiness(): Promise<Readiness>;
  /** Answers `/metrics` with this. */
  readonly metrics?: { readonly contentType: string; scrape(): Promise<string> } | undefined;
  /** Answers `/readyz` to anyone, as load balancers that know no password need it. Default: to those with a credential. */
  readonly openReadiness?: boolean | undefined;
  /** Credentials that may read `/readyz` and `/metrics` and nothing else, beside those of the API. */
  readonly watchers?: readonly Credential[] | undefined;
  /** Who may ask the API; they may read the pages, too. */
  readonly authenticate: Authenticate;
}

/** Whether requests should be sent to this process. */
export interface Readiness {
  readonly ready: boolean;
  /** Why not, for a person. */
  readonly reasons: readonly string[];
}

interface Page {
  readonly name: string;
  /** Anyone may read it. */
  readonly isOpen: boolean;
  answer(): Promise<Answer>;
}

/** `/readyz` and, with metrics, `/metrics`. `/healthz` is the server's own: it says that the process answers, and nothing else. */
export function pages<Seen extends SeenRequest>(options: PagesOptions): Api<Seen> {
  const { metrics, authenticate } = options;
  // Not slowed down here: whoever is no watcher is judged by the API's credentials next, and guesses are counted there.
  const watcher = authentication(options.watchers ?? [], { slowDown: "none" });
  const isWatcher = async (request: WireRequest) =>
    (await watcher({ authorization: request.header("authorization"), platform: "", peer: request.peer })) !== undefined;
  const knows: KnowsUser = (username) => watcher.knows?.(username) === true;
  const mayRead: KnowsUser = (username) => knows(username) || authenticate.knows?.(username) === true;
  const byPath = new Map<string, Page>();
  byPath.set("/readyz", {
    name: "readyz",
    isOpen: options.openReadiness === true,
    answer: async () => readinessAnswer(await options.readiness()),
  });
  if (metrics !== undefined)
    byPath.set("/metrics", {
      name: "metrics",
      isOpen: false,
      answer: async () => {
        const body = await metrics.scrape();
        return { status: 200, body, headers: { "content-type": metrics.contentType } };
      },
    });
  return {
    owns: (path) => byPath.has(path),
    knows,
    async respond(request, { path, seen, knowsAnywhere }) {
      const page = byPath.get(path) as Page;
      seen?.matched(page);
      // Finding out whether they may can end in a refusal, too.
      seen?.authenticating(() => refusedCaller(request, mayRead, knowsAnywhere));
      if (page.isOpen || (await isWatcher(request))) return read(page, request.method);
      const told = { platform: "", seen, knows, knowsAnywhere };
      return authenticated(authenticate, request, told, () => read(page, request.method));
    },
  };
}

function readinessAnswer({ ready, reasons }: Readiness): Answer {
  return ready
    ? { status: 200, body: { status: "ready" } }
    : { status: 503, body: { status: "not ready", reasons }, headers: { "retry-after": "1" } };
}

async function read(page: Page, method: string): Promise<Answer> {
  if (method === "GET" || method === "HEAD") return page.answer();
  throw methodNotAllowed(method, ["GET"]);
}
