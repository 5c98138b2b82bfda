import type { ClientOptions } from "@osbert/protocol/client";
import { CommandError } from "./exit-status.js";

type Credentials = ClientOptions["credentials"];

/**
 * From the file if one is named, else from the environment: a name and a password, or a bearer token. There is no option for them, as
 * every user of the machine can read the command line of a process. No error repeats them.
 */
export async function readCredentials(
  env: Readonly<Record<string, string | undefined>>,
  file: string | undefined,
  read: (file: string) => Promise<string>,
): Promise<Credentials> {
  if (file !== undefined) {
    const [line = ""] = (await read(file)).split(/\r?\n/, 1);
    const token = /^Bearer +(.*)$/i.exec(line)?.[1];
    return token === undefined ? basic(line, file) : bearer(token, file);
  }
  // An empty variable is how a shell takes one back.
  const { OSBERT_CREDENTIALS: pair = "", OSBERT_TOKEN: token = "" } = env;
  if (pair !== "" && token !== "")
    throw new CommandError("usage", "both OSBERT_CREDENTIALS and OSBERT_TOKEN are set; unset one of them");
  if (pair !== "") return basic(pair, "OSBERT_CREDENTIALS");
  return token === "" ? undefined : bearer(token, "OSBERT_TOKEN");
}

function basic(text: string, where: string): Credentials {
  const colon = text.indexOf(":");
  if (colon < 1) throw new CommandError("usage", `${where} must look like name:password`);
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function bearer(token: string, where: string): Credentials {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CommandError("usage", `${where} must hold one token, without spaces`);
  return `Bearer ${token}`;
}
