import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type HashedCredential, hashPassword, parsePasswordHash } from "@osbert/broker/http";
import { UserError } from "../user-error.js";

/** A credential that the program made by itself, because none was set. */
export interface GeneratedCredential {
  readonly credential: HashedCredential;
  /** Where its hash is kept. */
  readonly file: string;
  /** To be shown once; `null`: it was made, and shown, at an earlier start. */
  readonly password: string | null;
  /** Keeps its hash for the next start, if that is not done yet. */
  readonly keep: () => Promise<void>;
}

const largestFile = 4_096;

/**
 * The credential that was made at the first start in this folder, or else one that is made now. Only a hash of its password is kept.
 * It is to be kept when the broker answers, right before it is shown: a start that fails leaves nothing, and only a kill in between
 * leaves a password that nobody knows; removing the file makes another. The other way round, one that was shown might not work.
 */
export async function generatedCredential(data: string): Promise<GeneratedCredential> {
  const file = join(data, "credential.json");
  const kept = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new UserError(`${file} cannot be read (${error.code}); mend that, or set credentials`);
  });
  if (kept !== undefined) return { credential: parse(kept, file), file, password: null, keep: async () => undefined };
  const password = randomBytes(18).toString("base64url");
  const credential = { username: "osbert", passwordHash: await hashPassword(password) };
  return { credential, file, password, keep: () => keep(credential, file) };
}

async function keep(credential: HashedCredential, file: string): Promise<void> {
  const unfinished = `${file}.${process.pid}`;
  try {
    await writeFile(unfinished, `${JSON.stringify(credential)}\n`, { mode: 0o600 });
    await rename(unfinished, file);
  } catch (error) {
    throw new UserError(
      `${file} cannot be written (${(error as NodeJS.ErrnoException).code}); mend that, or set credentials`,
    );
  }
}

function parse(text: string, file: string): HashedCredential {
  try {
    if (text.length > largestFile) throw new Error("too large");
    const { username, passwordHash } = JSON.parse(text) as Partial<HashedCredential>;
    if (typeof username !== "string" || typeof passwordHash !== "string") throw new Error("not a credential");
    parsePasswordHash(passwordHash);
    return { username, passwordHash };
  } catch (cause) {
    throw new UserError(`${file} does not hold a credential; remove it, and another one is made`, { cause });
  }
}
