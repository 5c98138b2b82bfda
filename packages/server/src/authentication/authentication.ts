import { type Clock, systemClock } from "@osbert/journal";
import type { Authenticate, Authenticated, AuthenticationRequest } from "./authenticate.js";
import { readBasic } from "./basic-header.js";
import { bearerAuthentication, readBearer } from "./bearer.js";
import { certificateAuthentication } from "./certificates.js";
import { type Credential, type SortedCredentials, sortCredentials } from "./credential.js";
import type { ObserveAuthentication } from "./event.js";
import { hashedPasswords } from "./hashed-passwords.js";
import { networkOf } from "./network-address.js";
import { plainPasswords } from "./plain-passwords.js";
import { type Guesser, SlowDown, type SlowDownOptions } from "./slow-down.js";

/** How those who ask are told apart, and how guessing is slowed down. */
export interface AuthenticationOptions {
  /** How guessing is slowed down. `"none"`: only where something in front of the broker does it. */
  readonly slowDown?: SlowDownOptions | "none";
  /** For tests. Default: the system's. */
  readonly clock?: Clock;
  /** Told of failures and of what checking costs. */
  readonly observe?: ObserveAuthentication;
}

/** Anyone may do anything: only where something in front of the broker authenticates. */
export const openToAll: Authenticate = () => "anyone";

/**
 * Who asks, by any of these credentials. A request with an `Authorization` header is judged by it alone, one without by its certificate;
 * what is asked without either, or is no user name and password and no token at all, is no guess and is answered at once.
 */
export function authentication(
  credentials: readonly Credential[],
  { slowDown: limits = {}, clock = systemClock, observe = () => undefined }: AuthenticationOptions = {},
): Authenticate {
  const sorted = sortCredentials(credentials);
  const plain = plainPasswords(sorted.passwords);
  const hashed = sorted.hashes.length === 0 ? undefined : hashedPasswords(sorted.hashes, observe, clock);
  const byToken = bearerAuthentication(sorted.issuers, { clock, observe });
  const byCertificate = certificateAuthentication(sorted.certificates);
  const slowDown = limits === "none" ? undefined : new SlowDown(limits, clock, observe);

  function byPassword(authorization: string, { platform, peer }: AuthenticationRequest) {
    const network = slowDown === undefined && hashed === undefined ? "" : networkOf(peer?.address);
    const atOnce = plain(authorization, platform);
    if (atOnce !== undefined) return admitted(atOnce, { network, name: atOnce });
    const given = readBasic(authorization);
    if (given === undefined) return undefined;
    const guesser = { network, name: given.username };
    const remembered = hashed?.remembered(given, platform);
    if (remembered !== undefined) return admitted(remembered, guesser);
    refuseIfClosed(guesser);
    const checked = hashed?.check(given, platform, network);
    return settled(checked, guesser);
  }

  /** It is right, which is told to nobody whose guesses are refused: else they could try on, and read 429 as no. */
  function admitted(name: string, guesser: Guesser): string {
    if (slowDown === undefined) return name;
    const isClosed = slowDown.closedForMs(guesser) > 0;
    if (isClosed && !slowDown.hasGotIn(guesser)) refuseIfClosed(guesser);
    // One who shares the address with a guesser does not start the guesser's count anew while it is closed.
    if (!isClosed) slowDown.succeeded(guesser);
    return name;
  }

  function refuseIfClosed(guesser: Guesser): void {
    const closedForMs = slowDown?.closedForMs(guesser) ?? 0;
    if (closedForMs > 0 && slowDown !== undefined) throw slowDown.refusal(guesser, closedForMs);
  }

  /** The failure is counted before its answer is held back: who hangs up does not get the guess for free. */
  async function settled(checked: Promise<Authenticated> | undefined, guesser: Guesser): Promise<Authenticated> {
    const name = await checked;
    if (name === undefined) await slowDown?.failed(guesser);
    else slowDown?.succeeded(guesser);
    return name;
  }

  const authenticate = (request: AuthenticationRequest): Authenticated | Promise<Authenticated> => {
    const { authorization } = request;
    if (authorization === undefined) return byCertificate(request);
    const token = sorted.issuers.length === 0 ? undefined : readBearer(authorization);
    if (token === undefined) return byPassword(authorization, request);
    // No user name is known before the token is verified. No signature is guessed either: tokens are never refused unread.
    return settled(byToken(token, request.platform), { network: networkOf(request.peer?.address), name: "\nbearer" });
  };
  const names = new Set([...sorted.passwords, ...sorted.hashes].map(({ username }) => username));
  return Object.assign(authenticate, {
    challenge: challengeOf(sorted),
    knows: (username: string) => names.has(username),
  });
}

/** Every scheme that could help; basic where none would, since a 401 must name one. */
function challengeOf({ passwords, hashes, issuers, certificates }: SortedCredentials): string {
  const realm = 'realm="service broker"';
  const schemes = [
    ...(passwords.length + hashes.length > 0 ? [`Basic ${realm}, charset="UTF-8"`] : []),
    ...(issuers.length > 0 ? [`Bearer ${realm}`] : []),
    ...(certificates.length > 0 ? [`Certificate ${realm}`] : []),
  ];
  return schemes.length === 0 ? `Basic ${realm}, charset="UTF-8"` : schemes.join(", ");
}
