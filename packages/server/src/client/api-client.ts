import type { PathParameter, Route } from "../http/route-table.js";
import type { Shape, Shaped } from "./shape.js";

/** What a route takes beside its path, and how it answers. */
export interface RouteDescription {
  /** Names that its query may have. */
  readonly query?: readonly string[];
  readonly answer: Shape<unknown>;
}

/** Sends a request and answers the JSON of its answer, whatever it is; throws where it says no. */
export type SendRequest = (
  method: string,
  path: string,
  options: { readonly query: Readonly<Record<string, string | undefined>>; readonly body: object | undefined },
) => Promise<unknown>;

/** The names of a table's routes. */
type Name<Routes extends readonly Route[]> = Routes[number][2];
type PathOf<Routes extends readonly Route[], Of extends Name<Routes>> = Extract<
  Routes[number],
  readonly [string, string, Of]
>[1];
type QueryOf<Description> = Description extends { readonly query: readonly (infer Field extends string)[] }
  ? Readonly<Partial<Record<Field, string | undefined>>>
  : Readonly<Record<never, never>>;

/** Asks one's own API: by the names of its routes, with answers that were looked at. */
export type ApiClient<
  Routes extends readonly Route[],
  Described extends Readonly<Record<Name<Routes>, RouteDescription>>,
> = <Of extends Name<Routes>>(
  name: Of,
  values: Readonly<Record<PathParameter<PathOf<Routes, Of>>, string>>,
  options?: { readonly query?: QueryOf<Described[Of]>; readonly body?: object },
) => Promise<Shaped<Described[Of]["answer"]>>;

/** Throws a ShapeError where an answer is not as the route describes it: then another API answers, or another version of it. */
export function apiClient<
  const Routes extends readonly Route[],
  const Described extends Readonly<Record<Name<Routes>, RouteDescription>>,
>(routes: Routes, described: Described, send: SendRequest): ApiClient<Routes, Described> {
  return async (name, values, { query = {}, body } = {}) => {
    const [method = "", pattern = ""] = routes.find((route) => route[2] === name) ?? [];
    const path = pattern.replaceAll(/:(\w+)/g, (_, parameter: string) =>
      encodeURIComponent((values as Readonly<Record<string, string>>)[parameter] ?? ""),
    );
    const description: RouteDescription = described[name];
    return description.answer(await send(method, path, { query, body })) as never;
  };
}
