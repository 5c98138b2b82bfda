/**
 * Which room may import which, and which folder of a room which other of its folders: the arrows of ARCHITECTURE.md, written down once.
 * `npm run arrows` writes them into biome.json, where `npm run lint` holds them; a test compares the two. To move an arrow, change it here
 * and in ARCHITECTURE.md in one commit, and say why.
 */
export interface Room {
  /** Its name on npm, which is how others import it. */
  readonly npm: string;
  /** The rooms that it may import. Nothing is passed on: what stands behind an arrow needs an arrow of its own. */
  readonly imports: readonly string[];
  /** The rooms that its tests may import besides. */
  readonly testsImport?: readonly string[];
  /** What a wrong import is answered with. */
  readonly rule: string;
  /**
   * Its folders below `src`, each with those that it may import; every folder has its line. A file that lies beside the folders (`broker.ts`)
   * may have one, too, and is then imported only where it is named. The others are the ground that all folders stand on.
   */
  readonly folders?: Readonly<Record<string, readonly string[]>>;
  /** What some folders may not import besides. `""` is the whole room. */
  readonly never?: Readonly<Record<string, readonly Ban[]>>;
}

export interface Ban {
  /** Patterns of import paths, as in .gitignore. */
  readonly group: readonly string[];
  readonly message: string;
}

const drivers: Ban = {
  group: ["pg", "pg/**", "mysql2", "mysql2/**", "better-sqlite3", "better-sqlite3/**"],
  message: "Drivers are passed in; a store declares structurally what it calls.",
};

const pure: Ban = { group: ["node:*"], message: "A decision is a pure function: values in, values out." };

export const rooms: Readonly<Record<string, Room>> = {
  protocol: {
    npm: "@osbert/protocol",
    imports: [],
    rule: "protocol points at no other room.",
    folders: { catalog: [], schemas: [], client: ["catalog"], node: ["client"] },
  },
  journal: {
    npm: "@osbert/journal",
    imports: [],
    testsImport: ["journal-suites"],
    rule: "journal points at no other room and knows nothing of OSB.",
    folders: {
      stores: [],
      encryption: [],
      decisions: [],
      engine: ["decisions", "encryption"],
      testing: ["decisions"],
    },
    never: {
      engine: [drivers],
      decisions: [drivers, pure],
    },
  },
  "journal-suites": {
    npm: "@osbert/journal-suites",
    imports: ["journal"],
    rule: "journal-suites points at journal alone.",
    folders: { conformance: [], crash: [] },
  },
  server: {
    npm: "@osbert/server",
    imports: ["protocol", "journal"],
    rule: "server points at protocol and journal alone, and knows nothing of instances.",
    folders: {
      authentication: [],
      observe: ["authentication"],
      http: ["authentication", "observe"],
      fastify: ["authentication", "http"],
      metrics: ["observe"],
      traces: ["observe"],
      schemas: [],
      yaml: [],
      client: ["http"],
    },
  },
  broker: {
    npm: "@osbert/broker",
    imports: ["server", "protocol", "journal"],
    rule: "broker points at server, protocol and journal alone.",
    folders: {
      service: [],
      records: ["service"],
      catalog: ["records", "service"],
      decisions: ["catalog", "records", "service"],
      observe: ["catalog", "records"],
      operations: ["catalog", "decisions", "observe", "records", "service"],
      endpoints: ["catalog", "decisions", "operations", "records", "service"],
      admin: ["catalog", "decisions", "endpoints", "records", "service"],
      "broker.ts": ["admin", "catalog", "endpoints", "observe", "operations", "records", "service"],
      osb: ["broker.ts", "catalog", "endpoints", "observe", "records"],
      http: ["admin", "broker.ts", "endpoints", "observe", "osb"],
      testing: ["broker.ts", "http", "observe"],
    },
    never: { decisions: [pure] },
  },
  bundles: {
    npm: "@osbert/bundles",
    imports: ["broker", "server", "protocol", "journal"],
    rule: "bundles points at broker and what it uses; only the program and kubernetes point at bundles.",
    folders: {
      sources: [],
      selection: ["reconcile", "sources"],
      formats: ["sources"],
      author: ["catalog", "formats", "runners", "sources"],
      identity: [],
      reconcile: ["formats", "identity", "sources"],
      observe: ["formats", "reconcile", "selection", "sources"],
      runners: ["formats", "sources"],
      testing: ["formats", "runners", "sources"],
      admin: ["formats", "reconcile", "sources"],
      watch: ["formats", "reconcile", "runners"],
      catalog: ["admin", "formats", "identity", "observe", "reconcile", "runners", "selection", "sources", "watch"],
    },
    never: { reconcile: [pure] },
  },
  platform: {
    npm: "@osbert/platform",
    imports: ["server", "protocol", "journal"],
    testsImport: ["broker"],
    rule: "platform points at server, protocol and journal alone.",
    folders: {
      records: [],
      decisions: ["records"],
      brokers: ["decisions", "platform.ts", "records"],
      operations: ["brokers", "decisions", "records"],
      "platform.ts": ["records"],
      // Ask for changes of instances as users do, by the interface alone.
      campaigns: ["brokers", "decisions", "platform.ts", "records"],
      rotations: ["decisions", "platform.ts", "records"],
      queue: ["brokers", "campaigns", "decisions", "operations", "platform.ts", "records", "rotations"],
      api: ["platform.ts", "records"],
      // A broker to test platforms with, whoever's: it knows nothing of this one.
      testing: [],
    },
    never: { decisions: [pure] },
  },
  kubernetes: {
    npm: "@osbert/kubernetes",
    imports: ["bundles", "broker", "platform", "server", "protocol", "journal"],
    rule: "kubernetes points at broker, bundles and platform and what they use.",
    folders: {
      cluster: [],
      applications: ["cluster"],
      flows: ["applications", "cluster"],
      watch: ["cluster", "flows"],
      admin: ["flows"],
      wiring: ["admin", "applications", "cluster", "flows", "watch"],
      // What a service account has to be granted for all of it.
      access: ["applications", "cluster", "flows"],
      jobs: ["cluster"],
      streams: ["cluster"],
      import: ["applications", "cluster", "flows", "wiring"],
      events: ["admin", "applications", "cluster", "flows", "import", "watch", "wiring"],
    },
    never: { flows: [pure] },
  },
  cli: {
    npm: "osbert",
    imports: ["kubernetes", "bundles", "broker", "platform", "server", "protocol", "journal"],
    rule: "the program points at every room but console and create-osbert.",
    folders: {
      settings: [],
      spring: ["settings"],
      serve: ["settings"],
      config: ["serve", "settings", "spring"],
      keys: ["serve", "settings"],
      client: [],
      admin: ["client", "keys"],
      bundles: ["admin", "client"],
      bundle: ["client"],
      events: ["admin", "client"],
      misbehave: ["client"],
      "serve-platform": ["serve", "settings"],
      platform: ["admin", "client"],
    },
  },
  console: {
    npm: "@osbert/console",
    imports: ["protocol", "platform"],
    rule: "console points at the types of protocol and platform alone.",
  },
  "create-osbert": {
    npm: "create-osbert",
    imports: [],
    rule: "create-osbert imports nothing, so that it needs no installation.",
  },
};
