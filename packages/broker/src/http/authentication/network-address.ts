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
