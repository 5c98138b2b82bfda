import type { bundleDescriptions } from "@osbert/bundles/admin";
import type { Shaped } from "@osbert/server/client";
import { type Command, Option } from "commander";
import {
  type PageChoice,
  withAdminOptions,
  withPageOptions,
  withPlatformOption,
} from "../admin/admin-command-options.js";
import type { AdminOptions, AdminSession } from "../admin/admin-session.js";
import { facts, printList } from "../admin/print.js";
import { plainJson, plainText } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import { partlyFailed, runBundleCommand } from "./bundle-command.js";

type Answer<Name extends keyof typeof bundleDescriptions> = Shaped<(typeof bundleDescriptions)[Name]["answer"]>;
type Source = Answer<"source">;
type Spec = Answer<"spec">;
type Run = Answer<"run">;
type ListOptions = AdminOptions & PageChoice;

interface SpecsOptions extends ListOptions {
  readonly state?: string;
}

const states = ["pending", "rejected", "active", "missing", "retired", "deleted"];
const theSource = "the source's name, as it is configured";
const theSpec = "the spec's id, as `osbert bundles specs` shows it";

/** The commands about bundles that change nothing. */
export function registerReadCommands(bundles: Command, surroundings: Surroundings): void {
  registerSources(bundles, surroundings);
  registerSource(bundles, surroundings);
  registerSpecs(bundles, surroundings);
  registerSpec(bundles, surroundings);
  registerRuns(bundles, surroundings);
  registerRun(bundles, surroundings);
  registerEvents(bundles, surroundings);
  registerPreview(bundles, surroundings);
  registerDangling(bundles, surroundings);
  registerCollectable(bundles, surroundings);
  registerJobs(bundles, surroundings);
  registerLogs(bundles, surroundings);
}

