import { expect, test } from "vitest";
import { mayLeadTo, type Reach, reachOf } from "../src/sources/address-reach.js";
import { parseChallenges } from "../src/sources/challenge.js";
import { nextLink } from "../src/sources/link-header.js";

test("a challenge is found whatever stands around it", () => {
  const bearer = { kind: "bearer", realm: "https://auth.example/token", service: "registry.example" };
  expect(
    parseChallenges('Bearer realm="https://auth.example/token",service="registry.example",scope="a:b:pull,push"'),
  ).toEqual([bearer]);
  expect(parseChallenges('bearer service = registry.example , realm="https://auth.example/token"')).toEqual([bearer]);
  expect(parseChallenges('Negotiate, Basic realm="a \\"b\\", Bearer realm=x", Bearer realm="r"')).toEqual([
    { kind: "basic" },
    { kind: "bearer", realm: "r", service: null },
  ]);
  for (const none of ["", "Digest realm=x", "Bearer", "=", '"', ",,,", "Bearer realm", "x".repeat(10_000)])
    expect(parseChallenges(none)).toEqual([]);
});

test("a next page is found whatever stands around it", () => {
  expect(nextLink('</v2/_catalog?last=a&n=2>; rel="next"')).toBe("/v2/_catalog?last=a&n=2");
  expect(nextLink('<a>; rel=prev, <b>; title="x, y"; rel=next')).toBe("b");
  expect(nextLink('<a>;rel="prev next"')).toBe("a");
  for (const none of [
    "",
    "<a>",
    '<a>; rel="prev"',
    "a; rel=next",
    "<a; rel=next",
    `${"<".repeat(10_000)}`,
    `<a>${"; x".repeat(10_000)}`,
  ])
    expect(nextLink(none)).toBeNull();
});

test("addresses are as near as they are, in every way that they are written", () => {
  const reaches: Readonly<Record<string, Reach>> = {
    "93.184.216.34": "public",
    "2606:2800:220:1::1": "public",
    "10.1.2.3": "private",
    "172.31.0.1": "private",
    "172.32.0.1": "public",
    "192.168.1.1": "private",
    "100.64.0.1": "private",
    "fd12::1": "private",
    "::ffff:10.0.0.1": "private",
    "::ffff:a00:1": "private",
    "64:ff9b::7f00:1": "loopback",
    "127.8.9.1": "loopback",
    "0.0.0.0": "loopback",
    "::1": "loopback",
    "::": "loopback",
    "169.254.169.254": "forbidden",
    "::ffff:a9fe:a9fe": "forbidden",
    "fe80::1": "forbidden",
    "fd00:ec2::254": "forbidden",
    "224.0.0.1": "forbidden",
    "255.255.255.255": "forbidden",
  };
  for (const [address, reach] of Object.entries(reaches)) expect([address, reachOf(address)]).toEqual([address, reach]);
});

test("a server leads to what is as far away as itself, or farther, and nobody leads to what is forbidden", () => {
  const order: readonly Reach[] = ["public", "private", "loopback"];
  order.forEach((source, at) => {
    order.forEach((target, to) => expect(mayLeadTo(source, target)).toBe(to <= at));
    expect(mayLeadTo(source, "forbidden")).toBe(false);
  });
  expect(mayLeadTo("forbidden", "forbidden")).toBe(false);
});
