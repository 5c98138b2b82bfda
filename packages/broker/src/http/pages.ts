import { BrokerError } from "@osbert/protocol";
import type { Broker } from "../broker.js";
import type { Answer } from "../endpoints/answer.js";
import type { Metrics } from "../observe/metrics.js";
import { authentication } from "./authentication/authentication.js";
import type { Credential } from "./authentication/credential.js";
import type { WireRequest } from "./wire.js";

/** What is answered for those who run the broker: `/healthz`, `/readyz`, `/metrics`. */
export interface PagesOptions {
  /** Answers `/metrics` with these. */
  readonly metrics?: Pick<Metrics, "contentType" | "scrape">;
  /** Answers `/readyz` to anyone, as load balancers that know no password need it. Default: to those with a credential. */
  readonly openReadiness?: boolean;
  /** Credentials that may read `/readyz` and `/metrics` and nothing else, beside those of platforms. */
  readonly watchers?: readonly Credential[];
}

/** Something for those who run the broker, beside the API. */
export interface Page {
  readonly name: string;
  /** Whether it may be read without a platform's credential. */
  mayRead(request: WireRequest): boolean | Promise<boolean>;
  /** Whether someone of this user name may. */
  knows(username: string): boolean;
  answer(method: string): Promise<Answer>;
}

/** The pages by their paths. */
export function pagesOf(broker: Broker, options: PagesOptions): ReadonlyMap<string, Page> {
  // Not slowed down here: whoever is no watcher is judged as a platform next, and guesses are counted there.
  const watcher = authentication(options.watchers ?? [], { slowDown: "none" });
  const isWatcher = async ({ header, peer }: WireRequest) =>
    (await watcher({ authorization: header("authorization"), platform: "", peer })) !== undefined;
  const knows = (username: string) => watcher.knows?.(username) === true;
  const pages = new Map<string, Page>();
  pages.set("/readyz", {
    name: "readyz",
    mayRead: (request) => options.openReadiness === true || isWatcher(request),
    knows,
    answer: (method) => readable(method, () => readiness(broker)),
  });
  const { metrics } = options;
  if (metrics !== undefined)
    pages.set("/metrics", {
      name: "metrics",
      mayRead: isWatcher,
      knows,
      answer: (method) =>
        readable(method, async () => {
          const body = await metrics.scrape(broker);
          return { status: 200, body, headers: { "content-type": metrics.contentType } };
        }),
    });
  return pages;
}

async function readiness(broker: Broker): Promise<Answer> {
  const { ready, reasons } = await broker.readiness();
  return ready
    ? { status: 200, body: { status: "ready" } }
    : { status: 503, body: { status: "not ready", reasons }, headers: { "retry-after": "1" } };
}

async function readable(method: string, page: () => Promise<Answer>): Promise<Answer> {
  if (method === "GET" || method === "HEAD") return page();
  throw new BrokerError("method-not-allowed", `${method} is not possible here; GET is`, { allow: "GET" });
}
