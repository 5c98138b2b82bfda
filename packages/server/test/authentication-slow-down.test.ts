import { type ManualClock, manualClock } from "@osbert/journal/testing";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { describe, expect, test, vi } from "vitest";
import { BoundedMap } from "../src/authentication/bounded-map.js";
import { type AuthenticationEvent, authentication, hashPassword } from "../src/authentication/index.js";
import { networkOf } from "../src/authentication/network-address.js";
import { delayMs, SlowDown } from "../src/authentication/slow-down.js";
import { type Asked, basic, type Guarded, type GuardedOptions, guarded } from "./authentication-lab.js";

const credentials = [{ username: "platform", password: "secret" }];
const right = basic("platform", "secret");
const wrong = basic("platform", "guess");

interface Slow extends Guarded {
  readonly clock: ManualClock;
  /** Asks as if from this address. */
  from(address: string, authorization?: string): Promise<Asked>;
  /** Fails so often, moving the clock on for each answer. */
  fail(address: string, times: number, authorization?: string): Promise<void>;
  /** Sends guesses whose answers are held back, and waits until they are. */
  hold(address: string, times: number, authorization?: string): Promise<Promise<Asked>[]>;
  readonly delays: () => readonly number[];
}

async function slow(options: GuardedOptions = { credentials }): Promise<Slow> {
  const clock = manualClock();
  const guard = await guarded({
    trustProxy: true,
    ...options,
    authentication: { clock, ...options.authentication },
  });
  const delays = () => guard.events.flatMap((event) => (event.kind === "authentication failed" ? [event.delayMs] : []));
  const from = (address: string, authorization?: string) =>
    guard.ask(authorization, { headers: { "x-forwarded-for": address } });
  const hold = async (address: string, times: number, authorization = wrong) => {
    const before = delays().length;
    const answers = Array.from({ length: times }, () => from(address, authorization));
    await vi.waitFor(() => expect(delays().length).toBe(before + times), { timeout: 10_000 });
    return answers;
  };
  return {
    ...guard,
    clock,
    from,
    hold,
    delays,
    async fail(address, times, authorization = wrong) {
      for (let time = 0; time < times; time++) {
        const [answer] = await hold(address, 1, authorization);
        await clock.advance(delays().at(-1) ?? 0);
        expect((await answer)?.status).toBe(401);
      }
    },
  };
}

/** Until the address is closed: eight answers are held back, the ninth guess closes it. */
async function close(guard: Slow, address: string): Promise<Promise<Asked>[]> {
  await guard.fail(address, 5);
  const held = await guard.hold(address, 8);
  expect((await guard.from(address, wrong)).status).toBe(429);
  return held;
}

const held = async (guard: Slow, answers: Promise<Asked>[]) => {
  await guard.clock.advance(10_000);
  return (await Promise.all(answers)).map(({ status }) => status);
};

