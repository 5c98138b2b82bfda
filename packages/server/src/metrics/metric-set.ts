import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** One metric, as its reader needs it. */
export interface MetricDefinition {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds in seconds, of a histogram. */
  readonly buckets?: readonly number[];
}

/** The metrics of a table, by their names in it. */
export type MetricSet<Definitions extends Readonly<Record<string, MetricDefinition>>> = {
  readonly [Name in keyof Definitions]: {
    readonly counter: Counter<Definitions[Name]["labels"][number]>;
    readonly gauge: Gauge<Definitions[Name]["labels"][number]>;
    readonly histogram: Histogram<Definitions[Name]["labels"][number]>;
  }[Definitions[Name]["type"]];
};

/** Registers the metrics of a table. What is not in it is not measured. */
export function metricSet<Definitions extends Readonly<Record<string, MetricDefinition>>>(
  definitions: Definitions,
  registry: Registry,
): MetricSet<Definitions> {
  const made = Object.entries(definitions).map(([name, definition]) => [name, metric(definition, registry)]);
  return Object.fromEntries(made) as MetricSet<Definitions>;
}

function metric({ name, help, labels, type, buckets = [] }: MetricDefinition, registry: Registry) {
  const shape = { name, help, labelNames: [...labels], registers: [registry] };
  switch (type) {
    case "counter":
      return new Counter(shape);
    case "gauge":
      return new Gauge(shape);
    case "histogram":
      return new Histogram({ ...shape, buckets: [...buckets] });
  }
}

/** A registry; with `process` it has the metrics of the process, too: memory, CPU, event loop. */
export function metricRegistry(options: { readonly process: boolean }): Registry {
  const registry = new Registry();
  if (options.process) collectDefaultMetrics({ register: registry });
  return registry;
}

/** The rows of a reference page, in Markdown. */
export function metricsTable(definitions: Readonly<Record<string, MetricDefinition>>): readonly string[] {
  const rows = Object.values(definitions).map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
  );
  return ["| metric | type | labels | meaning |", "|---|---|---|---|", ...rows];
}
