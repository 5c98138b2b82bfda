import { BrokerError } from "@osbert/protocol";
import type { KnowsUser } from "../authentication/refused-caller.js";
import type { RequestAnswered } from "../observe/event.js";
import type { SeenRequest } from "../observe/seen-request.js";
import { type RequestWatch, watchRequest } from "../observe/watch-request.js";
import type { Answer } from "./answer.js";
import { headResponse } from "./head-response.js";
import { LiveText } from "./live-text.js";
import { Pieces } from "./pieces.js";
import { type Problem, problemAnswer } from "./problem.js";
import { requestIdentity, requestIdentityHeader } from "./request-identity.js";
import type { WireRequest, WireResponse } from "./wire.js";

/** One API on a server. */
export interface Api<Seen extends SeenRequest> {
  /** Whether a path is this API's to answer. Of several the first one answers. */
  owns(path: string): boolean;
  /** Answers at once where nothing has to be waited for. Throws what `problemOf` makes a refusal of. */
  respond(request: WireRequest, arrived: Arrived<Seen>): Answer | Promise<Answer>;
  /** Whether someone of this user name is let in here. */
  readonly knows?: KnowsUser | undefined;
}

/** What is known of every request before anyone looks at what it asks. */
export interface Arrived<Seen extends SeenRequest> {
  /** Without the query. */
  readonly path: string;
  readonly requestId: string;
  /** `undefined`: nobody watches. */
  readonly seen: Seen | undefined;
  /** Whether someone of this user name is let in by any API of the server. */
  readonly knowsAnywhere: KnowsUser;
}

/** Answers at once where nothing has to be waited for: a promise costs as much as the rest of a catalog's answer. */
export type Handler = (request: WireRequest) => WireResponse | Promise<WireResponse>;

/** Told of every error that is the server's own fault. */
export type OnError = (
  error: unknown,
  request: { readonly method: string; readonly path: string; readonly requestId: string | null },
) => void;

export interface HttpEndOptions<Event extends RequestAnswered, Seen extends SeenRequest<Event>> {
  readonly apis: readonly Api<Seen>[];
  /** Whatever was thrown, as it may be told outside. */
  problemOf(error: unknown): Problem;
  /** Why a method is refused that the server itself has never heard of, or that never reaches an API. */
  refuseMethod(method: string, path: string): Problem;
  /** What a 401 says of how to authenticate. */
  readonly challenge?: string | undefined;
  /** How a refusal is told. Default: as the Open Service Broker API has it. */
  readonly answerProblem?: (problem: Problem, challenge: string | undefined, requestId: string) => Answer;
  readonly watch?: RequestWatch<Event, Seen> | undefined;
  readonly onError?: OnError | undefined;
}

/** An end of the wire, without a server: adapters hand it what their server gives them. */
export interface HttpEnd {
  readonly handle: Handler;
  /** Refuses what never reaches `handle`, and tells who watches. */
  refuse(problem: Problem, request: RefusedRequest): WireResponse;
  refuseMethod(method: string, url: string): Problem;
  problemOf(error: unknown): Problem;
}

/** As much as is known of a request that could not be read. */
export interface RefusedRequest {
  readonly method: string;
  /** The request identity, if one was sent. */
  readonly sent: string | undefined;
  readonly tookMs: number;
}

