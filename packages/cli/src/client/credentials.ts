import type { ClientOptions } from "@osbert/protocol/client";
import { CommandError } from "./exit-status.js";

/** Who the user is to the broker, and where that stands: the place may be told, what stands there never. */
export interface Login {
  readonly credentials: NonNullable<ClientOptions["credentials"]>;
  /** "OSBERT_LOGIN", or a file. */
  readonly place: string;
}

/** How to log in, for whoever has not, or in vain. */
export const loginHint = "set OSBERT_LOGIN=name:password or OSBERT_TOKEN, or use --credentials-file";

/**
 * From the file if one is named, else from the environment: a name and a password, or a bearer token. There is no option for them, as
 * every user of the machine can read the command line of a process. No error repeats them.
 */
export async function readLogin(
  env: Readonly<Record<string, string | undefined>>,
  file: string | undefined,
  read: (file: string) => Promise<string>,
): Promise<Login | undefined> {
  if (file !== undefined) {
    const [line = ""] = (await read(file)).split(/\r?\n/, 1);
    const token = /^Bearer +(.*)$/i.exec(line)?.[1];
    return token === undefined ? basic(line, file) : bearer(token, file);
  }
  // An empty variable is how a shell takes one back.
  const { OSBERT_LOGIN: pair = "", OSBERT_TOKEN: token = "", OSBERT_CREDENTIALS: accepted = "" } = env;
  if (pair !== "" && token !== "")
    throw new CommandError("usage", "both OSBERT_LOGIN and OSBERT_TOKEN are set; unset one of them");
  if (pair !== "") return basic(pair, "OSBERT_LOGIN");
  if (token !== "") return bearer(token, "OSBERT_TOKEN");
  return accepted === ""
    ? undefined
    : basic(loginAmong(accepted, "OSBERT_CREDENTIALS", "OSBERT_LOGIN"), "OSBERT_CREDENTIALS");
}

/**
 * OSBERT_CREDENTIALS says to `osbert serve` who may come in. A single name and password there is also who the user is, as it always was; of
 * several nobody knows which one is meant.
 */
export function loginAmong(text: string, accepted: string, login: string): string {
  const [only = "", ...others] = text.split("\n").filter((line) => line.trim() !== "");
  if (others.length === 0) return only;
  throw new CommandError(
    "usage",
    `${accepted} has several lines: it says who may come in to a broker that runs here. Who you are belongs into ${login}=name:password.`,
  );
}

function basic(text: string, place: string): Login {
  const colon = text.indexOf(":");
  if (colon < 1) throw new CommandError("usage", `${place} must look like name:password`);
  return { credentials: { username: text.slice(0, colon), password: text.slice(colon + 1) }, place };
}

function bearer(token: string, place: string): Login {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CommandError("usage", `${place} must hold one token, without spaces`);
  return { credentials: `Bearer ${token}`, place };
}
