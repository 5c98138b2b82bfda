import { isIPv6 } from "node:net";

/**
 * What counts as one place that requests come from: an IPv4 address, or the first 64 bits of an IPv6 address, since whoever has one of
 * those has all the addresses below it.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return "";
  // Nearly all requests come from the platform, hence from one address; asking Node what it is takes longer than finding its password.
  if (address !== last.address) last = { address, network: networkOfAnother(address) };
  return last.network;
}

/**
 * The network around one that `networkOf` has told: the first 24 bits of an IPv4 address, the first 48 of an IPv6 address, as providers
 * hand them out. What is neither stands alone.
 */
export function widerNetworkOf(network: string): string {
  const [, v4] = /^(\d+\.\d+\.\d+)\.\d+$/.exec(network) ?? [];
  if (v4 !== undefined) return `${v4}.0/24`;
  const [, v6] = /^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):[0-9a-f]+::\/64$/.exec(network) ?? [];
  return v6 === undefined ? network : `${v6}::/48`;
}

let last = { address: "", network: "" };

function networkOfAnother(address: string): string {
  const bare = address.split("%", 1)[0] ?? "";
  if (!isIPv6(bare)) return address.slice(0, 64);
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
  return mapped?.[1] ?? `${groupsOf(bare).slice(0, 4).join(":")}::/64`;
}

function groupsOf(address: string): string[] {
  const [head = "", tail] = address.split("::", 2);
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const missing = tail === undefined ? 0 : 8 - before.length - widthOf(after);
  return [...before, ...new Array<string>(Math.max(0, missing)).fill("0"), ...after].map((group) =>
    group.includes(".") ? group : Number.parseInt(group, 16).toString(16),
  );
}

/** An IPv4 address at the end takes the room of two groups. */
function widthOf(groups: readonly string[]): number {
  return groups.length + (groups.at(-1)?.includes(".") === true ? 1 : 0);
}
