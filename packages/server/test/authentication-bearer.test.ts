import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { manualClock } from "@osbert/journal/testing";
import { exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { TokenIssuer } from "../src/authentication/index.js";
import { guarded } from "./authentication-lab.js";

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

const issuer = "https://issuer.example";
const audience = "broker";
let pair: KeyPair;
let successor: KeyPair;
let rsa: KeyPair;

beforeAll(async () => {
  [pair, successor, rsa] = await Promise.all([
    generateKeyPair("ES256", { extractable: true }),
    generateKeyPair("ES256", { extractable: true }),
    generateKeyPair("RS256", { extractable: true }),
  ]);
});

interface Wanted {
  readonly key?: KeyPair;
  readonly kid?: string | null;
  readonly alg?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

const now = () => Math.floor(Date.now() / 1_000);

async function token({ key = pair, kid = "k1", alg = "ES256", claims = {} }: Wanted = {}): Promise<string> {
  const all = { iss: issuer, aud: audience, sub: "cloud-controller", exp: now() + 600, ...claims };
  const jwt = await new SignJWT(all).setProtectedHeader({ alg, ...(kid !== null && { kid }) }).sign(key.privateKey);
  return `Bearer ${jwt}`;
}

async function publicKey({ publicKey: key }: KeyPair, kid?: string): Promise<JWK> {
  return { ...(await exportJWK(key)), ...(kid !== undefined && { kid }), use: "sig" };
}

const withKeys = async (more: Partial<TokenIssuer> = {}): Promise<TokenIssuer> => ({
  issuer,
  audience,
  keys: { keys: [await publicKey(pair, "k1"), await publicKey(rsa, "r1")] },
  ...more,
});

/** A key server on loopback that answers what the test says. */
async function keyServer(): Promise<{
  readonly url: string;
  readonly asked: () => number;
  answer: { status: number; body: string; headers?: Record<string, string> } | "nothing";
  close(): Promise<void>;
}> {
  let asked = 0;
  const server: Server = createServer((_request, response) => {
    asked++;
    if (control.answer === "nothing") return;
    response.writeHead(control.answer.status, control.answer.headers).end(control.answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  const control = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    asked: () => asked,
    answer: { status: 200, body: '{"keys":[]}' } as
      | { status: number; body: string; headers?: Record<string, string> }
      | "nothing",
    close,
  };
  return control;
}

const setOf = (...keys: JWK[]) => ({ status: 200, body: JSON.stringify({ keys }) });

describe("bearer tokens with given keys", () => {
  test("a token for this broker is let in, and its subject is who asked", async () => {
    const names: unknown[] = [];
    const { ask } = await guarded({
      credentials: [{ bearer: await withKeys() }],
      admitted: (credential) => void names.push(credential),
    });
    expect((await ask(await token())).status).toBe(200);
    expect((await ask(await token({ key: rsa, kid: "r1", alg: "RS256" }))).status).toBe(200);
    expect((await ask(await token({ claims: { aud: ["other", audience] } }))).status).toBe(200);
    expect((await ask((await token()).replace("Bearer", "bearer "))).status).toBe(200);
    expect(names).toEqual(Array(4).fill("cloud-controller"));
  });

  test("anything else is a 401 that names the scheme and not the fault", async () => {
    const { ask } = await guarded({
      credentials: [{ bearer: await withKeys({ clockToleranceSeconds: 5 }) }],
      authentication: { slowDown: "none" },
    });
    const good = await token();
    const [head = "", body = "", signature = ""] = good.split(".");
    const claims = { iss: issuer, aud: audience, sub: "cloud-controller", exp: now() + 600 };
    const publicPem = new TextEncoder().encode(await exportSPKI(rsa.publicKey));
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "r1" }).sign(publicPem);
    const modulus = new TextEncoder().encode((await exportJWK(rsa.publicKey)).n);
    const withModulus = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "r1" }).sign(modulus);
    const forged = Buffer.from(JSON.stringify({ ...claims, sub: "admin" })).toString("base64url");
    const own = await new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", jwk: await publicKey(successor) })
      .sign(successor.privateKey);
    const wrong = {
      "another issuer": await token({ claims: { iss: "https://other.example" } }),
      "no issuer": await token({ claims: { iss: undefined } }),
      "another audience": await token({ claims: { aud: "other" } }),
      "no audience": await token({ claims: { aud: undefined } }),
      expired: await token({ claims: { exp: now() - 60 } }),
      "without an end": await token({ claims: { exp: undefined } }),
      "not yet valid": await token({ claims: { nbf: now() + 60 } }),
      "without a subject": await token({ claims: { sub: undefined } }),
      "with an empty subject": await token({ claims: { sub: "" } }),
      "with a number for a subject": await token({ claims: { sub: 1 } }),
      "with a control character in the subject": await token({ claims: { sub: "a\nb" } }),
      "with a very long subject": await token({ claims: { sub: "a".repeat(256) } }),
      "alg none": `Bearer ${new UnsecuredJWT(claims).encode()}`,
      "HS256 with the public key": `Bearer ${confused}`,
      "HS256 with the modulus": `Bearer ${withModulus}`,
      "signed with another key": await token({ key: successor }),
      "with its own key": `Bearer ${own}`,
      "of a key that is not known": await token({ kid: "k9" }),
      "with another body": `${head}.${forged}.${signature}`,
      "without a signature": `${head}.${body}.`,
      "of two parts": `${head}.${body}`,
      garbage: "Bearer garbage",
      empty: "Bearer",
      "very long": `${good}${"A".repeat(15_000)}`,
    };
    const bodies = new Set<string>();
    for (const [what, authorization] of Object.entries(wrong)) {
      const { status, headers, body: answer } = await ask(authorization);
      expect([what, status]).toEqual([what, 401]);
      expect(headers["www-authenticate"]).toBe('Bearer realm="service broker"');
      bodies.add(JSON.stringify(answer));
    }
    expect(bodies.size).toBe(1);
    expect((await ask(await token({ claims: { exp: now() - 2 } }))).status).toBe(200);
  });

  test("claims and scopes can be asked for, and another claim can name the caller", async () => {
    const bearer = await withKeys({
      claims: { tenant: "t1", admin: true },
      scopes: ["broker.read", "broker.write"],
      nameClaim: "client_id",
    });
    const { ask } = await guarded({ credentials: [{ bearer }], authentication: { slowDown: "none" } });
    const right = { tenant: "t1", admin: true, scope: "broker.write openid broker.read", client_id: "cf" };
    const status = async (claims: Record<string, unknown>) => (await ask(await token({ claims }))).status;
    expect(await status(right)).toBe(200);
    expect(await status({ ...right, tenant: ["t0", "t1"] })).toBe(200);
    expect(await status({ ...right, scope: undefined, scp: ["broker.read", "broker.write"] })).toBe(200);
    expect(await status({ ...right, tenant: "t2" })).toBe(401);
    expect(await status({ ...right, admin: "true" })).toBe(401);
    expect(await status({ ...right, admin: undefined })).toBe(401);
    expect(await status({ ...right, scope: "broker.read" })).toBe(401);
    expect(await status({ ...right, scope: "broker.readbroker.write" })).toBe(401);
    expect(await status({ ...right, scope: undefined })).toBe(401);
    expect(await status({ ...right, client_id: undefined })).toBe(401);
  });

  test("a token is good for the platform of its issuer alone, beside passwords for others", async () => {
    const { ask } = await guarded({
      credentials: [
        { bearer: await withKeys(), platform: "east" },
        { bearer: await withKeys({ issuer: "https://west.example" }), platform: "west" },
        { username: "platform", password: "secret" },
      ],
    });
    const status = async (platform: string, iss: string) =>
      (await ask(await token({ claims: { iss } }), { path: `/${platform}/v2/catalog` })).status;
    expect(await status("east", issuer)).toBe(200);
    expect(await status("west", "https://west.example")).toBe(200);
    expect(await status("west", issuer)).toBe(401);
    expect(await status("east", "https://west.example")).toBe(401);
    const { headers } = await ask(undefined, { path: "/east/v2/catalog" });
    expect(headers["www-authenticate"]).toBe(
      'Basic realm="service broker", charset="UTF-8", Bearer realm="service broker"',
    );
  });

  test("a token without a key's id may be signed with any of the keys", async () => {
    const keys = { keys: [await publicKey(pair), await publicKey(successor)] };
    const { ask } = await guarded({ credentials: [{ bearer: await withKeys({ keys }) }] });
    expect((await ask(await token({ kid: null }))).status).toBe(200);
    expect((await ask(await token({ kid: null, key: successor }))).status).toBe(200);
    const stranger = await generateKeyPair("ES256");
    expect((await ask(await token({ kid: null, key: stranger }))).status).toBe(401);
  });

  test("only the algorithms that are named are taken", async () => {
    const { ask } = await guarded({ credentials: [{ bearer: await withKeys({ algorithms: ["RS256"] }) }] });
    expect((await ask(await token({ key: rsa, kid: "r1", alg: "RS256" }))).status).toBe(200);
    expect((await ask(await token())).status).toBe(401);
  });

  test.each<[string, Partial<TokenIssuer>]>([
    ["HS256 is none of them", { algorithms: ["HS256" as "RS256"] }],
    ["needs an algorithm", { algorithms: [] }],
    ["an issuer and an audience", { audience: [] }],
    ["an issuer and an audience", { audience: "" }],
    ["from 0 to 300", { clockToleranceSeconds: 86_400 }],
    ["is neither", { keys: "file:///etc/keys" }],
    ["is neither", { keys: "keys" }],
    ["must not hold a password", { keys: "https://a:b@issuer.example/keys" }],
    ["malformed", { keys: {} as never }],
  ])("a setting that makes no sense is refused at the start: %s", async (reason, more) => {
    await expect(guarded({ credentials: [{ bearer: await withKeys(more) }] })).rejects.toThrow(reason);
  });
});

