import { type KeyObject, verify } from "node:crypto";
import { asObject, parseJsonObject } from "./json-object.js";
import type { Digest } from "./source.js";

/** A signature as cosign makes it. Nothing of it has been checked. */
export interface Signature {
  /** What was signed, byte for byte: a document that names the digest. */
  readonly payload: Buffer;
  /** In base64. */
  readonly signature: string;
}

/** Why none of the signatures lets a digest in, for a person; `null`: one of them does, by one of the keys. */
export function verifySignatures(
  keys: readonly KeyObject[],
  digest: Digest,
  signatures: readonly Signature[],
): string | null {
  if (signatures.length === 0) return "it is not signed, and the source's settings require it";
  const genuine = signatures.filter(({ payload, signature }) => keys.some((key) => isBy(key, payload, signature)));
  if (genuine.length === 0) return "none of its signatures is by a key of the source's settings";
  // A genuine signature of something else proves nothing of this: whoever can push can copy it here.
  if (!genuine.some(({ payload }) => isAbout(payload, digest)))
    return "its signatures are of other content; it has to be signed itself";
  return null;
}

function isBy(key: KeyObject, payload: Buffer, signature: string): boolean {
  // Ed25519 has its own hash in it; the others are of the payload's SHA-256, that of ECDSA in DER, that of RSA with PKCS #1 v1.5.
  const hash = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  try {
    return verify(hash, payload, key, Buffer.from(signature, "base64"));
  } catch {
    // Bytes that are no signature of this kind at all.
    return false;
  }
}

function isAbout(payload: Buffer, digest: Digest): boolean {
  const critical = asObject(parseJsonObject(payload)?.critical);
  return (
    critical?.type === "cosign container image signature" &&
    asObject(critical.image)?.["docker-manifest-digest"] === digest
  );
}
