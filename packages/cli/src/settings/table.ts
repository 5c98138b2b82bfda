import { bundleFields } from "./bundles-table.js";
import { catalogFields } from "./catalog-table.js";
import { clusterFields, eventFields } from "./events-table.js";
import { credentialsFromText, operatorCredentialShape, securityFields } from "./security-table.js";
import type { Fields, GroupOf } from "./shape.js";
import { showUrl } from "./show-url.js";

/**
 * Every setting of `osbert serve`. Reading, defaults, the environment, `osbert config`, the JSON Schema for editors and the reference
 * page all come from here.
 */
export const table = {
  module: {
    shape: { kind: "path" },
    meaning:
      "The TypeScript or JavaScript file with the services. It exports `services`, a list of services or of functions that `catalog.services` makes services of, or a default function that is given `{ data }`, the folder for data, and returns one. It is loaded at start and not again.",
    otherwise: "**must be there**, unless `bundles` names sources or `events.enabled` is true",
    example: "services.ts",
  },
  bundles: {
    shape: { kind: "group", fields: bundleFields },
    meaning:
      "Services that nobody has to write code for: bundles from registries and folders, beside the services of `module` if there is one. What is marked with ↻ is reloaded. A restart is needed where `sources` and `registry` come or go altogether, and beside bundles for changes of `catalog`.",
  },
  events: {
    shape: { kind: "group", fields: eventFields },
    meaning:
      "Services that the applications of a Kubernetes cluster offer, and the flow of their events into namespaces. Each namespace is a platform of its own, at `/NAMESPACE/v2/…`. A change needs a restart.",
  },
  cluster: {
    shape: { kind: "group", fields: clusterFields },
    meaning: "The Kubernetes cluster of `events`, of `bundles.runner: kubernetes` and of bundles in image streams.",
  },
  data: {
    shape: { kind: "path" },
    meaning: "The folder for what the broker and its services keep in files. It is made if it is missing.",
    default: ".osbert",
  },
  store: {
    shape: {
      kind: "secret",
      pattern: "^(sqlite:.+|memory:|postgres(ql)?://.+|mysql://.+)$",
      mustBe: "sqlite:PATH, postgres://…, mysql://… or memory:",
      show: showUrl,
    },
    meaning:
      "Where the journal is kept: `sqlite:` with a path (from the folder `data`), `postgres://user:password@host/database`, `mysql://user:password@host/database` (MariaDB too), or `memory:`, which forgets everything at the end.",
    default: "sqlite:broker.db",
    example: "sqlite:broker.db",
  },
  database: {
    shape: {
      kind: "group",
      fields: {
        schema: {
          shape: { kind: "text", pattern: "^[a-z_][a-z0-9_]{0,39}$", mustBe: "lower-case letters, digits and _" },
          meaning: "The PostgreSQL schema of the tables; on MySQL and MariaDB, what their names begin with.",
          default: "osbert",
        },
        connections: {
          shape: { kind: "number", from: 1, to: 100 },
          meaning:
            "Connections for statements, on PostgreSQL; on MySQL and MariaDB, transactions that commit at the same time. A few more are opened for other work.",
          default: 4,
        },
        migrate: {
          shape: { kind: "flag" },
          meaning: "Brings the tables up to date at start. `false`: only `osbert migrate` does.",
          default: true,
        },
      },
    },
    meaning: "How PostgreSQL, MySQL and MariaDB are used.",
  },
  listen: {
    shape: {
      kind: "group",
      fields: {
        host: {
          shape: { kind: "text", longest: 255 },
          meaning: "The address to listen on. `0.0.0.0` or `::` answers other machines, too.",
          default: "127.0.0.1",
        },
        port: {
          shape: { kind: "number", from: 0, to: 65_535 },
          meaning: "The port to listen on. 0 takes a free one.",
          default: 8080,
          environment: ["PORT"],
        },
        trustedProxies: {
          shape: {
            kind: "list",
            of: { kind: "text", pattern: "^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$", mustBe: "an address or network" },
            fromText: {
              mustBe: "addresses or networks with commas between them",
              parse: (text) => text.split(",").map((item) => item.trim()),
            },
          },
          meaning:
            "Proxies in front of the broker whose `X-Forwarded-For` is believed. Wrong passwords are counted by address: without this, all that come over a proxy count as one.",
          otherwise: "none",
          example: ["10.0.0.0/8"],
        },
      },
    },
    meaning: "Where the broker answers.",
  },
  ...securityFields,
  platforms: {
    shape: {
      kind: "list",
      of: { kind: "text", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", mustBe: "letters, digits, dots and dashes" },
      fromText: {
        mustBe: "names with commas between them",
        parse: (text) => text.split(",").map((name) => name.trim()),
      },
    },
    meaning:
      "Platforms that share this broker, each under `/NAME/v2/…`, with ids of their own. Without any, the API is at `/v2/…`.",
    example: ["cloud-foundry", "kubernetes"],
  },
  api: {
    shape: {
      kind: "group",
      fields: {
        minimumVersion: {
          shape: { kind: "text", pattern: "^2\\.[0-9]{1,3}$", mustBe: "a version of the API such as 2.13" },
          meaning: "Platforms that speak an older version of the API are refused.",
          default: "2.13",
        },
        syncTimeout: {
          shape: { kind: "duration", to: 600_000 },
          meaning:
            "How long a platform that takes no asynchronous answer is kept waiting. Most of them give up after 60 seconds.",
          default: "50s",
        },
        retryAfter: {
          shape: { kind: "number", from: 1, to: 86_400 },
          meaning: "Seconds that platforms are advised to wait between polls.",
          otherwise: "as they like",
          example: 10,
        },
        cascade: {
          shape: { kind: "flag" },
          meaning: "A deprovision takes the bindings that are left along, instead of being refused.",
          default: false,
        },
        forceDeleteUnknown: {
          shape: {
            kind: "group",
            fields: {
              instances: {
                shape: { kind: "flag" },
                meaning: "Deleting an instance that is not known answers 200 instead of 410.",
                default: false,
              },
              bindings: {
                shape: { kind: "flag" },
                meaning:
                  "Deleting a binding that is not known, or one of an unknown instance, answers 200 instead of 410.",
                default: false,
              },
            },
          },
          meaning: "For platforms that would otherwise never let go of what was lost.",
        },
      },
    },
    meaning: "How requests are answered.",
  },
  async: {
    shape: {
      kind: "group",
      fields: {
        provision: asyncMode("provision"),
        update: asyncMode("update"),
        deprovision: asyncMode("deprovision"),
        bind: asyncMode("bind"),
        unbind: asyncMode("unbind"),
        answerWithin: {
          shape: { kind: "duration", to: 50_000 },
          meaning: "Waits so long for the end before answering 202: what is quick is answered at once.",
          default: "0ms",
          example: "2s",
        },
      },
    },
    meaning: "Whether requests are answered before they are done, where service and plan do not say themselves.",
  },
  limits: {
    shape: {
      kind: "group",
      fields: {
        concurrency: {
          shape: { kind: "number", from: 1, to: 10_000 },
          meaning: "Operations that run at the same time in this process.",
          default: 256,
        },
        perService: {
          shape: { kind: "number", from: 1, to: 10_000 },
          meaning: "Of them, how many of one service, so that one that hangs leaves room for the others.",
          otherwise: "half of `limits.concurrency`",
          example: 64,
        },
        openPerInstance: {
          shape: { kind: "number", from: 1, to: 100_000 },
          meaning: "Operations of one instance and its bindings that are under way or wait.",
          default: 10_000,
        },
        storeTimeout: {
          shape: { kind: "duration", to: 600_000 },
          meaning: "How long a change is tried while the store does not answer, before the platform gets an error.",
          default: "10s",
        },
        drain: {
          shape: { kind: "duration", to: 3_600_000 },
          meaning:
            "At the end, how long operations that run may take. The rest goes on elsewhere or at the next start.",
          default: "10s",
        },
        grace: {
          shape: { kind: "duration", to: 600_000 },
          meaning: "How long an operation that was told to stop may take to do so.",
          default: "10s",
        },
      },
    },
    meaning: "Bounds of work and of time.",
  },
  retention: {
    shape: {
      kind: "group",
      fields: {
        succeeded: retained("operations that succeeded", "30d"),
        failed: retained("operations that failed", "90d"),
        cancelled: retained("operations that were cancelled", "30d"),
        notes: retained("entries that belong to no operation", "90d"),
        deleted: {
          shape: { kind: "duration" },
          meaning:
            "After all that, how long an instance that was deleted is told from one that never was: 410 in place of 404.",
          default: "365d",
        },
      },
    },
    meaning: "How long the journal is kept after the end of an operation.",
  },
  cleanup: {
    shape: {
      kind: "group",
      fields: {
        instances: cleanup("instances"),
        bindings: cleanup("bindings"),
        timezone: {
          shape: { kind: "text", longest: 100 },
          meaning: "Of the schedules.",
          default: "UTC",
          example: "Europe/Berlin",
        },
      },
    },
    meaning:
      "Forgets finished operations at fixed times, instead of after the ages of `retention`. Never touches one that runs.",
  },
  audit: {
    shape: {
      kind: "group",
      fields: {
        file: {
          shape: { kind: "path" },
          meaning:
            "Where entries of journals are kept before they are forgotten: one a line, as JSON, without secrets. Its folder must be there. Each process of a broker needs a file of its own.",
          otherwise: "they are forgotten",
          example: "audit.jsonl",
        },
      },
    },
    meaning: "The trail of who did what, for longer than `retention`.",
  },
  log: {
    shape: {
      kind: "group",
      fields: {
        level: {
          shape: { kind: "choice", of: ["debug", "info", "warn", "error", "silent"] },
          meaning: "What is not worth less than this is logged.",
          default: "info",
          reloads: true,
        },
        format: {
          shape: { kind: "choice", of: ["text", "json"] },
          meaning: "Lines for people, or for programs.",
          default: "text",
        },
      },
    },
    meaning: "The log, on standard error.",
  },
  metrics: {
    shape: {
      kind: "group",
      fields: {
        enabled: {
          shape: { kind: "flag" },
          meaning:
            "Answers `/metrics` for Prometheus, to those with a credential for it, for the admin API, or of a platform.",
          default: false,
        },
        credentials: {
          shape: { kind: "list", of: operatorCredentialShape, fromText: credentialsFromText },
          meaning: "Who may read the metrics.",
          inOnePlace: "This is who may read the metrics",
        },
      },
    },
    meaning: "Figures for Prometheus.",
  },
  tracing: {
    shape: {
      kind: "group",
      fields: {
        endpoint: {
          shape: { kind: "text", pattern: "^https?://.+", mustBe: "an address that begins with http:// or https://" },
          meaning: "Where traces are sent, as OpenTelemetry's OTLP over HTTP.",
          otherwise: "none are sent",
          example: "http://127.0.0.1:4318/v1/traces",
        },
      },
    },
    meaning: "Traces from the request through every step.",
  },
  admin: {
    shape: {
      kind: "group",
      fields: {
        credentials: {
          shape: { kind: "list", of: operatorCredentialShape, fromText: credentialsFromText },
          meaning: "Who may use the admin API. Who you are to it is `OSBERT_ADMIN_LOGIN`.",
          inOnePlace: "This is who may operate the broker; who you are to it belongs into OSBERT_ADMIN_LOGIN",
          otherwise: "nobody: it does not answer",
        },
      },
    },
    meaning: "The API behind the operators' commands.",
  },
  reload: {
    shape: {
      kind: "group",
      fields: {
        watch: {
          shape: { kind: "flag" },
          meaning:
            "Reloads when this file, or one that it names (pictures, secrets), changes. SIGHUP does in any case.",
          default: true,
        },
      },
    },
    meaning: "Changes without a restart.",
  },
  catalog: {
    shape: { kind: "group", fields: catalogFields },
    meaning:
      "What the catalog says, over what the module says, and besides it: plans and services can be added. Services and plans are written by name, or as lists whose items have a `name`.",
  },
} as const satisfies Fields;

/** What is in force. */
export type Settings = GroupOf<typeof table>;

function asyncMode(verb: string) {
  return {
    shape: { kind: "choice", of: ["prefer", "require", "never"] },
    meaning: `For ${verb}. \`prefer\`: asynchronously if the platform accepts that; \`require\`: only so; \`never\`: the platform waits.`,
    default: "prefer",
  } as const;
}

function retained(what: string, given: string) {
  return {
    shape: { kind: "duration", forever: true },
    meaning: `For ${what}. \`forever\` keeps them.`,
    default: given,
  } as const;
}

function cleanup(what: string) {
  const schedule = (which: string) =>
    ({
      shape: {
        kind: "text",
        pattern: "^[^ ]+( [^ ]+){5}$",
        mustBe: "six fields of a schedule: second, minute, hour, day, month, weekday",
      },
      meaning: `When ${which} operations of ${what} are forgotten: a schedule of six fields, seconds first.`,
      otherwise: "never, if another of these is set; else by age",
      example: "0 0 3 * * *",
    }) as const;
  return {
    shape: {
      kind: "group",
      fields: {
        all: schedule("all finished"),
        succeeded: schedule("succeeded"),
        failed: schedule("failed and cancelled"),
        age: {
          shape: { kind: "duration" },
          meaning: "Only what ended so long ago.",
          default: "7d",
        },
      },
    },
    meaning: `Operations of ${what}.`,
  } as const;
}