describe("bearer tokens with a key server", () => {
  test("keys are fetched once, and again when a token has a new one", async () => {
    const keys = await keyServer();
    keys.answer = setOf(await publicKey(pair, "k1"));
    const { ask } = await guarded({ credentials: [{ bearer: await withKeys({ keys: keys.url, keysCooldownMs: 0 }) }] });
    expect(keys.asked()).toBe(0);
    for (let time = 0; time < 3; time++) expect((await ask(await token())).status).toBe(200);
    expect(keys.asked()).toBe(1);
    keys.answer = setOf(await publicKey(successor, "k2"), await publicKey(pair, "k1"));
    expect((await ask(await token({ key: successor, kid: "k2" }))).status).toBe(200);
    expect((await ask(await token())).status).toBe(200);
    expect(keys.asked()).toBe(2);
    // The old one is withdrawn; the next unknown key makes the broker see it.
    keys.answer = setOf(await publicKey(successor, "k2"));
    expect((await ask(await token({ kid: "k3" }))).status).toBe(401);
    expect((await ask(await token())).status).toBe(401);
    expect((await ask(await token({ key: successor, kid: "k2" }))).status).toBe(200);
  });

  test("made-up keys do not make the broker ask again and again", async () => {
    const keys = await keyServer();
    keys.answer = setOf(await publicKey(pair, "k1"));
    const { ask } = await guarded({
      credentials: [{ bearer: await withKeys({ keys: keys.url }) }],
      authentication: { slowDown: "none" },
    });
    expect((await ask(await token())).status).toBe(200);
    for (let time = 0; time < 5; time++) expect((await ask(await token({ kid: `made-up-${time}` }))).status).toBe(401);
    expect(keys.asked()).toBe(1);
  });

  test("while the keys cannot be reached nobody is let in, and all are told to come back", async () => {
    const keys = await keyServer();
    const { url } = keys;
    await keys.close();
    const told: unknown[] = [];
    const { ask, events } = await guarded({
      credentials: [{ bearer: await withKeys({ keys: url }) }, { username: "platform", password: "secret" }],
      onError: (error) => void told.push(error),
    });
    const answer = await ask(await token());
    expect(answer.status).toBe(503);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
    expect(answer.body.description).toContain("keys");
    expect(JSON.stringify(answer.body)).not.toContain(url);
    expect(String(told[0])).toContain(url);
    expect(events).toContainEqual({ kind: "keys unavailable", issuer, error: told[0] });
    expect((await ask(await token({ claims: { iss: "https://other.example" } }))).status).toBe(401);
    expect((await ask(`Basic ${Buffer.from("platform:secret").toString("base64")}`)).status).toBe(200);
  });

  test("keys that are known are used while the server is down", async () => {
    const keys = await keyServer();
    keys.answer = setOf(await publicKey(pair, "k1"));
    const { ask } = await guarded({ credentials: [{ bearer: await withKeys({ keys: keys.url, keysCooldownMs: 0 }) }] });
    expect((await ask(await token())).status).toBe(200);
    await keys.close();
    expect((await ask(await token())).status).toBe(200);
    expect((await ask(await token({ key: successor, kid: "k2" }))).status).toBe(503);
    expect((await ask(await token())).status).toBe(200);
  });

  test("a key server that says nonsense, too much, elsewhere or nothing counts as one that is down", async () => {
    const elsewhere = await keyServer();
    elsewhere.answer = setOf(await publicKey(pair, "k1"));
    const answers = {
      nonsense: { status: 200, body: "<html>" },
      "another object": { status: 200, body: "{}" },
      "an error": { status: 500, body: JSON.stringify({ keys: [await publicKey(pair, "k1")] }) },
      "too much": {
        status: 200,
        body: JSON.stringify({ keys: [await publicKey(pair, "k1")], x: "x".repeat(1_100_000) }),
      },
      "too many": { status: 200, body: JSON.stringify({ keys: Array(101).fill(await publicKey(pair, "k1")) }) },
      elsewhere: { status: 302, body: "", headers: { location: elsewhere.url } },
      nothing: "nothing" as const,
    };
    for (const [what, answer] of Object.entries(answers)) {
      const keys = await keyServer();
      keys.answer = answer;
      const { ask } = await guarded({
        credentials: [{ bearer: await withKeys({ keys: keys.url, keysTimeoutMs: 200 }) }],
      });
      expect([what, (await ask(await token())).status]).toEqual([what, 503]);
      expect([what, keys.asked()]).toEqual([what, 1]);
    }
    expect(elsewhere.asked()).toBe(0);
  });

  test("a server that is down is asked once for many tokens, and again after a while", async () => {
    const clock = manualClock();
    const keys = await keyServer();
    keys.answer = { status: 500, body: "" };
    const { ask } = await guarded({
      credentials: [{ bearer: await withKeys({ keys: keys.url }) }],
      authentication: { clock },
    });
    for (let time = 0; time < 5; time++) expect((await ask(await token())).status).toBe(503);
    expect(keys.asked()).toBe(1);
    keys.answer = setOf(await publicKey(pair, "k1"));
    await clock.advance(2_000);
    expect((await ask(await token())).status).toBe(200);
    expect(keys.asked()).toBe(2);
  });
});
