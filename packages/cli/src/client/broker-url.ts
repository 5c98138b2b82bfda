import { CommandError } from "./exit-status.js";

export const defaultUrl = "http://127.0.0.1:8080";

/** Where the broker is, without `/v2`, with the platform's prefix. A password in it is refused, and not repeated. */
export function brokerUrl(text: string, platform: string | undefined): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // "localhost:8080" is a URL too, of the scheme "localhost".
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "")
    throw new CommandError("usage", `the broker's URL must begin with http:// or https://, such as ${defaultUrl}`);
  if (url.username !== "" || url.password !== "")
    throw new CommandError(
      "usage",
      "the broker's URL must not contain a name and a password: every user of the machine can read the command line of a process.\n" +
        "Put them into the environment as OSBERT_LOGIN=name:password, or into a file for --credentials-file.",
    );
  if (url.search !== "" || url.hash !== "")
    throw new CommandError("usage", "the broker's URL must not have a query (?) or a fragment (#)");
  if (platform !== undefined && !/^[A-Za-z0-9_.~-]+$/.test(platform.replace(/^\.+$/, "")))
    throw new CommandError("usage", "--platform must be the name that stands in the broker's URLs, such as cf");
  const base = `${url.origin}${url.pathname.replace(/\/+$/, "").replace(/\/v2$/, "")}`;
  return platform === undefined ? base : `${base}/${platform}`;
}

/** Whether what is sent there can be read on the way. */
export function isOpenToReaders(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !/^(localhost|127(\.[0-9]+){3}|\[::1\])$/.test(hostname);
}
