import { manualClock } from "@osbert/journal/testing";
import { describe, expect, test, vi } from "vitest";
import { hashedPasswords } from "../src/authentication/hashed-passwords.js";
import { hashPassword, parsePasswordHash } from "../src/authentication/index.js";
import { plainPasswords } from "../src/authentication/plain-passwords.js";
import { Tries } from "../src/authentication/tries.js";
import { NoRoom, type Rank, Turns } from "../src/authentication/turns.js";
import { basic, type Guarded, guarded } from "./authentication-lab.js";
import { gate } from "./gate.js";

/** As cheap as a hash may be: what is tested is not the cost. */
const cheap = { ln: 10, r: 8, p: 1 };
const dearer = { ln: 11, r: 8, p: 1 };

const hashesDone = ({ events }: Guarded) =>
  events.flatMap((event) => (event.kind === "password hashed" ? [event.against] : []));

describe("hashed passwords", () => {
  test("a password is told by its hash, and a wrong one is a 401 that does not say what was wrong", async () => {
    const { ask } = await guarded({
      credentials: [{ username: "platform", passwordHash: await hashPassword("one:two ü", cheap) }],
    });
    expect((await ask(basic("platform", "one:two ü"))).status).toBe(200);
    const answers = [
      await ask(basic("platform", "one:two")),
      await ask(basic("nobody", "one:two ü")),
      await ask(basic("", "")),
      await ask("Basic !!!"),
      await ask(),
    ];
    for (const { status, headers } of answers) {
      expect(status).toBe(401);
      expect(headers["www-authenticate"]).toBe('Basic realm="service broker", charset="UTF-8"');
    }
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  test("the usual cost works, too", async () => {
    const passwordHash = await hashPassword("secret");
    expect(passwordHash).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    const { ask } = await guarded({ credentials: [{ username: "platform", passwordHash }] });
    expect((await ask(basic("platform", "secret"))).status).toBe(200);
    expect((await ask(basic("platform", "Secret"))).status).toBe(401);
  });

  test("two passwords of one user name are valid at a time, hashed or not", async () => {
    const { ask } = await guarded({
      credentials: [
        { username: "platform", passwordHash: await hashPassword("old", cheap) },
        { username: "platform", passwordHash: await hashPassword("new", dearer) },
        { username: "platform", password: "plain" },
      ],
    });
    for (const password of ["old", "new", "plain"]) {
      expect((await ask(basic("platform", password))).status).toBe(200);
    }
    expect((await ask(basic("platform", "other"))).status).toBe(401);
  });

  test("an unknown user name costs as many hashes as a known one", async () => {
    const guard = await guarded({
      credentials: [
        { username: "rotating", passwordHash: await hashPassword("old", cheap) },
        { username: "rotating", passwordHash: await hashPassword("new", cheap) },
        { username: "dearer", passwordHash: await hashPassword("dear", dearer) },
        { username: "plain", password: "plain" },
      ],
    });
    const costs: Record<string, readonly string[]> = {};
    for (const username of ["rotating", "dearer", "plain", "nobody"]) {
      const before = hashesDone(guard).length;
      expect((await guard.ask(basic(username, "guess"))).status).toBe(401);
      costs[username] = hashesDone(guard).slice(before);
    }
    expect(costs).toEqual({
      rotating: ["credential", "credential", "dummy"],
      dearer: ["credential", "dummy", "dummy"],
      plain: ["dummy", "dummy", "dummy"],
      nobody: ["dummy", "dummy", "dummy"],
    });
  });

  test("a password that was right is remembered; a wrong one is not", async () => {
    const guard = await guarded({
      credentials: [{ username: "platform", passwordHash: await hashPassword("secret", cheap), platform: "east" }],
    });
    const ask = (password: string, platform = "east") =>
      guard.ask(basic("platform", password), { path: `/${platform}/v2/catalog` });
    for (let time = 0; time < 5; time++) expect((await ask("secret")).status).toBe(200);
    expect(hashesDone(guard)).toHaveLength(1);
    expect((await ask("secret", "west")).status).toBe(401);
    expect((await ask("wrong")).status).toBe(401);
    expect((await ask("wrong")).status).toBe(401);
    expect(hashesDone(guard)).toHaveLength(4);
  });

  test("many who ask at once with the same password share one hash", async () => {
    const guard = await guarded({
      credentials: [{ username: "platform", passwordHash: await hashPassword("secret") }],
    });
    const answers = await Promise.all(Array.from({ length: 20 }, () => guard.ask(basic("platform", "secret"))));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(hashesDone(guard)).toHaveLength(1);
  });

  test("wrong guesses do not crowd out what is remembered", async () => {
    const passwordHash = await hashPassword("secret", { ln: 10, r: 1, p: 1 });
    const passwords = hashedPasswords([{ username: "platform", passwordHash }]);
    const right = { username: "platform", password: "secret" };
    expect(await passwords.check(right, "", "n")).toBe("platform");
    for (let guess = 0; guess < 1_001; guess++) {
      expect(await passwords.check({ username: "platform", password: `guess ${guess}` }, "", "n")).toBeUndefined();
    }
    expect(passwords.remembered(right, "")).toBe("platform");
  });

  test("who finds no room is told after a second, so that hundreds who ask again at once do not keep the process busy", async () => {
    const clock = manualClock();
    const credentials = [{ username: "platform", passwordHash: await hashPassword("right", cheap) }];
    const passwords = hashedPasswords(credentials, undefined, clock);
    const guess = (at: number) =>
      passwords.check({ username: "platform", password: `guess ${at}` }, "", `192.0.2.${at}`);
    let refused = 0;
    const told = Array.from({ length: 300 }, (_, at) =>
      guess(at).catch(({ code }: { readonly code: string }) => {
        expect(code).toBe("too-many-requests");
        refused++;
      }),
    );
    const others = 300 - 2 - 256;
    await Promise.all(told.slice(-2));
    expect(refused).toBe(0);
    await clock.advance(1_000);
    await Promise.all(told);
    expect(refused).toBe(others);
  });

  test("no two hashes of a password are alike, and an empty password has none", async () => {
    expect(await hashPassword("secret", cheap)).not.toBe(await hashPassword("secret", cheap));
    await expect(hashPassword("")).rejects.toThrow("empty");
  });

  test.each([
    ["plain", "must look like"],
    ["$scrypt$ln=10,r=8,p=1$c2FsdHNhbHRzYWx0$", "must look like"],
    ["$scrypt$ln=10,r=8,p=1$c2FsdHNhbHRzYWx0$aGFzaA", "hash of a passwordHash must be from 16 to 64"],
    ["$scrypt$ln=10,r=8,p=1$c2E$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "salt of a passwordHash must be from 8"],
    ["$scrypt$ln=30,r=8,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "ln of a passwordHash"],
    ["$scrypt$ln=20,r=32,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "costs too much"],
    ["$scrypt$ln=20,r=8,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "costs too much"],
    ["$scrypt$ln=18,r=8,p=16$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "costs too much"],
    ["$scrypt$ln=1,r=8,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "ln of a passwordHash"],
    ["$scrypt$ln=10,r=8,p=0$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo", "p of a passwordHash"],
  ])("the hash %s is refused at the start", async (passwordHash, reason) => {
    expect(() => parsePasswordHash(passwordHash)).toThrow(reason);
    await expect(guarded({ credentials: [{ username: "platform", passwordHash }] })).rejects.toThrow(reason);
  });

  test("a credential with two forms, with none, or with a colon in its name is refused at the start", async () => {
    const odd = { username: "a", password: "b", passwordHash: await hashPassword("b", cheap) };
    await expect(guarded({ credentials: [odd] })).rejects.toThrow("exactly one of");
    await expect(guarded({ credentials: [{ username: "a" } as never] })).rejects.toThrow("it has none");
    await expect(guarded({ credentials: [{ username: "a:b", password: "c" }] })).rejects.toThrow("colon");
  });
});

describe("plain passwords", () => {
  test("of every length are told from those that differ in one character, are longer or shorter", () => {
    const passwords = Array.from({ length: 600 }, (_, index) => `${index}`.padStart(index + 3, "x"));
    const isIn = plainPasswords(passwords.map((password, index) => ({ username: `user-${index}`, password })));
    for (const [index, password] of passwords.entries()) {
      const username = `user-${index}`;
      expect(isIn(basic(username, password), "")).toBe(username);
      expect(isIn(basic(username, password).replace("Basic", "basic"), "")).toBe(username);
      for (const wrong of [`${password}x`, password.slice(1), `y${password.slice(1)}`, `${password.slice(0, -1)}y`])
        expect(isIn(basic(username, wrong), "")).toBeUndefined();
    }
  });

  test("one alone is told from what begins like it, however long that is", () => {
    const isIn = plainPasswords([{ username: "platform", password: "secret" }]);
    expect(isIn(basic("platform", "secret"), "")).toBe("platform");
    expect(isIn("", "")).toBeUndefined();
    for (let more = 1; more < 600; more++)
      expect(isIn(basic("platform", `secret${"\0".repeat(more)}`), "")).toBeUndefined();
  });
});

describe("what is open", () => {
  test("/healthz is, for GET and HEAD, and nothing else", async () => {
    const { ask } = await guarded({ credentials: [{ username: "platform", password: "secret" }] });
    expect(await ask(undefined, { path: "/healthz" })).toMatchObject({ status: 200, body: { status: "ok" } });
    expect((await ask(undefined, { path: "/healthz", method: "HEAD" })).status).toBe(200);
    for (const [method, path] of [
      ["PUT", "/healthz"],
      ["OPTIONS", "/healthz"],
      ["GET", "/healthz/"],
      ["GET", "/Healthz"],
      ["GET", "//healthz"],
      ["GET", "/healthz/../v2/catalog"],
      ["GET", "/"],
      ["HEAD", "/v2/catalog"],
      ["GET", "/metrics"],
      ["OPTIONS", "*"],
    ] as const) {
      expect([method, path, (await ask(undefined, { method, path })).status]).toEqual([method, path, 401]);
    }
  });

  test("a function of one's own says who asks, at once or later", async () => {
    const { ask } = await guarded({
      credentials: ({ authorization, peer }) =>
        authorization === "Token at-once"
          ? "someone"
          : Promise.resolve(authorization === `Token from ${peer?.address}` ? "another" : undefined),
    });
    expect((await ask("Token at-once")).status).toBe(200);
    expect((await ask("Token from 127.0.0.1")).status).toBe(200);
    expect((await ask("Token other")).status).toBe(401);
  });
});

describe("turns", () => {
  const quiet = { tries: 0 };
  const first = { tries: 0, around: quiet };
  const again = (tries: number) => ({ tries, around: quiet });

  /** Work that waits behind some that is held up; answers the order in which it was begun. */
  async function orderOf(
    waiting: readonly (readonly [name: string, rank: Rank])[],
    options: { readonly places: number; readonly keptForFirst: number } = { places: 1, keptForFirst: 0 },
  ): Promise<readonly string[]> {
    const turns = new Turns({ ...options, room: 100 });
    const order: string[] = [];
    const held = gate();
    const busy = Array.from({ length: options.places }, () => turns.run(first, held.wait));
    const all = waiting.map(([name, rank]) => turns.run(rank, async () => void order.push(name)));
    await Promise.resolve();
    expect(order).toEqual([]);
    held.open();
    await Promise.all([...busy, ...all]);
    return order;
  }

  test("who has tried less goes before who has tried more, the newest first; every fifth turn is that of the oldest", async () => {
    const waiting = [
      ["tenth", again(9)],
      ["second", again(1)],
      ["first", first],
      ["another first", first],
      ["third", again(2)],
      ["fourth", again(3)],
    ] as const;
    const order = ["another first", "first", "second", "third", "tenth", "fourth"];
    expect(await orderOf(waiting)).toEqual(order);
  });

  test("of first tries those go first whose wider network is quiet, and every other turn the newest", async () => {
    const loud = { tries: 0, around: { tries: 300 } };
    const crowd = Array.from({ length: 6 }, (_, index) => [`loud ${index}`, loud] as const);
    expect((await orderOf([["quiet", first], ...crowd]))[0]).toBe("quiet");
    // One who is in the crowd's own network comes second.
    const strangers = Array.from({ length: 6 }, (_, index) => [`far ${index}`, first] as const);
    expect((await orderOf([...strangers, ["neighbour", loud]])).slice(0, 2)).toEqual(["far 5", "neighbour"]);
  });

  test("a place is kept for first tries: they do not wait for those who come again and again", async () => {
    const turns = new Turns({ places: 2, keptForFirst: 1, room: 10 });
    const held = gate();
    const guesses = [1, 2, 3].map((tries) => turns.run(again(tries), held.wait));
    expect(await turns.run(first, async () => "in")).toBe("in");
    held.open();
    await Promise.all(guesses);
  });

  test("when the room is full, who has tried most is refused, and of equals the oldest", async () => {
    const turns = new Turns({ places: 1, keptForFirst: 0, room: 3 });
    const held = gate();
    const busy = turns.run(first, held.wait);
    const all = [again(1), again(7), first, first, first, again(8)].map((rank, index) =>
      turns.run(rank, async () => index),
    );
    const outcomes = Promise.allSettled(all);
    held.open();
    await busy;
    expect((await outcomes).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "fulfilled",
      "fulfilled",
      "fulfilled",
      "rejected",
    ]);
    await expect(all[1]).rejects.toBeInstanceOf(NoRoom);
  });

  test("a piece of work that fails passes its place on", async () => {
    const turns = new Turns({ places: 1, keptForFirst: 0, room: 3 });
    await expect(turns.run(first, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    const work = vi.fn(async () => "done");
    expect(await turns.run(first, work)).toBe("done");
  });
});

describe("tries", () => {
  test("count for an address and for the network around it, until one was right", () => {
    const tries = new Tries(manualClock());
    const begin = (network: string) => {
      const { tries: own, around } = tries.begin(network);
      return [own, around.tries];
    };
    expect([begin("10.0.0.1"), begin("10.0.0.1"), begin("10.0.0.2"), begin("10.0.1.1")]).toEqual([
      [0, 1],
      [1, 2],
      [0, 3],
      [0, 1],
    ]);
    tries.succeeded("10.0.0.1");
    expect(begin("10.0.0.1")).toEqual([0, 2]);
    expect([begin("2001:db8:1:2::/64"), begin("2001:db8:1:3::/64"), begin("2001:db8:2:3::/64")]).toEqual([
      [0, 1],
      [0, 2],
      [0, 1],
    ]);
  });

  test("are forgotten after a quarter of an hour of peace", async () => {
    const clock = manualClock();
    const tries = new Tries(clock);
    tries.begin("10.0.0.1");
    await clock.advance(900_001);
    expect(tries.begin("10.0.0.1")).toEqual({ tries: 0, around: expect.objectContaining({ tries: 1 }) });
  });
});
