import { asObject, parseJsonObject, textsOf } from "./json-object.js";
import { type Descriptor, parseDescriptor } from "./manifest.js";
import type { Digest } from "./source.js";

/** A layer of a manifest of signatures: where the payload lies, and the signature of it. */
export interface SignatureLayer {
  readonly payload: Descriptor;
  readonly signature: string;
}

const payloadType = "application/vnd.dev.cosign.simplesigning.v1+json";
const signatureAnnotation = "dev.cosignproject.cosign/signature";
/** In base64: of an RSA key with 16,384 bits it has 2,732. */
const maxSignatureLength = 4_096;

/** The tag under which cosign puts the signatures of a digest, in the same repository. */
export function signatureTag(digest: Digest): string {
  return `${digest.replace(":", "-")}.sig`;
}

/** The signatures that a manifest holds. `undefined`: the bytes are no manifest. What is no signature is left out. */
export function parseSignatureLayers(bytes: Uint8Array): readonly SignatureLayer[] | undefined {
  const document = parseJsonObject(bytes);
  if (document === undefined || !Array.isArray(document.layers)) return undefined;
  return document.layers.flatMap((layer: unknown) => {
    const payload = parseDescriptor(layer);
    const signature = textsOf(asObject(layer)?.annotations).get(signatureAnnotation);
    const isSignature = payload?.mediaType === payloadType && signature !== undefined;
    return isSignature && signature.length <= maxSignatureLength ? [{ payload, signature }] : [];
  });
}
