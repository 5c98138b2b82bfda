import type { Fields, TextForm } from "./shape.js";

const name = {
  kind: "text",
  pattern: "^[^:\\s]{1,100}$",
  mustBe: "1 to 100 characters without colon and space",
} as const;

const platform = {
  shape: { kind: "text", longest: 100 },
  meaning: "Valid for this platform alone; of a broker for `events`, for this namespace.",
  otherwise: "for all",
  example: "cloud-foundry",
} as const;

const passwordFields = {
  username: { shape: name, meaning: "The name.", required: true, example: "platform" },
  password: {
    shape: { kind: "secret" },
    meaning: "The password.",
    example: { file: "/run/secrets/platform-password" },
  },
  passwordHash: {
    shape: { kind: "secret", pattern: "^\\$scrypt\\$.+", mustBe: "a hash that begins with $scrypt$" },
    meaning: "In place of the password, its scrypt hash.",
    example: { file: "/run/secrets/platform-password-hash" },
  },
} as const;

/** A user name and password of an operator or of a program that watches. */
export const operatorCredentialShape = { kind: "group", fields: passwordFields } as const;

/** A user name and password of a platform. */
const credentialShape = { kind: "group", fields: { ...passwordFields, platform } } as const;

/** `name:password`, one a line. A password may have colons in it. */
export const credentialsFromText: TextForm = {
  mustBe: "name:password, one a line",
  parse(text) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    // Without a colon it may be a password: it must not be taken for a name, which errors may show.
    if (!lines.every((line) => line.includes(":"))) return undefined;
    return lines.map((line) => {
      const colon = line.indexOf(":");
      return { username: line.slice(0, colon), password: line.slice(colon + 1) };
    });
  },
};

/** Who may ask, over what, and what is kept encrypted. */
export const securityFields = {
  authentication: {
    shape: { kind: "choice", of: ["required", "none"] },
    meaning: "`none`: anyone may ask; only where something in front of the broker authenticates.",
    default: "required",
  },
  credentials: {
    shape: { kind: "list", of: credentialShape, fromText: credentialsFromText },
    meaning:
      "User names and passwords of platforms (HTTP basic). Several are valid at a time, so that they can be changed without a gap. In the environment: `name:password`, one a line, and not beside a list in the file. Who you are to a broker is `OSBERT_LOGIN`.",
    otherwise: "one is made at the first start and printed; its hash is kept in the folder `data`",
    inOnePlace: "This is who may come in; who you are to a broker belongs into OSBERT_LOGIN",
    reloads: true,
    example: [{ username: "platform", password: { env: "PLATFORM_PASSWORD" } }],
  },
  tokens: {
    shape: {
      kind: "list",
      of: {
        kind: "group",
        fields: {
          issuer: {
            shape: { kind: "text", longest: 2_000 },
            meaning: "Who must have issued the token (`iss`).",
            required: true,
            example: "https://login.example.com",
          },
          audience: {
            shape: { kind: "text", longest: 2_000 },
            meaning: "For whom it must be (`aud`).",
            required: true,
            example: "osbert",
          },
          jwks: {
            shape: { kind: "text", pattern: "^https?://.+", mustBe: "an address that begins with https://" },
            meaning: "Where the issuer's public keys are (a JSON Web Key Set).",
            required: true,
            example: "https://login.example.com/keys",
          },
          nameClaim: {
            shape: { kind: "text", longest: 200 },
            meaning: "The claim that names the caller.",
            default: "sub",
          },
          scopes: {
            shape: { kind: "list", of: { kind: "text", longest: 200 } },
            meaning: "Scopes that the token must all have.",
            otherwise: "none",
            example: ["broker.use"],
          },
          platform,
        },
      },
    },
    meaning: "Issuers of bearer tokens (JWT) that are accepted.",
    otherwise: "none",
    reloads: true,
  },
  tls: {
    shape: {
      kind: "group",
      fields: {
        certificate: {
          shape: { kind: "contents" },
          meaning: "The file with the certificate and its chain, as PEM.",
          otherwise: "the broker answers over plain HTTP",
          example: "/etc/osbert/tls.crt",
          reloads: true,
        },
        key: {
          shape: { kind: "secret" },
          meaning: "The key of the certificate, as PEM.",
          example: { file: "/etc/osbert/tls.key" },
          reloads: true,
        },
        clientAuthority: {
          shape: { kind: "contents" },
          meaning: "The file with the certificates, as PEM, of those who may vouch for clients.",
          otherwise: "clients are not asked for a certificate",
          example: "/etc/osbert/clients.crt",
          reloads: true,
        },
        clientCertificates: {
          shape: { kind: "choice", of: ["request", "require"] },
          meaning:
            "With an authority. `request`: a client may show a certificate. `require`: without a valid one there is no connection at all, not even for `/healthz`.",
          default: "request",
        },
        clients: {
          shape: {
            kind: "list",
            of: {
              kind: "group",
              fields: {
                subject: {
                  shape: { kind: "text", longest: 1_000 },
                  meaning: "The subject of the certificate, in full.",
                  example: "CN=cloud-controller,O=Example",
                },
                alternativeName: {
                  shape: { kind: "text", pattern: "^(DNS|URI):.+", mustBe: "a name that begins with DNS: or URI:" },
                  meaning: "In place of the subject, an alternative name.",
                  example: "DNS:platform.example",
                },
                name: {
                  shape: { kind: "text", longest: 200 },
                  meaning: "What the journal calls it.",
                  otherwise: "as the certificate does",
                  example: "cloud-controller",
                },
                platform,
              },
            },
          },
          meaning: "Clients that are known by their certificate.",
          otherwise: "none",
          reloads: true,
        },
      },
    },
    meaning: "Encrypted connections.",
  },
  keys: {
    shape: { kind: "secret" },
    meaning:
      "Keys that encrypt credentials, parameters, state and results of steps in the store: one a line as `id:key`, the key 32 random bytes in base64. The first one encrypts, all of them decrypt.",
    otherwise: "nothing is encrypted",
    example: { file: "/run/secrets/osbert-keys" },
  },
} as const satisfies Fields;
