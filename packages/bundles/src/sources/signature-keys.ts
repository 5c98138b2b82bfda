import { createPublicKey, type KeyObject } from "node:crypto";

/** A file that is no key which signatures can be checked with. Its content is never repeated: it may be a private one. */
export class SignatureKeyError extends Error {
  override readonly name = "SignatureKeyError";
}

const leastRsaBits = 2_048;

/** One public key, as PEM. A private one is refused although it would do: it has no business on the machine of a broker. */
export function parseSignatureKey(pem: string, path: string): KeyObject {
  const blocks = pem.match(/-----BEGIN [^-]*-----/g) ?? [];
  if (blocks.length !== 1 || blocks[0] !== "-----BEGIN PUBLIC KEY-----")
    throw new SignatureKeyError(`${path} must be one public key in PEM, which begins with BEGIN PUBLIC KEY`);
  const key = publicKeyOf(pem, path);
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
  const isKnown =
    key.asymmetricKeyType === "ed25519" ||
    (key.asymmetricKeyType === "ec" && namedCurve === "prime256v1") ||
    (key.asymmetricKeyType === "rsa" && modulusLength >= leastRsaBits);
  if (isKnown) return key;
  throw new SignatureKeyError(
    `${path} must be a key of ECDSA on P-256, Ed25519, or RSA with ${leastRsaBits} bits or more`,
  );
}

function publicKeyOf(pem: string, path: string): KeyObject {
  try {
    return createPublicKey(pem);
  } catch {
    throw new SignatureKeyError(`${path} cannot be read as a public key`);
  }
}
