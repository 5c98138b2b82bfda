import type { Fields } from "./shape.js";

const flag = (meaning: string) => ({ shape: { kind: "flag" }, meaning, reloads: true }) as const;
const text = (meaning: string, longest = 1_000) =>
  ({ shape: { kind: "text", longest }, meaning, reloads: true }) as const;
const address = (meaning: string) =>
  ({
    shape: { kind: "text", pattern: "^https?://.+", mustBe: "an address that begins with http:// or https://" },
    meaning,
    reloads: true,
  }) as const;
const texts = (meaning: string) => ({ shape: { kind: "list", of: { kind: "text" } }, meaning, reloads: true }) as const;
const json = (meaning: string) => ({ shape: { kind: "json" }, meaning, reloads: true }) as const;
const id = (what: string) =>
  ({
    shape: { kind: "text", pattern: "^.{1,255}$", mustBe: "1 to 255 characters" },
    meaning: `Its id: of a ${what} that the module does not have, or for brokers that run the same module side by side. It is not changed while the ${what} has instances.`,
    reloads: true,
  }) as const;

const planFields = {
  id: id("plan"),
  description: text("What platforms show of it."),
  offered: flag(
    "`false` takes it out of the catalog. A reload refuses that while it has instances (see `catalog.retirePlansInUse`).",
  ),
  free: flag("Costs nothing."),
  bindable: flag("Can be bound."),
  planUpdateable: flag("Instances can change to another plan."),
  bindingRotatable: flag("Bindings can be replaced by newer ones."),
  maximumPollingDuration: {
    shape: { kind: "number", from: 0, to: 31_536_000 },
    meaning: "Seconds after which platforms give up.",
    reloads: true,
  },
  maintenanceInfo: {
    shape: {
      kind: "group",
      fields: {
        version: {
          shape: { kind: "text", longest: 200 },
          meaning: "A semantic version.",
          required: true,
          example: "1.2.3",
          reloads: true,
        },
        description: text("What it brings."),
      },
    },
    meaning: "Which maintenance instances can be brought to.",
    optional: true,
    reloads: true,
  },
  displayName: text("Its name for people."),
  bullets: texts("What it has, in a few words each."),
  costs: {
    shape: {
      kind: "list",
      of: {
        kind: "group",
        fields: {
          amount: {
            shape: { kind: "map", name: "currency", of: { kind: "number", from: 0, to: 1e12, fractions: true } },
            meaning: "How much, by currency.",
            required: true,
            example: { eur: 9.5 },
            reloads: true,
          },
          unit: {
            shape: { kind: "text", longest: 200 },
            meaning: "For what.",
            required: true,
            example: "MONTHLY",
            reloads: true,
          },
        },
      },
    },
    meaning: "What it costs.",
    reloads: true,
  },
  metadata: json("Anything else that the catalog shows."),
  schemas: {
    shape: {
      kind: "group",
      fields: {
        provision: json("Of the parameters of a provision."),
        update: json("Of the parameters of an update."),
        bind: json("Of the parameters of a bind."),
      },
    },
    meaning:
      "JSON Schemas in place of the module's. Make them narrower, not wider: the service's functions rely on what the module's allow. A plan that the module does not have takes any parameters without them.",
    reloads: true,
  },
} as const satisfies Fields;

const serviceFields = {
  use: {
    shape: { kind: "text", longest: 255 },
    meaning:
      "A service, or functions, of the module. This service has those functions and their state, and all that the catalog says of it is written here: it needs `id`, `description` and `plans`.",
    otherwise: "what the module has under the name of the service",
    example: "database",
    reloads: true,
  },
  id: id("service"),
  description: text("What platforms show of it."),
  offered: flag(
    "`false` takes it out of the catalog. A reload refuses that while it has instances (see `catalog.retirePlansInUse`).",
  ),
  tags: texts("Words that applications look for."),
  requires: {
    shape: {
      kind: "list",
      of: { kind: "choice", of: ["syslog_drain", "route_forwarding", "volume_mount"] },
    },
    meaning: "What bindings may ask of the platform.",
    example: ["syslog_drain"],
    reloads: true,
  },
  bindable: flag("Can be bound, where the plan does not say."),
  planUpdateable: flag("Instances can change to another plan, where the plan does not say."),
  instancesRetrievable: flag("Instances can be fetched."),
  bindingsRetrievable: flag("Bindings can be fetched."),
  allowContextUpdates: flag("Takes updates of the context alone."),
  displayName: text("Its name for people."),
  image: {
    shape: { kind: "image" },
    meaning: "The path of a picture (PNG, JPEG, GIF, WebP or SVG, at most 128 KiB). It goes into the catalog itself.",
    example: "database.png",
    reloads: true,
  },
  longDescription: text("More about it.", 10_000),
  providerDisplayName: text("Who offers it."),
  documentationUrl: address("Where its documentation is."),
  supportUrl: address("Where to get help."),
  dashboardClient: {
    shape: {
      kind: "group",
      fields: {
        id: {
          shape: { kind: "text", longest: 200 },
          meaning: "The id that the platform's login knows it by.",
          required: true,
          example: "database-dashboard",
          reloads: true,
        },
        secret: {
          shape: { kind: "secret" },
          meaning: "Its secret. The catalog tells it to platforms.",
          required: true,
          example: { env: "DASHBOARD_SECRET" },
          reloads: true,
        },
        redirectUri: address("Where the login leads to."),
      },
    },
    meaning: "The dashboard as a client of the platform's login.",
    optional: true,
    reloads: true,
  },
  metadata: json("Anything else that the catalog shows."),
  plans: {
    shape: { kind: "map", name: "plan", of: { kind: "group", fields: planFields } },
    meaning:
      "Plans, by name, or as a list of plans with a `name`. One that the module does not have needs `id` and `description`.",
    reloads: true,
  },
} as const satisfies Fields;

/** What an operator may say of services and plans, over what their code says and besides it. */
export const catalogFields = {
  schemaDraft: {
    shape: { kind: "choice", of: ["draft-04", "as-written"] },
    meaning:
      "The draft of JSON Schema in which the schemas of parameters are published. Every platform understands `draft-04`, and Cloud Foundry refuses all others; what cannot be said in it is told in the log at start. `as-written` publishes the draft that the author wrote. Parameters are checked with what the author wrote in any case.",
    default: "draft-04",
    reloads: true,
  },
  retirePlansInUse: {
    shape: { kind: "flag" },
    meaning:
      "A reload may take plans out of the catalog that have instances, or give them other ids. Those instances stay operable; nobody can have new ones. Without it such a reload is refused.",
    default: false,
    reloads: true,
  },
  services: {
    shape: { kind: "map", name: "service", of: { kind: "group", fields: serviceFields } },
    meaning:
      "Services, by name, or as a list of services with a `name`. One that the module does not have needs `use`.",
    reloads: true,
  },
} as const satisfies Fields;
