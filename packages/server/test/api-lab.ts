import { BrokerError } from "@osbert/protocol";
import type { Authenticate } from "../src/authentication/index.js";
import { type Api, authenticated, type HttpEnd, type HttpEndOptions, httpEnd, routeTable } from "../src/index.js";
import { type RequestAnswered, SeenRequest } from "../src/observe/index.js";

/** Adds nothing to what is seen of every request. */
export class PlainSeenRequest extends SeenRequest {
  protected override complete(request: RequestAnswered): RequestAnswered {
    return request;
  }
}

const routes = routeTable([["GET", "/v2/catalog", "catalog"]], "there is nothing at this path");

/** A catalog, for those who are let in: at `/v2/catalog`, and for each platform at `/{platform}/v2/catalog`. */
export function apiOf(authenticate: Authenticate, admitted?: (credential: string) => void): Api<PlainSeenRequest> {
  return {
    owns: () => true,
    respond(request, { path, seen, knowsAnywhere }) {
      const [, platform = "", rest = path] = /^\/([^/]+)(\/v2\/.*)$/.exec(path) ?? [];
      return authenticated(authenticate, request, { platform, seen, knowsAnywhere }, (credential) => {
        seen?.matched(routes.match(request.method, rest));
        admitted?.(credential);
        return { status: 200, body: { services: [] } };
      });
    },
  };
}

export function endOf(
  apis: readonly Api<PlainSeenRequest>[],
  options: Partial<HttpEndOptions<RequestAnswered, PlainSeenRequest>> = {},
): HttpEnd {
  return httpEnd({
    apis,
    problemOf: (error) =>
      error instanceof BrokerError ? error : new BrokerError("operation-failed", "it failed", { cause: error }),
    refuseMethod: (method, path) => routes.refusal(method, path),
    ...options,
  });
}
