import { operatorCredentialShape, securityFields } from "./security-table.js";
import type { Fields, GroupOf } from "./shape.js";
import { table } from "./table.js";

const listen = table.listen.shape.fields;
const tls = securityFields.tls.shape.fields;
const token = securityFields.tokens.shape.of.fields;
const client = tls.clients.shape.of.fields;

const access = {
  role: {
    shape: { kind: "choice", of: ["see", "change", "operate"] },
    meaning:
      "What they may do: look; change what is in their spaces and read credentials; or run the platform, which is everything, in all spaces.",
    default: "see",
  },
  spaces: {
    shape: {
      kind: "list",
      of: {
        kind: "text",
        pattern: "^(\\*|[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)$",
        mustBe: "the name of a space, or * for all",
      },
    },
    meaning: "The spaces that they have. `*` stands for all of them.",
    otherwise: "none; operators have all",
    example: ["team-a"],
  },
} as const;

/**
 * Every setting of `osbert platform serve`. What it has in common with `osbert serve` is written there: reading, defaults, the environment and
 * the reference page are the same.
 */
export const platformTable = {
  data: {
    ...table.data,
    meaning: "The folder for what the platform keeps in files. It is made if it is missing.",
    default: ".osbert-platform",
  },
  store: { ...table.store, default: "sqlite:platform.db", example: "sqlite:platform.db" },
  database: {
    ...table.database,
    shape: {
      kind: "group",
      fields: {
        ...table.database.shape.fields,
        migrate: {
          ...table.database.shape.fields.migrate,
          meaning: "Brings the tables up to date at start. `false`: only `osbert platform migrate` does.",
        },
      },
    },
  },
  listen: {
    shape: {
      kind: "group",
      fields: {
        host: listen.host,
        port: { ...listen.port, default: 8081 },
        trustedProxies: {
          ...listen.trustedProxies,
          meaning:
            "Proxies in front of the platform whose `X-Forwarded-For` is believed. Wrong passwords are counted by address: without this, all that come over a proxy count as one.",
        },
      },
    },
    meaning: "Where the platform answers.",
  },
  authentication: {
    ...securityFields.authentication,
    meaning: "`none`: anyone may do anything; only where something in front of the platform authenticates.",
  },
  credentials: {
    shape: {
      kind: "list",
      of: { kind: "group", fields: { ...operatorCredentialShape.fields, ...access } },
    },
    meaning:
      "User names and passwords (HTTP basic), and what they may do. Several of one name are valid at a time, so that a password can be changed without a gap; their role and spaces must be the same.",
    otherwise: "one that may operate is made at the first start and printed; its hash is kept in the folder `data`",
    reloads: true,
    example: [{ username: "alice", password: { env: "ALICE_PASSWORD" }, role: "change", spaces: ["team-a"] }],
  },
  tokens: {
    shape: {
      kind: "list",
      of: {
        kind: "group",
        fields: {
          issuer: token.issuer,
          audience: token.audience,
          jwks: token.jwks,
          nameClaim: token.nameClaim,
          scopes: { ...token.scopes, example: ["platform.use"] },
          ...access,
          spacesClaim: {
            shape: { kind: "text", longest: 200 },
            meaning: "In place of `spaces`, the claim with their names: a list, or a text with spaces between them.",
            example: "spaces",
          },
        },
      },
    },
    meaning: "Issuers of bearer tokens (JWT) that are accepted, each once, and what those who have one may do.",
    otherwise: "none",
    reloads: true,
  },
  tls: {
    shape: {
      kind: "group",
      fields: {
        certificate: { ...tls.certificate, otherwise: "the platform answers over plain HTTP" },
        key: tls.key,
        clientAuthority: tls.clientAuthority,
        clientCertificates: tls.clientCertificates,
        clients: {
          shape: {
            kind: "list",
            of: {
              kind: "group",
              fields: {
                subject: client.subject,
                alternativeName: client.alternativeName,
                name: { shape: client.name.shape, meaning: client.name.meaning, required: true, example: "deployer" },
                ...access,
              },
            },
          },
          meaning: "Clients that are known by their certificate, and what they may do.",
          otherwise: "none",
          reloads: true,
        },
      },
    },
    meaning: "Encrypted connections.",
  },
  keys: {
    ...securityFields.keys,
    meaning:
      "Keys that encrypt credentials of brokers and bindings, and parameters, in the store: one a line as `id:key`, the key 32 random bytes in base64. The first one encrypts, all of them decrypt.",
  },
  limits: {
    shape: {
      kind: "group",
      fields: {
        concurrency: table.limits.shape.fields.concurrency,
        storeTimeout: {
          ...table.limits.shape.fields.storeTimeout,
          meaning: "How long a change is tried while the store does not answer, before whoever asked gets an error.",
        },
      },
    },
    meaning: "Bounds of work and of time.",
  },
  rotation: {
    shape: {
      kind: "group",
      fields: {
        overlap: {
          shape: { kind: "duration", to: 30 * 86_400_000 },
          meaning:
            "How long a binding is kept beside its successor before it is unbound: whoever uses it changes over meanwhile.",
          default: "1h",
        },
      },
    },
    meaning: "The renewal of bindings, on time and by hand.",
  },
  log: table.log,
  metrics: {
    shape: {
      kind: "group",
      fields: {
        enabled: {
          ...table.metrics.shape.fields.enabled,
          meaning: "Answers `/metrics` for Prometheus, to those with a credential for it or for the API.",
        },
        credentials: {
          shape: { kind: "list", of: operatorCredentialShape },
          meaning: "Who may read the metrics and `/readyz`, and nothing else.",
        },
      },
    },
    meaning: "Figures for Prometheus.",
  },
  reload: table.reload,
} as const satisfies Fields;

/** What is in force. */
export type PlatformSettings = GroupOf<typeof platformTable>;
