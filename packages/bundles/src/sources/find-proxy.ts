import { BlockList, isIP, isIPv6 } from "node:net";
import { reachOf } from "./address-reach.js";

/** The proxy that a request to an address goes through; `null`: it goes there itself. Throws a WrongProxy. */
export type FindProxy = (url: URL) => ProxyAddress | null;

export interface ProxyAddress {
  readonly isTls: boolean;
  /** Without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** For the proxy alone: never sent to a source, and no credential of a source is ever sent to it. */
  readonly authorization: string | null;
  /** For people: host and port. */
  readonly shown: string;
}

/** A variable of the environment that names no proxy. What stands in it is not repeated: it may hold a password. */
export class WrongProxy extends Error {
  override readonly name = "WrongProxy";
}

export const noProxy: FindProxy = () => null;

/**
 * As `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say, in lower or upper case, lower case first, as with curl. What is on this machine is
 * never asked for through a proxy, to which it would be another machine.
 */
export function findProxy(environment: (name: string) => string | undefined): FindProxy {
  const variable = (name: string) => {
    const found = [name, name.toUpperCase()].find((each) => (environment(each) ?? "").trim() !== "");
    return found === undefined ? null : { name: found, text: (environment(found) ?? "").trim() };
  };
  // Once, and not for each of thousands of requests: to look there takes as long as to write one.
  const [https, http, no] = ["https_proxy", "http_proxy", "no_proxy"].map(variable);
  return (url) => {
    const found = (url.protocol === "https:" ? https : http) ?? null;
    if (found === null || isHere(hostOf(url)) || isExcepted(url, no?.text ?? "")) return null;
    return readProxy(found.text, found.name);
  };
}

function hostOf(url: URL): string {
  return url.hostname.replaceAll(/[[\]]/g, "").toLowerCase().replace(/\.$/, "");
}

function isHere(host: string): boolean {
  if (isIP(host) !== 0) return reachOf(host) === "loopback";
  return host === "localhost" || host.endsWith(".localhost");
}

function readProxy(text: string, name: string): ProxyAddress {
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:") || url.hostname === "")
    throw new WrongProxy(`${name} must be the address of a proxy, such as http://proxy.example:3128`);
  const isTls = url.protocol === "https:";
  const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
  const login = `${decoded(url.username, name)}:${decoded(url.password, name)}`;
  const authorization = login === ":" ? null : `Basic ${Buffer.from(login).toString("base64")}`;
  return { isTls, hostname: hostOf(url), port, authorization, shown: `${url.hostname}:${port}` };
}

function decoded(text: string, name: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new WrongProxy(`the user or the password in ${name} is not validly percent-encoded`);
  }
}

/** Names with all that is below them, addresses, networks (10.0.0.0/8), each with or without a port; `*` is everything. */
function isExcepted(url: URL, exceptions: string): boolean {
  const host = hostOf(url);
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  return exceptions
    .split(/[\s,]+/)
    .filter((each) => each !== "")
    .some((each) => {
      if (each === "*") return true;
      const [, name = each, only] = /^(\[[^\]]*\]|[^:]*):([0-9]+)$/.exec(each) ?? [];
      return (only === undefined || only === port) && covers(name.replaceAll(/[[\]]/g, "").toLowerCase(), host);
    });
}

function covers(exception: string, host: string): boolean {
  const family = isIP(host);
  const [network = "", prefix] = exception.split("/");
  if (family !== 0) {
    if (isIP(network) !== family) return false;
    const list = new BlockList();
    const kind = isIPv6(network) ? "ipv6" : "ipv4";
    if (prefix === undefined) list.addAddress(network, kind);
    else if (/^[0-9]{1,3}$/.test(prefix) && Number(prefix) <= (kind === "ipv6" ? 128 : 32))
      list.addSubnet(network, Number(prefix), kind);
    return list.check(host, kind);
  }
  const name = exception.replace(/^\*?\./, "").replace(/\.$/, "");
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}
