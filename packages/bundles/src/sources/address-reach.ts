import { BlockList, isIPv6 } from "node:net";

/**
 * From where an address can be reached, from the farthest to the nearest. `forbidden` are those that no source has business with: link-local
 * ones, where clouds hand out the credentials of machines, and those that are no one's.
 */
const reaches = ["public", "private", "loopback", "forbidden"] as const;

export type Reach = (typeof reaches)[number];

/**
 * Whether a server may send Osbert on to an address. A source on the Internet must not make it ask the machines of its own network, which
 * would take it for one of theirs; a source that is itself inside may lead to others there, such as its store of blobs.
 */
export function mayLeadTo(source: Reach, target: Reach): boolean {
  return target !== "forbidden" && reaches.indexOf(target) <= reaches.indexOf(source);
}

export function reachOf(address: string): Reach {
  const plain = embeddedIPv4(address) ?? address;
  const family = isIPv6(plain) ? "ipv6" : "ipv4";
  return networks.find(({ list }) => list.check(plain, family))?.reach ?? "public";
}

const networks = [
  {
    reach: "forbidden",
    list: blockList(["169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "fe80::/10", "ff00::/8", "fd00:ec2::/32"]),
  },
  { reach: "loopback", list: blockList(["0.0.0.0/8", "127.0.0.0/8", "::/127"]) },
  {
    reach: "private",
    list: blockList(["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "fc00::/7"]),
  },
] as const;

function blockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = "", prefix] = subnet.split("/");
    list.addSubnet(network, Number(prefix), isIPv6(network) ? "ipv6" : "ipv4");
  }
  return list;
}

/** IPv4 inside IPv6 (mapped, or by NAT64) reaches what the IPv4 address reaches. */
function embeddedIPv4(address: string): string | undefined {
  const [, dotted, high, low] =
    /^(?:::ffff:|64:ff9b::)(?:([0-9.]+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address) ?? [];
  if (dotted !== undefined) return dotted;
  if (high === undefined || low === undefined) return undefined;
  const [one, other] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [one >> 8, one & 255, other >> 8, other & 255].join(".");
}
