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
  const compiled = routes.map(([method, path, name]) => {
    const parameters = parametersOf(path);
    return { method, name, parameters, texts: path.split(parameter) };
  });
  // Every match has all of them, in one order: objects of one shape are read fastest.
  const all = new Set(compiled.flatMap(({ parameters }) => parameters));
  const blank: Readonly<Record<string, string>> = Object.fromEntries(["name", ...all].map((each) => [each, ""]));
  const refusal = (method: string, path: string) => {
    const possible = compiled.filter(({ texts }) => valuesIn(path, texts) !== undefined);
    if (possible.length === 0) return new BrokerError("not-found", nothing);
    return methodNotAllowed(
      method,
      possible.map(({ method: offered }) => offered),
    );
  };
  return {
    match(method, path) {
      const wanted = method === "HEAD" ? "GET" : method;
      for (const { method: offered, name, parameters, texts } of compiled) {
        const values = offered === wanted ? valuesIn(path, texts) : undefined;
        if (values === undefined) continue;
        const matched: Record<string, string> = { ...blank, name };
        for (let index = 0; index < parameters.length; index++)
          matched[parameters[index] as string] = decode(values[index] as string);
        return matched as MatchedRoute<Routes>;
      }
      throw refusal(method, path);
    },
    refusal,
  };
}

const parameter = /:[^/]+/;

function parametersOf(path: string): readonly string[] {
  return path.split("/").flatMap((part) => (parameter.test(part) ? [part.slice(1)] : []));
}

/**
 * The values that stand between the texts of a route's path; `undefined`: it is another path. Looked for in the path as it is,
 * so that nothing is made of what is another path.
 */
function valuesIn(path: string, texts: readonly string[]): readonly string[] | undefined {
  const first = texts[0] as string;
  if (!path.startsWith(first)) return undefined;
  const values: string[] = [];
  let at = first.length;
  for (let index = 1; index < texts.length; index++) {
    const slash = path.indexOf("/", at);
    const end = slash < 0 ? path.length : slash;
    const text = texts[index] as string;
    if (end === at || !path.startsWith(text, end)) return undefined;
    values.push(path.slice(at, end));
    at = end + text.length;
  }
  return at === path.length ? values : undefined;
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
