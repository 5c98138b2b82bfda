/** What the journal's benchmark writes; see packages/journal/bench/report.ts. */
export interface JournalReport {
  readonly date: string;
  readonly command: string;
  readonly tookSeconds: number;
  readonly machine: {
    readonly cores: number;
    readonly cpu: string;
    readonly memoryGb: number;
    readonly node: string;
    readonly stores: readonly string[];
    readonly load: number;
  };
  readonly fsync: { readonly p50Ms: number; readonly p99Ms: number };
  readonly leftOut: readonly string[];
  /** The head and a row for each figure. */
  readonly table: readonly (readonly string[])[];
}

interface Row {
  readonly what: string;
  readonly ratio: number;
  /** Between which the middle half of the rounds lies. */
  readonly spread: readonly [number, number];
  readonly target: number | null;
  readonly oursPerSecond: number;
  readonly ceilingPerSecond: number;
}

/** What the broker's benchmark writes; see packages/broker/bench/main.ts. */
export interface BrokerReport {
  readonly date: string;
  readonly command: string;
  readonly load: number;
  readonly tookSeconds: number;
  readonly rows: readonly Row[];
  readonly instances: number;
  readonly fills: readonly Row[];
  readonly durable: {
    readonly rows: readonly Row[];
    readonly watching: readonly Row[];
    /** In bytes; `null` where the system does not tell. */
    readonly resident: { readonly osbert: number | null; readonly ceiling: number | null };
  };
}

/** What the benchmark of bundles writes; see packages/bundles/bench/main.ts. */
export interface BundlesReport {
  readonly command: string;
  readonly load: number;
  readonly tookSeconds: number;
  readonly leftOut: readonly string[];
  /** The head and a row for each figure. */
  readonly table: readonly (readonly string[])[];
}

/** What the platform's benchmark writes; see packages/platform/bench/main.ts. */
export interface PlatformReport {
  readonly command: string;
  readonly load: number;
  readonly tookSeconds: number;
  /** The head and a row for each figure. */
  readonly table: readonly (readonly string[])[];
}

/** What the benchmark of event flow writes; see packages/kubernetes/bench/main.ts. */
export interface EventsReport {
  readonly command: string;
  readonly load: number;
  readonly tookSeconds: number;
  readonly leftOut: readonly string[];
  /** The head and a row for each figure. */
  readonly table: readonly (readonly string[])[];
}

