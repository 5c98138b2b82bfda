import { type RequestAnswered, SeenRequest } from "@osbert/server/observe";

/** What is told of a request to the platform. */
export interface ApiRequestAnswered extends RequestAnswered {
  readonly space: string | null;
  readonly instance: string | null;
  readonly binding: string | null;
  readonly broker: string | null;
}

/** What is learnt about a request: the names in its path. */
export class SeenApiRequest extends SeenRequest<ApiRequestAnswered> {
  #path: Pick<ApiRequestAnswered, "space" | "instance" | "binding" | "broker"> = nothing;

  override matched(route: {
    readonly name: string;
    readonly space?: string;
    readonly instance?: string;
    readonly binding?: string;
    readonly broker?: string;
  }): void {
    super.matched(route);
    const known = (name: string | undefined) => (name === undefined || name === "" ? null : name.slice(0, longestName));
    this.#path = {
      space: known(route.space),
      instance: known(route.instance),
      binding: known(route.binding),
      broker: known(route.broker),
    };
  }

  protected override complete(request: RequestAnswered): ApiRequestAnswered {
    return Object.assign(request, this.#path);
  }
}

const nothing = { space: null, instance: null, binding: null, broker: null } as const;
const longestName = 100;
