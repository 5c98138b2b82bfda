import { BrokerError } from "@osbert/protocol";
import { methodNotAllowed } from "./method-not-allowed.js";

/** What a method on a path means. A segment of the path that begins with a colon is a value. */
export type Route = readonly [method: string, path: string, name: string];

/** The names of the values in a path. */
export type PathParameter<Path extends string> = Path extends `${string}/:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? Name | PathParameter<`/${Tail}`>
    : Rest
  : never;

/** The route that a request takes, and the values in its path, decoded; "" for those that the path does not have. */
export type MatchedRoute<Routes extends readonly Route[]> = { readonly name: Routes[number][2] } & {
  readonly [Name in PathParameter<Routes[number][1]>]: string;
};

export interface RouteTable<Routes extends readonly Route[]> {
  /** HEAD is GET without a body. Throws a BrokerError where there is no such route. */
  match(method: string, path: string): MatchedRoute<Routes>;
  /** Why a method that no route has there is refused: with those that are possible, if the path is right. */
  refusal(method: string, path: string): BrokerError;
}

/** The one matcher of all APIs. `nothing`: what is said of a path that no route has. No value may be called `name`. */
export function routeTable<const Routes extends readonly Route[]>(routes: Routes, nothing: string): RouteTable<Routes> {
  const patterns = routes.map(([method, path, name]) => ({ method, name, pattern: path.split("/") }));
  // Every match has all of them, in one order: objects of one shape are read fastest.
  const parameters = [...new Set(patterns.flatMap(({ pattern }) => pattern.filter(isParameter)))];
  const compiled = patterns.map((each) => ({
    ...each,
    values: parameters.map((parameter) => [parameter.slice(1), each.pattern.indexOf(parameter)] as const),
  }));
  const refusal = (method: string, path: string) => {
    const segments = path.split("/");
    const possible = compiled.filter(({ pattern }) => fits(pattern, segments)).map(({ method: offered }) => offered);
    return possible.length === 0 ? new BrokerError("not-found", nothing) : methodNotAllowed(method, possible);
  };
  return {
    match(method, path) {
      const segments = path.split("/");
      const wanted = method === "HEAD" ? "GET" : method;
      for (const { method: offered, name, pattern, values } of compiled) {
        if (offered !== wanted || !fits(pattern, segments)) continue;
        const matched: Record<string, string> = { name };
        for (const [parameter, at] of values) matched[parameter] = at < 0 ? "" : decode(segments[at] ?? "");
        return matched as MatchedRoute<Routes>;
      }
      throw refusal(method, path);
    },
    refusal,
  };
}

function isParameter(part: string): boolean {
  return part.startsWith(":");
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;
  for (let at = 0; at < pattern.length; at++) {
    const part = pattern[at] as string;
    if (isParameter(part) ? segments[at] === "" : part !== segments[at]) return false;
  }
  return true;
}

/** Exactly once: an encoded slash or dot is part of the value, never of the path. */
export function decode(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw new BrokerError("bad-request", "an id in the path is not validly percent-encoded", { cause });
  }
}
