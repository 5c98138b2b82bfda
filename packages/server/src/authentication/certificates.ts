import { parseAlternativeName, readAlternativeNames } from "./alternative-names.js";
import type { AuthenticationRequest, PeerCertificate } from "./authenticate.js";
import { isSameSubject, parseSubject } from "./certificate-subject.js";
import { type CertificateCredential, isFor } from "./credential.js";

interface Known {
  readonly credential: CertificateCredential;
  readonly name: string;
  readonly matches: (certificate: PeerCertificate) => boolean;
}

/** Callers by the certificate that the server has verified. Nothing here verifies: an unverified certificate never gets here. */
export function certificateAuthentication(
  credentials: readonly CertificateCredential[],
): (request: AuthenticationRequest) => string | undefined {
  const known = credentials.map(understood);
  // The platform's own connection asks again and again: its certificate is read once.
  const seen = new WeakMap<PeerCertificate, readonly Known[]>();
  return ({ peer, platform }) => {
    if (known.length === 0) return undefined;
    const certificate = peer?.certificate;
    if (certificate === undefined) return undefined;
    let matching = seen.get(certificate);
    if (matching === undefined) {
      matching = known.filter(({ matches }) => matches(certificate));
      seen.set(certificate, matching);
    }
    return matching.find(({ credential }) => isFor(credential, platform))?.name;
  };
}

function understood(credential: CertificateCredential): Known {
  const { certificate } = credential;
  if ("subject" in certificate) {
    const subject = parseSubject(certificate.subject);
    if (subject === undefined) {
      throw new TypeError(
        `the subject of a certificate must look like CN=platform,O=Example; ${certificate.subject} does not`,
      );
    }
    return {
      credential,
      name: credential.name ?? certificate.subject,
      matches: ({ subject: text }) => {
        const theirs = parseSubject(text);
        return theirs !== undefined && isSameSubject(subject, theirs);
      },
    };
  }
  const alternativeName = parseAlternativeName(certificate.alternativeName);
  if (alternativeName === undefined) {
    throw new TypeError(
      `an alternative name must look like DNS:platform.example or URI:spiffe://example/platform; ${certificate.alternativeName} does not`,
    );
  }
  return {
    credential,
    name: credential.name ?? certificate.alternativeName,
    matches: ({ subjectAltName }) => readAlternativeNames(subjectAltName).includes(alternativeName),
  };
}