function registerSources(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("sources")
    .summary("list the sources of bundles")
    .description("Lists the sources of bundles with their health and the number of their specs.")
    .action((options: ListOptions) =>
      runBundleCommand(options, surroundings, "list the sources", async (ask, session) => {
        const headings = ["SOURCE", "MODE", "ACTIVE", "MISSING", "RETIRED", "REJECTED", "LAST COMPLETE", "REMARKS"];
        const row = (item: Source) => [
          item.name,
          item.mode,
          ...[item.specs.active, item.specs.missing, item.specs.retired, item.specs.rejected].map(String),
          item.last_complete_at ?? "never",
          [readingText(item), troubleOf(item)].filter((text) => text !== "").join("; ") || "-",
        ];
        await printList(session, (query) => ask("sources", {}, { query }), options, headings, row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "how the registries are", command: "osbert bundles sources" }]);
}

function registerSource(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("source")
    .summary("show a source of bundles")
    .description("Shows the health of a source, the number of its specs, and a removal that is held, if there is one.")
    .argument("<source>", theSource)
    .action((source: string, options: AdminOptions) =>
      runBundleCommand(options, surroundings, `show ${source}`, async (ask, session) => {
        const item = await ask("source", { source });
        print(session, item, sourceText(item));
      }),
    );
  withAdminOptions(command);
  withExamples(command, [{ does: "why nothing comes from it", command: "osbert bundles source registry" }]);
}

function registerSpecs(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("specs")
    .summary("list the specs of a source")
    .description("Lists the specs of a source, in the order of their ids, with their states.")
    .argument("<source>", theSource)
    .addOption(new Option("--state <state>", "only those in this state").choices(states))
    .action((source: string, options: SpecsOptions) =>
      runBundleCommand(options, surroundings, `list the specs of ${source}`, async (ask, session) => {
        const headings = ["SPEC", "SERVICE", "VERSION", "STATE", "REMARKS"];
        const row = (item: Answer<"specs">["items"][number]) => [
          item.id,
          item.name ?? "-",
          item.version ?? "-",
          item.state,
          remarksOf(item),
        ];
        const page = (query: object) => ask("specs", { source }, { query: { state: options.state, ...query } });
        await printList(session, page, options, headings, row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [
    { does: "what has left the catalog", command: "osbert bundles specs registry --state retired" },
  ]);
}

function registerSpec(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("spec")
    .summary("show a spec, its revisions and what is wrong with it")
    .description(
      "Shows a spec: its state and why, its revisions, who holds it, and why its newest content was refused.",
    )
    .argument("<source>", theSource)
    .argument("<spec>", theSpec)
    .action((source: string, spec: string, options: AdminOptions) =>
      runBundleCommand(options, surroundings, `show ${spec}`, async (ask, session) => {
        const item = await ask("spec", { source, spec });
        print(session, item, specText(item));
      }),
    );
  withAdminOptions(command);
  withExamples(command, [
    { does: "why it is not offered", command: "osbert bundles spec registry team/postgres:latest" },
  ]);
}

function registerRuns(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("runs")
    .summary("list what has changed a source")
    .description(
      "Lists what has changed a source, newest first: readings, decisions and collection. Readings that changed nothing are not kept.",
    )
    .argument("<source>", theSource)
    .action((source: string, options: ListOptions) =>
      runBundleCommand(options, surroundings, `list the runs of ${source}`, async (ask, session) => {
        const row = (item: Run) => [
          String(item.run),
          item.at,
          item.by,
          String(item.event_count),
          item.events.map(({ code, spec }) => (spec === null ? code : `${code} ${spec}`)).join(", "),
        ];
        const headings = ["RUN", "AT", "BY", "EVENTS", "WHAT"];
        const page = (query: object) => ask("runs", { source }, { query });
        await printList(session, page, options, headings, row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "what has happened lately", command: "osbert bundles runs registry --limit 20" }]);
}

function registerRun(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("run")
    .summary("show what a run has changed")
    .description("Shows all events of a run, each with its reason.")
    .argument("<source>", theSource)
    .argument("<run>", "its number, as `osbert bundles runs` shows it")
    .action((source: string, run: string, options: AdminOptions) =>
      runBundleCommand(options, surroundings, `show run ${run}`, async (ask, session) => {
        const item = await ask("run", { source, run });
        const rows = item.events.map(({ code, spec, why }) => [code, spec ?? "-", why]);
        print(session, item, `${table(["EVENT", "SPEC", "WHY"], rows)}\n`);
      }),
    );
  withAdminOptions(command);
  withExamples(command, [{ does: "why they have gone", command: "osbert bundles run registry 42" }]);
}

function registerEvents(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("events")
    .summary("list what has happened to a source, or to one of its specs")
    .description(
      "Lists what has happened to a source or to one of its specs, newest first: a code that stays, who decided it, and why. Readings, decisions and collection leave events; readings that changed nothing do not.",
    )
    .argument("<source>", theSource)
    .argument("[spec]", theSpec)
    .action((source: string, spec: string | undefined, options: ListOptions) =>
      runBundleCommand(options, surroundings, `list the events of ${spec ?? source}`, async (ask, session) => {
        const row = (item: Answer<"events">["items"][number]) => [
          item.at,
          item.code,
          item.spec ?? "-",
          item.by,
          item.why,
        ];
        const page = (query: object) => ask("events", { source }, { query: { spec, ...query } });
        await printList(session, page, options, ["AT", "EVENT", "SPEC", "BY", "WHY"], row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [
    { does: "why it has left the catalog", command: "osbert bundles events registry team/postgres:latest" },
  ]);
}

interface PreviewOptions extends AdminOptions {
  readonly config: string;
}

function registerPreview(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("preview")
    .summary("show what other settings of sources would change")
    .description(
      "Reads the sources of another file of settings now, and shows what using it would change: what would be added, updated or go missing, and what the guard would hold. Nothing is changed. The file lies beside the broker's own settings: so the broker reads no other.",
    )
    .requiredOption("--config <name>", "the file's name, in the folder of the broker's settings")
    .action((options: PreviewOptions) =>
      runBundleCommand(options, surroundings, `preview ${options.config}`, async (ask, session) => {
        const answer = await ask("preview", {}, { query: { config: options.config } });
        const rows = answer.items.flatMap((item) => [
          item.error === null
            ? [item.source, `settings ${item.settings}`, "-", `reading ${item.completeness ?? "none"}`]
            : [item.source, "could not be read", "-", item.error],
          ...(item.held === null
            ? []
            : [[item.source, "guard would hold", "-", `the removal of ${item.held.count} of ${item.held.of}`]]),
          ...item.events.map(({ code, spec, why }) => [item.source, code, spec ?? "-", why]),
          ...(item.event_count > item.events.length
            ? [[item.source, "more", "-", `${item.event_count - item.events.length} more events`]]
            : []),
        ]);
        print(
          session,
          answer,
          rows.length === 0 ? "no sources\n" : `${table(["SOURCE", "WHAT", "SPEC", "WHY"], rows)}\n`,
        );
        return answer.items.some(({ error }) => error !== null) ? partlyFailed : undefined;
      }),
    );
  withAdminOptions(command);
  withExamples(command, [
    { does: "what a narrower filter would take away", command: "osbert bundles preview --config osbert.next.yaml" },
  ]);
}

function registerDangling(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("dangling")
    .summary("list instances whose bundle cannot be found")
    .description("Lists instances whose service, or the revision that they were made of, no source knows.")
    .action((options: ListOptions) =>
      runBundleCommand(options, surroundings, "list dangling instances", async (ask, session) => {
        const row = (item: Answer<"dangling">["items"][number]) => [
          item.instance,
          item.platform || "-",
          item.phase,
          item.service_id,
          item.why,
        ];
        const headings = ["INSTANCE", "PLATFORM", "PHASE", "SERVICE", "WHY"];
        await printList(session, (query) => ask("dangling", {}, { query }), options, headings, row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "is anything stranded?", command: "osbert bundles dangling" }]);
}

function registerCollectable(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("collectable")
    .summary("show what the next pass of collection would remove")
    .description("Shows what the next pass of collection would remove, and what is old enough and stays, with why.")
    .action((options: AdminOptions) =>
      runBundleCommand(options, surroundings, "see what would be collected", async (ask, session) => {
        const answer = await ask("collectable", {});
        const rows = answer.items.flatMap(({ source, deleted, revisions, forgotten, kept }) => [
          ...deleted.map((what) => [source, "goes", what, ""]),
          ...revisions.map((what) => [source, "goes", what, ""]),
          ...forgotten.map((what) => [source, "is forgotten", what, ""]),
          ...kept.map(({ what, why }) => [source, "stays", what, why]),
        ]);
        print(
          session,
          answer,
          rows.length === 0
            ? "there is nothing\n"
            : `${table(["SOURCE", "WHAT BECOMES OF IT", "WHAT", "WHY"], rows)}\n`,
        );
      }),
    );
  withAdminOptions(command);
  withExamples(command, [{ does: "a dry run", command: "osbert bundles collectable" }]);
}

const theInstance = "the instance's id, as the platform gave it";

interface JobOptions extends AdminOptions {
  readonly platform?: string;
  readonly binding?: string;
}

function registerJobs(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("jobs")
    .summary("list what bundles have run for an instance")
    .description(
      "Lists what bundles have run for an instance and its bindings, newest first: the job, its operation, where it runs, how it ended and why.",
    )
    .argument("<instance>", theInstance)
    .option("--binding <id>", "only for this binding")
    .action((instance: string, options: JobOptions) =>
      runBundleCommand(options, surroundings, `list the jobs of ${instance}`, async (ask, session) => {
        const { platform, binding } = options;
        const answer = await ask("jobs", {}, { query: { instance, platform, binding } });
        const rows = answer.items.map((item) => [
          ...[item.job, item.action, item.binding ?? "-", item.operation, item.place ?? "-", item.at, item.state],
          item.error ?? "-",
        ]);
        const headings = ["JOB", "ACTION", "BINDING", "OPERATION", "PLACE", "AT", "STATE", "ERROR"];
        print(session, answer, rows.length === 0 ? "there are none\n" : `${table(headings, rows)}\n`);
      }),
    );
  withAdminOptions(withPlatformOption(command));
  withExamples(command, [{ does: "what became of the bind", command: "osbert bundles jobs my-db --binding my-app" }]);
}

function registerLogs(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("logs")
    .summary("print what an action of a bundle has logged")
    .description(
      "Prints what an action of a bundle has printed for people, its last 256 KiB, without secrets: the newest of an instance, or of one of its bindings, or the one that is named. On the machine that ran it all of it is there for 30 days; of an action that failed, any process of the broker has the last 16 KiB as long as its operation is kept.",
    )
    .argument("<instance>", theInstance)
    .argument("[job]", "which, as `osbert bundles jobs` shows it")
    .option("--binding <id>", "the newest for this binding")
    .action((instance: string, named: string | undefined, options: JobOptions) =>
      runBundleCommand(options, surroundings, `read the log of ${named ?? instance}`, async (ask, session) => {
        const { platform, binding } = options;
        const newest = async () => (await ask("jobs", {}, { query: { instance, platform, binding } })).items[0]?.job;
        const job = named ?? (await newest());
        if (job === undefined) {
          print(session, { job: null, log: "" }, "");
          surroundings.stderr.write(`no bundle has run anything for ${plainText(binding ?? instance)}
`);
          return;
        }
        const answer = await ask("log", { job }, { query: { instance, platform } });
        if (!session.json && answer.log === "")
          surroundings.stderr.write(`${plainText(job)} has logged nothing here\n`);
        const lines = answer.log.split("\n").map((line) => plainText(line, 10_000));
        print(session, answer, lines.join("\n"));
      }),
    );
  withAdminOptions(withPlatformOption(command));
  withExamples(command, [
    { does: "why it failed", command: "osbert bundles logs my-db" },
    { does: "what an earlier one said", command: "osbert bundles logs my-db 12-0f3c2a-provision-1" },
  ]);
}

function print({ json, surroundings: { stdout } }: AdminSession, answer: object, text: string): void {
  stdout.write(json ? `${plainJson(answer)}\n` : text);
}

function readingText({ reading }: Source): string {
  if (reading === null) return "";
  return reading.of === null ? `listing: ${reading.done} so far` : `reading: ${reading.done} of ${reading.of}`;
}

function troubleOf({ guard, failures, last_error, hidden, failure_ratio }: Source): string {
  if (guard !== null && guard.confirmed_by === null) return `holds the removal of ${guard.count} of ${guard.of}`;
  if (failures > 0) return `failed ${failures} times: ${last_error ?? ""}${hidden ? " (not shown)" : ""}`;
  // Its list was read, and not all that is in it.
  if (last_error !== null) return `could not read all of it: ${last_error}`;
  // One that fails now and then is well at this moment, and not well.
  return (failure_ratio ?? 0) >= flappingRatio ? `${percent(failure_ratio)} of the last readings failed` : "";
}

const flappingRatio = 0.25;

function percent(ratio: number | null): string {
  return `${Math.round((ratio ?? 0) * 100)} %`;
}

function sourceText(item: Source): string {
  const { guard } = item;
  const counts = Object.entries(item.specs).filter(([, count]) => count > 0);
  const text = facts({
    source: item.name,
    mode: item.mode,
    snapshot: String(item.snapshot),
    specs: counts.map(([state, count]) => `${count} ${state}`).join(", ") || "none",
    reading: item.reading === null ? "" : `${readingText(item)}, since ${item.reading.since}`,
    "last run": item.last_run_at ?? "never",
    "last complete": item.last_complete_at ?? "never",
    failures: item.failures === 0 ? "" : `${item.failures} in a row, since ${item.failing_since ?? ""}`,
    "recent readings": item.recent === "" ? "" : `${item.recent}, ${percent(item.failure_ratio)} failed`,
    "last error": item.failures === 0 ? "" : (item.last_error ?? ""),
  });
  if (guard === null) return text;
  return `${text}\n${facts({
    held: `the removal of ${guard.count} of ${guard.of} specs, since ${guard.since}`,
    confirmed: guard.confirmed_by === null ? "no" : `by ${guard.confirmed_by}`,
    observation: guard.observation,
    specs: guard.specs.join(", "),
  })}`;
}

function remarksOf({ held, stale, degraded, offered, state }: Answer<"specs">["items"][number]): string {
  const remarks = [
    ...(held ? ["held"] : []),
    ...(degraded ? ["newest content refused"] : []),
    ...(stale ? ["stale"] : []),
    ...(state === "active" && !offered ? ["hidden"] : []),
  ];
  return remarks.join(", ") || "-";
}

function specText(item: Spec): string {
  const text = facts({
    spec: item.id,
    service: item.name === null ? "" : `${item.name} (${item.service_id ?? ""})`,
    state: `${item.state}${item.since === null ? "" : ` since ${item.since}`}`,
    why: item.why ?? "",
    version: item.version ?? "",
    digest: item.digest ?? "",
    plans: item.plans.map(({ name }) => name).join(", "),
    held: item.hold === null ? "" : `by ${item.hold.by} since ${item.hold.since}: ${item.hold.why}`,
    refused: item.refused === null ? "" : `${item.refused.digest} since ${item.refused.since}: ${item.refused.code}`,
  });
  const problems = (item.refused?.problems ?? []).map(({ path, line, message }) => [
    path || "-",
    line === null ? "-" : String(line),
    message,
  ]);
  const history = item.history.map(({ version, digest, at }) => [version, digest, at]);
  return [
    text,
    ...(problems.length > 0 ? [`\n${table(["PLACE", "LINE", "PROBLEM"], problems)}\n`] : []),
    ...(history.length > 0 ? [`\n${table(["VERSION", "DIGEST", "SINCE"], history)}\n`] : []),
  ].join("");
}
