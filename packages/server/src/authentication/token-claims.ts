import { decodeJwt } from "jose";
import { readBearer } from "./bearer.js";

/**
 * What the token in a header claims; `undefined`: there is none in it. It is not verified here: to be believed only of a header with which an
 * `Authenticate` has let its caller in.
 */
export function tokenClaims(authorization: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const token = authorization === undefined ? undefined : readBearer(authorization);
  return token === undefined ? undefined : decodeJwt(token);
}
