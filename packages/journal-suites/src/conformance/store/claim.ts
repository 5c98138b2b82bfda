import assert from "node:assert/strict";
import { changeOf, newRecord } from "../changes.js";
import { keysOf, leaseMs, type StoreFixture, type StoreTests } from "../store-fixture.js";
import { hostileTexts } from "./hostile-texts.js";

/** `claim`: one way to become the runner. */
export const claimTests: StoreTests = {
  "J3: a claim makes its owner the runner until the lease runs out": async (fixture) => {
    const record = await fixture.create("k", { dueAt: fixture.clock.now() - 5, state: '{"a":1}', lane: "l" });
    const answer = await fixture.claim("owner", { leaseMs: 12_345 });
    const until = fixture.clock.now() + 12_345;
    const claimed = { ...record, epoch: record.epoch + 1, lease: { owner: "owner", until }, dueAt: until };
    assert.deepEqual([answer.now, answer.claimed], [fixture.clock.now(), [claimed]]);
    assert.deepEqual(await fixture.record("k"), claimed);
    assert.deepEqual(await fixture.seqs("k"), [1]);
  },

  "J3: a claim raises the epoch, so that a late writer is refused": async (fixture) => {
    const seen = await fixture.create("k", { dueAt: 0 });
    const { claimed } = await fixture.claim("owner");
    await fixture.refuses(changeOf(seen));
    assert.equal(await fixture.store.remove("k", seen), false);
    for (const record of claimed) await fixture.change(record);
    assert.equal((await fixture.record("k")).seq, 2);
  },

  "J5: only what is due is claimed": async (fixture) => {
    const now = fixture.clock.now();
    await fixture.create("long ago", { dueAt: 0 });
    await fixture.create("now", { dueAt: now });
    await fixture.create("soon", { dueAt: now + 1 });
    await fixture.create("never", { dueAt: null });
    assert.deepEqual(await fixture.claimedKeys("owner"), ["long ago", "now"]);
    assert.deepEqual(await fixture.claimedKeys("owner"), []);
    fixture.clock.advance(1);
    assert.deepEqual(await fixture.claimedKeys("owner"), ["soon"]);
  },

  "J5: a due time that was moved or taken away counts no more": async (fixture) => {
    const [moved, taken] = [await fixture.create("moved", { dueAt: 10 }), await fixture.create("taken", { dueAt: 10 })];
    await fixture.change(moved, { dueAt: fixture.clock.now() + 1_000 });
    await fixture.change(taken, { dueAt: null });
    const answer = await fixture.claim("owner");
    assert.deepEqual([answer.claimed, answer.nextDueAt], [[], fixture.clock.now() + 1_000]);
  },

  "J10: what is due earliest is claimed first, in all lanes together": async (fixture) => {
    for (const [key, dueAt, lane] of [
      ["e", 50, "x"],
      ["b", 20, "y"],
      ["d", 40, "y"],
      ["a", 10, "x"],
      ["c", 30, "z"],
    ] as const) {
      await fixture.create(key, { dueAt, lane });
    }
    assert.deepEqual(await fixture.claimedKeys("owner", { limit: 2 }), ["a", "b"]);
    assert.deepEqual(await fixture.claimedKeys("owner", { limit: 2 }), ["c", "d"]);
    assert.deepEqual(await fixture.claimedKeys("owner", { limit: 2 }), ["e"]);
    assert.deepEqual(await fixture.claimedKeys("owner", { limit: 2 }), []);
  },

  "J10: of a lane no more is claimed than its room, the earliest first": async (fixture) => {
    await createLane(fixture, "narrow", 5, 10);
    await createLane(fixture, "wide", 5, 20);
    await createLane(fixture, "shut", 5, 0);
    const rooms = new Map([
      ["wide", 3],
      ["shut", 0],
    ]);
    const keys = await fixture.claimedKeys("owner", { laneRoom: 2, rooms });
    assert.deepEqual(keys, ["narrow 0", "narrow 1", "wide 0", "wide 1", "wide 2"]);
  },

  "J10: the limit holds beside the rooms": async (fixture) => {
    await createLane(fixture, "a", 5, 10);
    await createLane(fixture, "b", 5, 20);
    assert.deepEqual(await fixture.claimedKeys("owner", { limit: 3, laneRoom: 2 }), ["a 0", "a 1", "b 0"]);
  },

  "J10: with no room for other lanes only the named ones are claimed from": async (fixture) => {
    await createLane(fixture, "other", 3, 0);
    await createLane(fixture, "named", 3, 50);
    const answer = await fixture.claim("owner", { laneRoom: 0, rooms: new Map([["named", 2]]) });
    assert.deepEqual(keysOf(answer.claimed), ["named 0", "named 1"]);
    const none = await fixture.claim("owner", { laneRoom: 0, rooms: new Map([["named", 0]]) });
    assert.deepEqual([none.claimed, none.nextDueAt], [[], null]);
  },

  "J10: every lane has its own room": async (fixture) => {
    for (let lane = 0; lane < 40; lane++) await createLane(fixture, `lane ${lane}`, 3, lane);
    const { claimed } = await fixture.claim("owner", { laneRoom: 1 });
    assert.deepEqual(keysOf(claimed).toSorted(), Array.from({ length: 40 }, (_, lane) => `lane ${lane} 0`).toSorted());
  },

  "J10: hundreds of lanes may be without room": async (fixture) => {
    const lanes = Array.from({ length: 300 }, (_, index) => `lane ${index}`);
    await Promise.all(lanes.map((lane) => fixture.create(lane, { lane, dueAt: 0 })));
    const full = lanes.slice(1).map((lane) => [lane, 0] as const);
    assert.deepEqual(await fixture.claimedKeys("owner", { rooms: new Map(full) }), ["lane 0"]);
    const free = lanes.slice(0, -1).map((lane) => [lane, 1] as const);
    const keys = await fixture.claimedKeys("owner", { laneRoom: 0, rooms: new Map(free) });
    assert.deepEqual([...keys].sort(), lanes.slice(1, -1).sort());
  },

  "J10: lanes are told apart exactly": async (fixture) => {
    for (const lane of hostileTexts) await fixture.create(`in ${lane}`, { lane, dueAt: 0 });
    for (const lane of hostileTexts) {
      const keys = await fixture.claimedKeys("owner", { laneRoom: 0, rooms: new Map([[lane, 5]]) });
      assert.deepEqual(keys, [`in ${lane}`], `lane ${JSON.stringify(lane)}`);
    }
  },

  "J10: a lane may be empty text": async (fixture) => {
    await createLane(fixture, "", 3, 0);
    await createLane(fixture, "x", 1, 10);
    assert.deepEqual(await fixture.claimedKeys("a", { rooms: new Map([["", 0]]) }), ["x 0"]);
    assert.deepEqual(await fixture.claimedKeys("a", { laneRoom: 0, rooms: new Map([["", 2]]) }), [" 0", " 1"]);
    assert.deepEqual(await fixture.claimedKeys("a"), [" 2"]);
  },

  "J10: a full lane with much that is due does not hide another lane's": async (fixture) => {
    await createLane(fixture, "full", 400, 0);
    await createLane(fixture, "free", 1, 1_000);
    assert.deepEqual(await fixture.claimedKeys("a", { limit: 10, rooms: new Map([["full", 0]]) }), ["free 0"]);
    await createLane(fixture, "also free", 1, 2_000);
    const keys = await fixture.claimedKeys("a", { limit: 10, rooms: new Map([["full", 2]]) });
    assert.deepEqual(keys, ["full 0", "full 1", "also free 0"]);
    await createLane(fixture, "free as well", 1, 3_000);
    assert.deepEqual(await fixture.claimedKeys("a", { limit: 10, laneRoom: 1 }), ["full 2", "free as well 0"]);
  },

  "J10: much that is due but leased by another does not hide what is free": async (fixture) => {
    const now = fixture.clock.now();
    const lease = { owner: "busy", until: now + leaseMs };
    const changes = Array.from({ length: 400 }, (_, index) =>
      newRecord(`leased ${index}`, { epoch: 1, lease, dueAt: index }),
    );
    await Promise.all(changes.map((change) => fixture.store.commit(change)));
    await fixture.create("free", { dueAt: now });
    assert.deepEqual(await fixture.claimedKeys("idle", { limit: 5, laneRoom: 3 }), ["free"]);
  },

  "J3: what another owner runs is not claimed, even if it became due": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    assert.deepEqual(await fixture.claimedKeys("other"), []);
    const pulledIn = await fixture.change(held, { dueAt: fixture.clock.now() });
    assert.deepEqual(await fixture.claimedKeys("other"), []);
    fixture.clock.advance(leaseMs - 1);
    assert.deepEqual(await fixture.claimedKeys("other"), []);
    assert.deepEqual(await fixture.record("k"), pulledIn);
  },

  "J3: the runner is given new work for what it runs, under the same epoch": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    assert.deepEqual(await fixture.claimedKeys("runner"), [], "there is no new work yet");
    fixture.clock.advance(1_000);
    const pulledIn = await fixture.change(held, { dueAt: fixture.clock.now() });
    const { claimed } = await fixture.claim("runner");
    const until = fixture.clock.now() + leaseMs;
    assert.deepEqual(claimed, [{ ...pulledIn, lease: { owner: "runner", until }, dueAt: until }]);
    assert.equal(claimed[0]?.epoch, held.epoch);
  },

  "J11: a lease that has run out is claimed by another under the next epoch": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    fixture.clock.advance(leaseMs);
    const { claimed } = await fixture.claim("other");
    const until = fixture.clock.now() + leaseMs;
    assert.deepEqual(claimed, [{ ...held, epoch: held.epoch + 1, lease: { owner: "other", until }, dueAt: until }]);
    await fixture.refuses(changeOf(held));
  },

  "J11: a lease that has run out is claimed by its own owner under the next epoch": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    fixture.clock.advance(leaseMs);
    const { claimed } = await fixture.claim("runner");
    assert.equal(claimed[0]?.epoch, held.epoch + 1);
    await fixture.refuses(changeOf(held));
  },

  "J11: what became due under a lease that has run out is claimed": async (fixture) => {
    const held = await fixture.createHeld("k", "runner");
    await fixture.change(held, { dueAt: fixture.clock.now() });
    fixture.clock.advance(leaseMs);
    assert.deepEqual(await fixture.claimedKeys("other"), ["k"]);
  },

  "J3: a lease that was set by a commit counts like one that was claimed": async (fixture) => {
    const now = fixture.clock.now();
    await fixture.create("k", { epoch: 1, lease: { owner: "runner", until: now + 100 }, dueAt: now });
    assert.deepEqual(await fixture.claimedKeys("other"), []);
    const { claimed } = await fixture.claim("runner");
    assert.deepEqual([claimed[0]?.key, claimed[0]?.epoch], ["k", 1]);
  },

  "J3: owners are told apart exactly": async (fixture) => {
    const held = await fixture.createHeld("k", "Owner");
    await fixture.change(held, { dueAt: 0 });
    for (const owner of ["owner", "Owner ", " Owner", "Ówner", "OWNER"]) {
      assert.deepEqual(await fixture.claimedKeys(owner), [], `${JSON.stringify(owner)} is not "Owner"`);
    }
    assert.deepEqual(await fixture.claimedKeys("Owner"), ["k"]);
  },

  "J5: a claim tells when to look again": async (fixture) => {
    const now = fixture.clock.now();
    assert.equal((await fixture.claim("owner")).nextDueAt, null);
    await fixture.create("never");
    assert.equal((await fixture.claim("owner")).nextDueAt, null);
    await fixture.create("later", { dueAt: now + 2_000 });
    await fixture.create("soon", { dueAt: now + 1_000 });
    assert.equal((await fixture.claim("owner")).nextDueAt, now + 1_000);
    await fixture.create("due", { dueAt: now });
    const answer = await fixture.claim("owner");
    assert.deepEqual([keysOf(answer.claimed), answer.nextDueAt], [["due"], now + 1_000]);
  },

  "J5: a claim tells when to look again, although there is more that is due": async (fixture) => {
    const now = fixture.clock.now();
    for (const key of ["a", "b", "c"]) await fixture.create(key, { dueAt: 1 });
    await fixture.create("later", { dueAt: now + 500 });
    const answer = await fixture.claim("owner", { limit: 1 });
    assert.deepEqual([answer.claimed.length, answer.nextDueAt], [1, now + 500]);
  },

  "J5: the time to look again leaves out lanes without room": async (fixture) => {
    const now = fixture.clock.now();
    await fixture.create("shut", { lane: "shut", dueAt: now + 10 });
    await fixture.create("open", { lane: "open", dueAt: now + 20 });
    await fixture.create("other", { lane: "other", dueAt: now + 30 });
    const next = async (laneRoom: number, rooms: readonly [string, number][]) =>
      (await fixture.claim("owner", { laneRoom, rooms: new Map(rooms) })).nextDueAt;
    assert.equal(await next(5, []), now + 10);
    assert.equal(await next(5, [["shut", 0]]), now + 20);
    assert.equal(
      await next(5, [
        ["shut", 0],
        ["open", 0],
      ]),
      now + 30,
    );
    assert.equal(await next(0, [["other", 1]]), now + 30);
    assert.equal(
      await next(0, [
        ["shut", 0],
        ["open", 1],
      ]),
      now + 20,
    );
    assert.equal(await next(0, []), null);
    assert.equal(await next(0, [["nowhere", 1]]), null);
  },

  "J11: another owner's lease is a time to look again": async (fixture) => {
    await fixture.createHeld("k", "runner");
    assert.equal((await fixture.claim("other")).nextDueAt, fixture.clock.now() + leaseMs);
  },

  "J3: of owners that claim at once no two are given the same resource": async (fixture) => {
    await createLane(fixture, "l", 60, 0);
    const owners = ["a", "b", "c", "d", "e", "f"];
    const answers = await Promise.all(owners.map((owner) => fixture.claim(owner)));
    const keys = answers.flatMap((answer) => keysOf(answer.claimed));
    assert.equal(keys.length, 60);
    assert.equal(new Set(keys).size, 60);
    for (const [index, { claimed }] of answers.entries()) {
      for (const record of claimed) {
        assert.deepEqual(record.lease?.owner, owners[index]);
        assert.deepEqual(await fixture.record(record.key), record);
      }
    }
  },

  "J3: 200 due resources are given out exactly once to owners that claim at once": async (fixture) => {
    await createLane(fixture, "l", 200, 0);
    const given: string[] = [];
    for (;;) {
      const round = await Promise.all(["a", "b", "c", "d"].map((owner) => fixture.claimedKeys(owner, { limit: 7 })));
      assert.ok(round.every((keys) => keys.length <= 7));
      if (round.flat().length === 0) break;
      given.push(...round.flat());
      assert.equal(new Set(given).size, given.length, "no resource may be given out twice");
    }
    assert.equal(given.length, 200);
  },

  "J3: an owner that claims twice at once is given each resource once": async (fixture) => {
    await createLane(fixture, "l", 40, 0);
    const answers = await Promise.all([1, 2, 3].map(() => fixture.claimedKeys("owner", { limit: 30 })));
    const keys = answers.flat();
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(keys.length + (await fixture.claimedKeys("owner")).length, 40);
    for (const record of await fixture.store.find({ after: null, limit: 100 })) assert.equal(record.epoch, 1);
  },

  "J3: of a change and a claim at once one comes first, and both know": async (fixture) => {
    const records = await Promise.all(
      Array.from({ length: 30 }, (_, index) => fixture.create(`k${index}`, { dueAt: 0 })),
    );
    const claims = [fixture.claim("a", { limit: 10 })];
    const commits = records.map((record) => fixture.store.commit(changeOf(record, { state: '"changed"' })));
    claims.push(fixture.claim("b", { limit: 10 }));
    const outcomes = await Promise.all(commits);
    const claimed = new Map(
      (await Promise.all(claims)).flatMap((answer) => answer.claimed.map((record) => [record.key, record])),
    );
    for (const [index, before] of records.entries()) {
      const now = await fixture.record(before.key);
      const runner = claimed.get(before.key);
      const changed = outcomes[index]?.kind === "committed";
      assert.deepEqual([now.seq, now.state], changed ? [2, '"changed"'] : [1, "{}"]);
      assert.equal(now.epoch, runner === undefined ? 0 : 1);
      if (runner !== undefined) assert.deepEqual(runner, now, "a claim must answer the record as it is");
    }
  },
};

/** Resources "<lane> 0", "<lane> 1"… of one lane, due from `dueAt` on, a millisecond apart. */
async function createLane(fixture: StoreFixture, lane: string, count: number, dueAt: number): Promise<void> {
  const changes = Array.from({ length: count }, (_, index) =>
    newRecord(`${lane} ${index}`, { lane, dueAt: dueAt + index }),
  );
  const outcomes = await Promise.all(changes.map((change) => fixture.store.commit(change)));
  assert.ok(outcomes.every(({ kind }) => kind === "committed"));
}
