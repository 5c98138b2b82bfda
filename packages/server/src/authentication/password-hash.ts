import { randomBytes, scrypt } from "node:crypto";

/** What scrypt costs: memory is 128 · r · 2^ln bytes, time grows with p as well. */
export interface ScryptCost {
  /** The binary logarithm of scrypt's N. */
  readonly ln: number;
  /** The block size. */
  readonly r: number;
  /** How often it is done over. */
  readonly p: number;
}

/** A hash of a password, taken apart. */
export interface PasswordHash extends ScryptCost {
  /** Chance, different for every hash. */
  readonly salt: Buffer;
  /** What scrypt makes of password and salt. */
  readonly hash: Buffer;
}

/** 32 MiB and about a tenth of a second. */
export const usualCost: ScryptCost = { ln: 15, r: 8, p: 3 };

const bounds = { ln: [10, 20], r: [1, 32], p: [1, 16], salt: [8, 64], hash: [16, 64] } as const;
const mostMemoryBytes = 268_435_456;
/** 2^ln · r · p: what one check may take of a processor. */
const mostWork = 16_777_216;

/**
 * The text to keep instead of a password: `$scrypt$ln=15,r=8,p=3$salt$hash`. Every call takes a salt of its own, so that nobody sees
 * which passwords are alike.
 */
export async function hashPassword(password: string, cost: ScryptCost = usualCost): Promise<string> {
  if (password === "") throw new TypeError("the password is empty");
  checkCost(cost);
  const salt = randomBytes(16);
  const hash = await scryptOf(password, { ...cost, salt }, 32);
  const base64 = (bytes: Buffer) => bytes.toString("base64").replace(/=+$/, "");
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${base64(salt)}$${base64(hash)}`;
}

/** Throws on any text that is no hash or asks for more than a server may be made to spend. The text itself is never in the message. */
export function parsePasswordHash(text: string): PasswordHash {
  const match = /^\$scrypt\$ln=(\d{1,3}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{1,100})\$([A-Za-z0-9+/]{1,100})$/.exec(
    text,
  );
  if (match === null) {
    throw new TypeError("a passwordHash must look like $scrypt$ln=15,r=8,p=3$salt$hash, as hashPassword makes it");
  }
  const cost = { ln: Number(match[1]), r: Number(match[2]), p: Number(match[3]) };
  checkCost(cost);
  const salt = Buffer.from(match[4] ?? "", "base64");
  const hash = Buffer.from(match[5] ?? "", "base64");
  // A short hash would let many passwords in; an empty one every password.
  within("salt", salt.byteLength, " bytes of salt");
  within("hash", hash.byteLength, " bytes of hash");
  return { ...cost, salt, hash };
}

/** Off the event loop. */
export function scryptOf(
  password: string,
  { ln, r, p, salt }: ScryptCost & { readonly salt: Buffer },
  bytes: number,
): Promise<Buffer> {
  const N = 2 ** ln;
  return new Promise((resolve, reject) => {
    scrypt(password, salt, bytes, { N, r, p, maxmem: 2 * mostMemoryBytes }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}

function checkCost({ ln, r, p }: ScryptCost): void {
  within("ln", ln);
  within("r", r);
  within("p", p);
  const memory = 128 * r * 2 ** ln;
  if (memory > mostMemoryBytes || 2 ** ln * r * p > mostWork) {
    throw new TypeError(`ln=${ln},r=${r},p=${p} costs too much for every check of a password; ln=15,r=8,p=3 is usual`);
  }
}

function within(name: keyof typeof bounds, value: number, unit = ""): void {
  const [least, most] = bounds[name];
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new TypeError(`${name} of a passwordHash must be from ${least} to ${most}${unit}; it is ${value}`);
  }
}