describe("repeated failures", () => {
  test("the first five are answered at once, later ones after a delay that doubles up to five seconds", async () => {
    const guard = await slow();
    await guard.fail("10.0.0.1", 14);
    expect(guard.delays()).toEqual([0, 0, 0, 0, 0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
  });

  test("an answer that is held back comes when its time has come, not before", async () => {
    const guard = await slow();
    await guard.fail("10.0.0.1", 5);
    const [answer] = await guard.hold("10.0.0.1", 1);
    let status = 0;
    void answer?.then((given) => {
      status = given.status;
    });
    await guard.clock.advance(99);
    expect(status).toBe(0);
    await guard.clock.advance(1);
    await vi.waitFor(() => expect(status).toBe(401));
  });

  test("what is right is never delayed, and starts the count anew", async () => {
    const guard = await slow();
    await guard.fail("10.0.0.1", 8);
    expect((await guard.from("10.0.0.1", right)).status).toBe(200);
    await guard.fail("10.0.0.1", 6);
    expect(guard.delays().slice(8)).toEqual([0, 0, 0, 0, 0, 100]);
  });

  test("after a quarter of an hour of peace they are forgotten", async () => {
    const guard = await slow();
    await guard.fail("10.0.0.1", 7);
    await guard.clock.advance(900_001);
    await guard.fail("10.0.0.1", 1);
    expect(guard.delays().at(-1)).toBe(0);
  });

  test("they count for a user name from an address, and nobody else is slowed down", async () => {
    const guard = await slow();
    await guard.fail("10.0.0.1", 7);
    await guard.fail("10.0.0.2", 1);
    await guard.fail("10.0.0.1", 1, basic("another", "guess"));
    expect(guard.delays().slice(7)).toEqual([0, 0]);
  });

  test("many user names from one address are slowed down, too", async () => {
    const guard = await slow();
    for (let name = 0; name < 22; name++) await guard.fail("10.0.0.1", 1, basic(`name-${name}`, "guess"));
    expect(guard.delays().slice(18)).toEqual([0, 0, 100, 200]);
  });

  test("what holds no guess is answered at once, however often it comes", async () => {
    const guard = await slow();
    for (const authorization of [undefined, "Basic", "Basic !!!", "Digest x", "Bearer x"]) {
      for (let time = 0; time < 8; time++) expect((await guard.from("10.0.0.1", authorization)).status).toBe(401);
    }
    expect(guard.delays()).toEqual([]);
  });

  test("without a proxy that is trusted, nobody can make up an address", async () => {
    const guard = await slow({ credentials, trustProxy: false });
    for (let time = 0; time < 6; time++) await guard.fail(`10.0.0.${time}`, 1);
    expect(guard.delays()).toEqual([0, 0, 0, 0, 0, 100]);
    expect(guard.events).toContainEqual(expect.objectContaining({ network: "127.0.0.1" }));
  });

  test("it can be left to something in front of the broker", async () => {
    const guard = await guarded({ credentials, authentication: { slowDown: "none", clock: manualClock() } });
    for (let time = 0; time < 20; time++) expect((await guard.ask(wrong)).status).toBe(401);
  });

  test("failed tokens are slowed down, good ones never", async () => {
    const pair = await generateKeyPair("ES256", { extractable: true });
    const bearer = { issuer: "i", audience: "a", keys: { keys: [await exportJWK(pair.publicKey)] } };
    const guard = await slow({ credentials: [{ bearer }] });
    await guard.fail("10.0.0.1", 6, "Bearer a.b.c");
    expect(guard.delays().at(-1)).toBe(100);
    const answers = await guard.hold("10.0.0.1", 8, "Bearer a.b.c");
    expect((await guard.from("10.0.0.1", "Bearer a.b.c")).status).toBe(429);
    const good = await new SignJWT({ iss: "i", aud: "a", sub: "s", exp: 4_000_000_000 })
      .setProtectedHeader({ alg: "ES256" })
      .sign(pair.privateKey);
    expect((await guard.from("10.0.0.1", `Bearer ${good}`)).status).toBe(200);
    expect(await held(guard, answers)).toEqual(Array(8).fill(401));
  });
});

describe("too many guesses at a time", () => {
  test("they are refused with a time to come back, unheard: a right guess among them is refused like the others", async () => {
    const guard = await slow();
    const answers = await close(guard, "10.0.0.1");
    const { status, headers, body } = await guard.from("10.0.0.1", right);
    expect(status).toBe(429);
    expect(Number(headers["retry-after"])).toBe(5);
    expect(body).toEqual((await guard.from("10.0.0.1", wrong)).body);
    expect(await held(guard, answers)).toEqual(Array(8).fill(401));
    expect((await guard.from("10.0.0.1", right)).status).toBe(200);
  });

  test("nobody is shut out from another address", async () => {
    const guard = await slow({
      credentials: [
        ...credentials,
        { username: "platform", passwordHash: await hashPassword("hashed", { ln: 10, r: 8, p: 1 }) },
      ],
    });
    const answers = await close(guard, "10.0.0.1");
    expect((await guard.from("10.0.0.2", right)).status).toBe(200);
    expect((await guard.from("10.0.0.3", basic("platform", "hashed"))).status).toBe(200);
    await held(guard, answers);
  });

  test("who has got in before is let in, even if a guesser has the same address", async () => {
    const guard = await slow();
    expect((await guard.from("10.0.0.1", right)).status).toBe(200);
    const answers = await close(guard, "10.0.0.1");
    for (let time = 0; time < 3; time++) expect((await guard.from("10.0.0.1", right)).status).toBe(200);
    // Which does not open the address for the guesser.
    expect((await guard.from("10.0.0.1", wrong)).status).toBe(429);
    await held(guard, answers);
  });

  test("no hash is calculated for guesses that are refused", async () => {
    const guard = await slow({
      credentials: [{ username: "platform", passwordHash: await hashPassword("hashed", { ln: 10, r: 8, p: 1 }) }],
    });
    const answers = await close(guard, "10.0.0.1");
    const hashes = () => guard.events.filter(({ kind }) => kind === "password hashed").length;
    const before = hashes();
    expect((await guard.from("10.0.0.1", basic("platform", "hashed"))).status).toBe(429);
    expect((await guard.from("10.0.0.1", basic("platform", "other"))).status).toBe(429);
    expect(hashes()).toBe(before);
    await held(guard, answers);
  });

  test("one address cannot hold all the room with many user names", async () => {
    const guard = await slow({ credentials, authentication: { slowDown: { freeFailures: 0, mostWaitingPerName: 1 } } });
    const answers: Promise<Asked>[] = [];
    for (let name = 0; name < 8; name++) answers.push(...(await guard.hold("10.0.0.1", 1, basic(`name-${name}`, "x"))));
    expect((await guard.from("10.0.0.1", basic("name-8", "x"))).status).toBe(429);
    const failures = guard.delays().length;
    expect((await guard.from("10.0.0.1", basic("name-9", "x"))).status).toBe(429);
    expect(guard.delays().length).toBe(failures);
    expect((await guard.from("10.0.0.2", right)).status).toBe(200);
    await held(guard, answers);
  });

  test("the room for all is bounded, and who is right does not need it", async () => {
    const guard = await slow({ credentials, authentication: { slowDown: { freeFailures: 0, mostWaiting: 2 } } });
    const answers = [...(await guard.hold("10.0.0.1", 1)), ...(await guard.hold("10.0.0.2", 1))];
    expect((await guard.from("10.0.0.3", wrong)).status).toBe(429);
    expect((await guard.from("10.0.0.4", right)).status).toBe(200);
    await held(guard, answers);
  });

  test("where addresses are not known, what is right is always let in", async () => {
    const clock = manualClock();
    const events: AuthenticationEvent[] = [];
    const authenticate = authentication(credentials, { clock, observe: (event) => void events.push(event) });
    const guess = async (authorization: string) => authenticate({ authorization, platform: "" });
    const guesses = Array.from({ length: 13 }, () => guess(wrong));
    await clock.advance(0);
    await expect(guess(wrong)).rejects.toMatchObject({ code: "too-many-requests", retryAfterSeconds: 5 });
    expect(await guess(right)).toBe("platform");
    await clock.advance(5_000);
    expect(await Promise.all(guesses)).toEqual(Array(13).fill(undefined));
  });
});

describe("what is kept of failures", () => {
  test("is bounded: what was seen longest ago makes room", async () => {
    const events: AuthenticationEvent[] = [];
    const slowDown = new SlowDown({ mostKept: 4 }, manualClock(), (event) => void events.push(event));
    const fail = (name: string) => slowDown.failed({ network: "n", name });
    await fail("first");
    await fail("first");
    for (const name of ["a".repeat(5_000), "b", "c", "d"]) await fail(name);
    await fail("first");
    expect(events.map((event) => event.kind === "authentication failed" && event.failures)).toEqual([
      1, 2, 1, 1, 1, 1, 1,
    ]);
    const map = new BoundedMap<number>(2);
    map.set("a", 1);
    map.set("b", 2);
    map.get("a");
    map.set("c", 3);
    expect([map.get("a"), map.get("b"), map.get("c"), map.size]).toEqual([1, undefined, 3, 2]);
  });

  test("delays never overflow", () => {
    const limits = { firstDelayMs: 100, longestDelayMs: 5_000 };
    expect(delayMs(Number.MAX_SAFE_INTEGER, 5, limits)).toBe(5_000);
    expect(delayMs(5, 5, limits)).toBe(0);
  });

  test.each([
    ["10.1.2.3", "10.1.2.3"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2::6", "2001:db8:1:2::/64"],
    ["2001:db8::6", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::10.1.2.3", "64:ff9b:0:0::/64"],
    ["a socket", "a socket"],
    [undefined, ""],
  ])("the address %s counts as %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
