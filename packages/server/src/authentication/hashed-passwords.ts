import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type Clock, systemClock } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import type { BasicPair } from "./basic-header.js";
import { BoundedMap } from "./bounded-map.js";
import { type HashedCredential, isFor } from "./credential.js";
import type { ObserveAuthentication } from "./event.js";
import { groupBy } from "./group-by.js";
import { type PasswordHash, parsePasswordHash, scryptOf } from "./password-hash.js";
import { nameKey } from "./slow-down.js";
import { Tries } from "./tries.js";
import { NoRoom, Turns } from "./turns.js";

/** Passwords that were right once, so that not every request pays for scrypt. */
const mostRemembered = 1_000;
/**
 * scrypt shares the threads of the process with files and name look-ups, and takes memory: few at a time. One for the process, as its
 * threads are: platforms, operators and those who watch are let in by credentials of their own, and all of them go through here.
 */
const scryptTurns = new Turns({ places: 2, keptForFirst: 1, room: 256 });

interface Known {
  readonly credential: HashedCredential;
  readonly hash: PasswordHash;
}

export interface HashedPasswords {
  /** The name, where this password has been found right before. At once. */
  remembered(given: BasicPair, platform: string): string | undefined;
  /** The name, after scrypt. `network`: whose turn it is. Rejects with a 429 where too many wait for scrypt. */
  check(given: BasicPair, platform: string, network: string): Promise<string | undefined>;
}

/**
 * Passwords of which only hashes are known. Every check does the same work whether or not the user name exists: for each cost in use as
 * many hashes as the user name with the most of them has, filled up with dummies.
 */
export function hashedPasswords(
  credentials: readonly HashedCredential[],
  observe: ObserveAuthentication = () => undefined,
  clock: Clock = systemClock,
): HashedPasswords {
  const key = randomBytes(32);
  const known = credentials.map(
    (credential): Known => ({ credential, hash: parsePasswordHash(credential.passwordHash) }),
  );
  const byName = groupBy(known, ({ credential }) => credential.username);
  const dummies = dummiesFor([...byName.values()]);
  const found = new BoundedMap<readonly Known[]>(mostRemembered);
  const underWay = new Map<string, Promise<readonly Known[]>>();
  const tries = new Tries(clock);

  // The key is of this process alone: who reads its memory later learns nothing to try elsewhere.
  const digestOf = ({ username, password }: BasicPair) =>
    createHmac("sha256", key).update(`${username}:${password}`).digest("base64");
  const nameFor = (matching: readonly Known[] | undefined, platform: string) =>
    matching?.find(({ credential }) => isFor(credential, platform))?.credential.username;

  async function compare({ username, password }: BasicPair): Promise<readonly Known[]> {
    const own = byName.get(username) ?? [];
    const matching: Known[] = [];
    for (const candidate of own) {
      observe({ kind: "password hashed", against: "credential" });
      if (await isPassword(password, candidate.hash)) matching.push(candidate);
    }
    for (const dummy of dummiesBeside(own, dummies)) {
      observe({ kind: "password hashed", against: "dummy" });
      await isPassword(password, dummy);
    }
    return matching;
  }

  /** The same pair asked again from the same place meanwhile shares the work. */
  function compareOnce(given: BasicPair, digest: string, platform: string, network: string): Promise<readonly Known[]> {
    const id = `${digest} ${network}`;
    const already = underWay.get(id);
    if (already !== undefined) return already;
    // Where the address is not known, all share one; the user name stands in for it, for whatever a guesser's choice of it is worth.
    const from = network === "" ? nameKey({ network, name: given.username }) : network;
    const begun = scryptTurns
      .run(tries.begin(from), async () => {
        // The same password may have been found right for another who asked, while this one waited.
        const known = found.get(digest);
        const matching = known !== undefined && nameFor(known, platform) !== undefined ? known : await compare(given);
        if (matching.length > 0) tries.succeeded(from);
        return matching;
      })
      .finally(() => underWay.delete(id));
    underWay.set(id, begun);
    return begun;
  }

  return {
    remembered: (given, platform) => (found.size === 0 ? undefined : nameFor(found.get(digestOf(given)), platform)),
    async check(given, platform, network) {
      const digest = digestOf(given);
      try {
        const matching = await compareOnce(given, digest, platform, network);
        if (matching.length > 0) found.set(digest, matching);
        return nameFor(matching, platform);
      } catch (cause) {
        if (!(cause instanceof NoRoom)) throw cause;
        await holdRefusal(clock);
        throw new BrokerError("too-many-requests", "too many requests wait to be authenticated; ask again later", {
          retryAfterSeconds: 1,
          cause,
        });
      }
    },
  };
}

/**
 * Who is told at once that there is no room asks again at once, and hundreds who do keep the process busy with nothing but telling them so:
 * those who are let in would wait for their turn among them. So they are told when it is worth asking again.
 */
async function holdRefusal(clock: Clock): Promise<void> {
  if (heldRefusals >= mostHeldRefusals) return;
  heldRefusals++;
  await new Promise<void>((resolve) => void clock.after(refusedForMs, resolve));
  heldRefusals--;
}

const refusedForMs = 1_000;
const mostHeldRefusals = 1_000;
let heldRefusals = 0;

async function isPassword(password: string, known: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await scryptOf(password, known, known.hash.byteLength), known.hash);
}

const costOf = ({ ln, r, p }: PasswordHash) => `${ln},${r},${p}`;

/** For each cost as many dummies as any user name has hashes of it. Nothing is their password: they are random. */
function dummiesFor(names: readonly (readonly Known[])[]): readonly PasswordHash[] {
  const most = new Map<string, readonly Known[]>();
  for (const own of names) {
    for (const [cost, ofCost] of groupBy(own, ({ hash }) => costOf(hash))) {
      if (ofCost.length > (most.get(cost)?.length ?? 0)) most.set(cost, ofCost);
    }
  }
  return [...most.values()].flat().map(({ hash }) => ({
    ...hash,
    salt: randomBytes(hash.salt.byteLength),
    hash: randomBytes(hash.hash.byteLength),
  }));
}

/** What is left to do after a user name's own hashes. */
function dummiesBeside(own: readonly Known[], dummies: readonly PasswordHash[]): readonly PasswordHash[] {
  const done = own.map(({ hash }) => costOf(hash));
  return dummies.filter((dummy) => {
    const index = done.indexOf(costOf(dummy));
    if (index >= 0) done.splice(index, 1);
    return index < 0;
  });
}
