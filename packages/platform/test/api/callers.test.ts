import { generateKeyPairSync, sign } from "node:crypto";
import { expect, test } from "vitest";
import { callersOf, type Grant } from "../../src/api/index.js";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const keys = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "ES256" }] } as never;

function token(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1_000) + 600;
  const signed = `${part({ alg: "ES256", kid: "k" })}.${part({ iss: "https://login.test", aud: "osbert", exp, ...claims })}`;
  const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return `Bearer ${signed}.${signature.toString("base64url")}`;
}

const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;

const grants: readonly Grant[] = [
  { credential: { username: "root", password: "old" }, access: { role: "operate" } },
  { credential: { username: "root", password: "new" }, access: { role: "operate" } },
  {
    credential: { bearer: { issuer: "https://login.test", audience: "osbert", keys } },
    access: { role: "change", spacesClaim: "teams" },
  },
  {
    credential: { certificate: { subject: "CN=deployer" }, name: "deployer" },
    access: { role: "see", spaces: "all" },
  },
];

async function accessWith(authorization: string) {
  const { authenticate, accessOf } = callersOf(grants);
  const name = await authenticate({ authorization, platform: "" });
  return name === undefined ? undefined : accessOf(name, authorization);
}

test("a token has the spaces that it names; it is never taken for a user of the same name", async () => {
  expect(await accessWith(token({ sub: "root", teams: ["a", 7, "b"] }))).toEqual({
    role: "change",
    spaces: ["a", "b"],
  });
  expect(await accessWith(token({ sub: "anna", teams: "a b" }))).toEqual({ role: "change", spaces: ["a", "b"] });
  expect(await accessWith(token({ sub: "anna" }))).toEqual({ role: "change", spaces: [] });
  expect(await accessWith(token({ sub: "anna", aud: "other", teams: ["a"] }))).toBeUndefined();
  expect(await accessWith(basic("root:old"))).toEqual({ role: "operate" });
  expect(await accessWith(basic("root:new"))).toEqual({ role: "operate" });
  expect(await accessWith(basic("deployer:x"))).toBeUndefined();
});

test("a certificate's name is no user's", () => {
  const { accessOf } = callersOf(grants);
  expect(accessOf("deployer", undefined)).toEqual({ role: "see", spaces: "all" });
  expect(accessOf("root", undefined)).toBeUndefined();
});

test("one name with two roles is refused at start", () => {
  const other: Grant = { credential: { username: "root", password: "x" }, access: { role: "see", spaces: [] } };
  expect(() => callersOf([...grants, other])).toThrow("root is there twice");
});
