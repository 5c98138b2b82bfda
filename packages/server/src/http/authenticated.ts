import { BrokerError } from "@osbert/protocol";
import type { Authenticate, Authenticated } from "../authentication/authenticate.js";
import { type KnowsUser, refusedCaller } from "../authentication/refused-caller.js";
import type { SeenRequest } from "../observe/seen-request.js";
import type { WireRequest } from "./wire.js";

export interface AuthenticatedOptions {
  /** The platform whose paths are asked for; "" for a server with one. */
  readonly platform: string;
  readonly seen: Pick<SeenRequest, "authenticating" | "authenticated"> | undefined;
  /** Whose user name may be told beside those that `authenticate` knows. */
  readonly knows?: KnowsUser;
  /** Whose user name is let in at any door of the server, as every request brings it along. */
  readonly knowsAnywhere: KnowsUser;
  /** What everyone else is told, whatever was wrong. */
  readonly otherwise?: string;
}

/** Goes on with the name of who asks. Waits only where finding that out takes work. */
export function authenticated<Result>(
  authenticate: Authenticate,
  request: WireRequest,
  { platform, seen, knows, knowsAnywhere, otherwise = "valid credentials are needed" }: AuthenticatedOptions,
  goOn: (credential: string) => Result | Promise<Result>,
): Result | Promise<Result> {
  seen?.authenticating(() => {
    const isKnown = (username: string) => knows?.(username) === true || authenticate.knows?.(username) === true;
    return refusedCaller(request, isKnown, knowsAnywhere);
  });
  const judge = (credential: Authenticated) => {
    if (credential === undefined) throw new BrokerError("unauthorized", otherwise);
    seen?.authenticated(credential, platform);
    return goOn(credential);
  };
  const given = authenticate({ authorization: request.header("authorization"), platform, peer: request.peer });
  return typeof given === "object" ? given.then(judge) : judge(given);
}