/** docs/benchmarks.md: figures with what they were measured on, and what they are held against. */
export function benchmarksPage(
  journal: JournalReport,
  broker: BrokerReport,
  bundles: BundlesReport,
  platform: PlatformReport,
  events: EventsReport,
): string {
  const { machine, fsync } = journal;
  return `# Benchmarks

Written by \`npm run bench\`. Every figure is a ratio to a ceiling that was measured in the same run, turn by turn, because machines are noisy;
the absolute numbers beside it belong to this machine alone. A target that is missed says MISS.

| | |
|---|---|
| machine | ${machine.cores} cores (${machine.cpu.trim()}), ${machine.memoryGb} GB |
| software | Node ${machine.node}, ${machine.stores.join(", ")} |
| disk | fdatasync of 4 KiB: p50 ${fsync.p50Ms.toFixed(2)} ms, p99 ${fsync.p99Ms.toFixed(2)} ms |
| load before | ${machine.load.toFixed(1)} (journal), ${broker.load.toFixed(1)} (broker), ${bundles.load.toFixed(1)} (bundles), ${platform.load.toFixed(1)} (platform), ${events.load.toFixed(1)} (event flow) |
| date | ${journal.date.slice(0, 10)} |

## The broker over HTTP

\`${broker.command}\`, ${broker.tookSeconds} seconds: 64 connections, authenticated, SQLite at \`synchronous=FULL\`. The ceiling of reads and lifecycles is a bare Fastify
server that sends the same bytes, head and body, without looking at who asks for what; that of provisions is what the journal alone accepts. Both run in turns, in rounds of less than a second; the
ratio is the median of the rounds', and half of these are within the spread.

${rows("broker", "ceiling", broker.rows)}

\`osbert serve\`, with metrics and a log of warnings, against a bare Fastify server that keeps one row an instance or binding on SQLite at \`synchronous=FULL\`, with
one grouped commit a verb and nothing else; beside it, the same server with two commits a verb, as a record needs that is there before the author's code runs. Polled
lifecycles have 1,024 callers. Resident after all of it: ${megabytes(broker.durable.resident.osbert)} (target ≤ 150 MB); the bare server: ${megabytes(broker.durable.resident.ceiling)}.

${rows("osbert", "ceiling", broker.durable.rows)}

What watching costs: the same against the framework alone, which nobody watches:

${rows("osbert", "framework", broker.durable.watching)}

With ${broker.instances.toLocaleString("en")} instances in the store, against the same broker with few:

${rows("with many", "with few", broker.fills)}

## Bundles

\`${bundles.command}\`, ${bundles.tookSeconds} seconds. The registry is Debian's docker-registry on this machine, read with the default concurrency; stores are SQLite at
\`synchronous=FULL\`. A bundle of 15,000 has two plans with schemas.

${table(bundles.table)}
${bundles.leftOut.map((line) => `\nLeft out: ${line}\n`).join("")}
## The platform

\`${platform.command}\`, ${platform.tookSeconds} seconds. The library without HTTP, on SQLite at \`synchronous=FULL\`; its broker is a process of its own that answers at
once, with a catalog of ten offerings of three plans with schemas.

- **Accepting**: 64 callers, each asking for the next instance as soon as the last one is durable; nothing is played meanwhile. The ceiling is the journal
  alone, with one operation on a new resource and 300 bytes that it keeps as data and as input.
- **Playing**: creates that were accepted before are let go, and timed to the end of the last. The ceiling is a loop of \`fetch\` with the same requests.
- **Reading**: one instance after the other by \`instances.read\`: phase, applied, desired, queue, certainty, bindings. The copies are put straight into the
  tables; the long journal is one of updates that were played.
- **Polled**: instances whose broker says "in progress" and asks for an hour's patience, on a clock that is put forward by an hour as soon as all were asked.

${table(platform.table)}

## Event flow

\`${events.command}\`, ${events.tookSeconds} seconds. A cluster on this machine with Kubernetes' and Knative Eventing's own programs, which have the cores for themselves as
little as the broker does; the broker is a process of its own, on SQLite at \`synchronous=FULL\`. Requests are counted where they leave the broker.

- **A provision**: all flows at once, until the last is ready and its mirror tells so: what is shared by the flows of a namespace is divided among them. Lists
  and watches of the beginning are not counted.
- **A start**: the same store, another process, until all namespaces were looked at and nothing was written for five seconds.
- **An hour without news**: counted for some minutes. What is left are watches, which the API server ends every few minutes.
- **From a change to the condition**: a channel is taken from its application and given back; from the answer of the API server to the condition being
  durable, without the time that a condition has to stay before it is told.
- **Memory**: the resident set after a collection, in the steady state. What is watched beside the flows' own objects is filled up with mirrors of others.

${table(events.table)}
${events.leftOut.map((line) => `\nLeft out: ${line}\n`).join("")}
## The journal

\`${journal.command}\`, ${journal.tookSeconds} seconds.

${table(journal.table)}
${journal.leftOut.map((line) => `\nLeft out: ${line}\n`).join("")}`;
}

function rows(mine: string, theirs: string, all: readonly Row[]): string {
  const cells = all.map(({ what, ratio, spread, target, oursPerSecond, ceilingPerSecond }) => {
    const judged = target === null ? ["", ""] : [`≥ ${percent(target)}`, ratio >= target ? "pass" : "MISS"];
    const rates = [oursPerSecond, ceilingPerSecond].map((rate) => `${Math.round(rate)}/s`);
    return [what, percent(ratio), spread.map(percent).join(" to "), ...judged, ...rates];
  });
  return table([["", "ratio", "spread", "target", "", mine, theirs], ...cells]);
}

function table([head = [], ...body]: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function megabytes(bytes: number | null): string {
  return bytes === null ? "unknown" : `${Math.round(bytes / 1e6)} MB`;
}

function percent(ratio: number): string {
  return `${Math.round(ratio * 100)} %`;
}