/** The whole wire of some APIs. */
export function httpEnd<Event extends RequestAnswered, Seen extends SeenRequest<Event>>(
  options: HttpEndOptions<Event, Seen>,
): HttpEnd {
  const { apis, watch, challenge, answerProblem = problemAnswer } = options;
  const apiOf = (path: string) => {
    for (const api of apis) if (api.owns(path)) return api;
    throw new BrokerError("not-found", "there is nothing at this path");
  };
  const knowsAnywhere: KnowsUser = (username) => apis.some((api) => api.knows?.(username) === true);
  const tell = (given: Answer, { method }: WireRequest, { requestId, seen }: Arrived<Seen>) => {
    const told = toWire(given, requestId, method);
    seen?.answered(given.status, given.body);
    return told;
  };
  const refuse = (error: unknown, request: WireRequest, arrived: Arrived<Seen>) => {
    const problem = options.problemOf(error);
    const { path, requestId, seen } = arrived;
    seen?.refused(problem);
    // A 4xx is the caller's business; what happened inside is the operator's.
    if (problem.status >= 500 && problem.cause !== undefined) {
      try {
        options.onError?.(problem.cause, { method: request.method, path, requestId });
      } catch {
        // There is nobody else to tell, and the caller is still to be answered.
      }
    }
    return tell(answerProblem(problem, challenge, requestId), request, arrived);
  };
  const tellOrRefuse = (given: Answer, request: WireRequest, arrived: Arrived<Seen>) => {
    try {
      return tell(given, request, arrived);
    } catch (error) {
      // What an author's own handler gave cannot be written as JSON.
      return refuse(error, request, arrived);
    }
  };
  const answer = (
    request: WireRequest,
    requestId: string,
    seen: Seen | undefined,
    watched: (response: WireResponse) => WireResponse,
  ) => {
    const arrived = { path: pathOf(request.url), requestId, seen, knowsAnywhere };
    let given: Answer | Promise<Answer>;
    try {
      checkAuthorization(request.header("authorization"));
      given = apiOf(arrived.path).respond(request, arrived);
    } catch (error) {
      return watched(refuse(error, request, arrived));
    }
    if (!(given instanceof Promise)) return watched(tellOrRefuse(given, request, arrived));
    return given.then(
      (later) => watched(tellOrRefuse(later, request, arrived)),
      (error: unknown) => watched(refuse(error, request, arrived)),
    );
  };
  return {
    handle(request) {
      const requestId = requestIdentity(request.header(requestIdentityHeader));
      if (watch === undefined) return answer(request, requestId, undefined, unwatched);
      return watchRequest(watch, request, requestId, (seen, tell) => answer(request, requestId, seen, tell));
    },
    refuse(problem, { method, sent, tookMs }) {
      const requestId = requestIdentity(sent);
      if (watch !== undefined) {
        const seen = watch.see();
        seen.refused(problem);
        watch.tell(seen.event(method, requestId, problem.status, tookMs));
      }
      return toWire(answerProblem(problem, challenge, requestId), requestId, method);
    },
    refuseMethod: (method, url) => options.refuseMethod(method, pathOf(url)),
    problemOf: (error) => options.problemOf(error),
  };
}

function unwatched(response: WireResponse): WireResponse {
  return response;
}

function pathOf(url: string): string {
  const questionMark = url.indexOf("?");
  return questionMark < 0 ? url : url.slice(0, questionMark);
}

/**
 * Whoever stands in front of the server and the server itself might each look at another one of several. Neither scheme's value has a
 * comma in it, which is what stands between the values of a header that was sent twice.
 */
function checkAuthorization(authorization: string | undefined): void {
  if (authorization?.includes(",") && /^(?:basic|bearer)\s/i.test(authorization))
    throw new BrokerError("bad-request", "the header Authorization must be sent once, with one value");
}

function toWire({ status, body: answered, headers }: Answer, requestId: string, method: string): WireResponse {
  const none = status === 304;
  const body = answered instanceof Pieces ? (answered.small() ?? answered) : answered;
  const pieces = body instanceof Pieces ? body : undefined;
  const live = body instanceof LiveText ? body : undefined;
  const sent = none || live !== undefined || pieces !== undefined ? "" : isText(body) ? body : JSON.stringify(body);
  // Written out, because it is done for every answer: spreading objects took a tenth of the catalog's time.
  const all: Record<string, string> = {};
  if (!none) all["content-type"] = "application/json";
  all[requestIdentityHeader] = requestId;
  if (headers !== undefined) for (const name in headers) all[name] = headers[name] as string;
  const response =
    pieces !== undefined
      ? new ResponseInPieces(status, all, pieces)
      : live !== undefined
        ? { status, headers: all, body: sent, live }
        : { status, headers: all, body: sent };
  return method === "HEAD" && !none ? headResponse(response) : response;
}

/** Whoever does not know of pieces has the body as ever. */
class ResponseInPieces implements WireResponse {
  readonly status: number;
  readonly headers: WireResponse["headers"];
  readonly pieces: Pieces;

  constructor(status: number, headers: WireResponse["headers"], pieces: Pieces) {
    this.status = status;
    this.headers = headers;
    this.pieces = pieces;
  }

  get body(): Uint8Array<ArrayBuffer> {
    return this.pieces.whole();
  }
}

/** JSON already. */
function isText(body: object | string): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array;
}
