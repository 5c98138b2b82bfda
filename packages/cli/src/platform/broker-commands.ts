import type { apiDescriptions } from "@osbert/platform/api";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { Shaped } from "@osbert/server/client";
import { type Command, InvalidArgumentError } from "commander";
import { confirm } from "../admin/confirm.js";
import { facts } from "../admin/print.js";
import { readLogin } from "../client/credentials.js";
import { CommandError, exitStatuses } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import { parseSecondsOption } from "../client/seconds-option.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { formatDurationMs } from "../duration.js";
import { withExamples } from "../examples-of.js";
import { type PageOptions, type PlatformOptions, withPageOptions, withPlatformOptions } from "./platform-options.js";
import type { PlatformSession } from "./platform-session.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

type Broker = Shaped<(typeof apiDescriptions)["broker"]["answer"]>;

/** The commands about brokers and what they offer: brokers, register, relist, remove, marketplace. */
export function registerBrokerCommands(platform: Command, surroundings: Surroundings): void {
  registerMarketplace(platform, surroundings);
  registerBrokers(platform, surroundings);
  registerRegister(platform, surroundings);
  registerRelist(platform, surroundings);
  registerRemove(platform, surroundings);
}

function registerMarketplace(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("marketplace")
    .summary("list what can be had, or show one service")
    .description(
      "Lists the services of all brokers with their plans; with a name it shows that one, with the schemas of its parameters.",
    )
    .argument("[service]", "the name of a service")
    .option("--broker <name>", "only of this broker")
    .action((service: string | undefined, options: PageOptions & { readonly broker?: string }) =>
      runPlatformCommand(options, surroundings, "show the marketplace", async (session) => {
        const { broker } = options;
        if (service === undefined)
          return printPage(
            session,
            (page) => session.ask("offerings", {}, { query: { ...page, broker } }),
            options,
            ["SERVICE", "BROKER", "DESCRIPTION", "PLANS"],
            (one) => [one.name, one.broker, one.description, planNames(one.plans)],
            "nothing is offered; register a broker with osbert platform register",
          );
        return showAnswer(
          session,
          (ask) => ask("offering", { offering: service }, { query: { broker } }),
          ({ offering }) => offeringText(offering),
        );
      }),
    );
  withPageOptions(command);
  withExamples(command, [
    { does: "what is there?", command: "osbert platform marketplace" },
    { does: "which parameters does it take?", command: "osbert platform marketplace database" },
  ]);
}

const mostNames = 12;

function planNames(
  plans: readonly { readonly name: string; readonly free: boolean; readonly left: boolean }[],
): string {
  const names = plans.filter(({ left }) => !left).map(({ name, free }) => (free ? name : `${name} (paid)`));
  const more = names.length > mostNames ? [`and ${names.length - mostNames} more`] : [];
  return [...names.slice(0, mostNames), ...more].join(", ");
}

function offeringText(offering: JsonObject): string {
  const plans = Array.isArray(offering.plans) ? offering.plans.filter(isJsonObject) : [];
  const rows = plans.map((plan) => [
    String(plan.name),
    plan.free === false ? "paid" : "free",
    Object.entries(parametersOf(plan))
      .map(([call, schema]) => `${call}: ${namesIn(schema)}`)
      .join("; ") || "-",
    String(plan.description),
  ]);
  const head = facts({ service: String(offering.name), description: String(offering.description) });
  return `${head}\n${table(["PLAN", "PRICE", "PARAMETERS", "DESCRIPTION"], rows)}\n`;
}

/** The schemas of a plan, by what they are for. */
function parametersOf(plan: JsonObject): Readonly<Record<string, JsonObject>> {
  const at = (...path: readonly string[]) =>
    path.reduce<unknown>((value, name) => (isJsonObject(value) ? value[name] : undefined), plan.schemas);
  const all = {
    create: at("service_instance", "create", "parameters"),
    update: at("service_instance", "update", "parameters"),
    bind: at("service_binding", "create", "parameters"),
  };
  return Object.fromEntries(Object.entries(all).filter((pair): pair is [string, JsonObject] => isJsonObject(pair[1])));
}

function namesIn({ properties, required }: JsonObject): string {
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const names = isJsonObject(properties) ? Object.keys(properties) : [];
  return names.map((name) => (needed.includes(name) ? `${name}!` : name)).join(" ") || "any";
}

function registerBrokers(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("brokers")
    .summary("list registered brokers, or show one")
    .description(
      "Lists registered brokers with their health: whether they answer, and what is wrong with their catalogs; with a name it shows all about that one.",
    )
    .argument("[name]", "the broker's name")
    .action((broker: string | undefined, options: PlatformOptions) =>
      runPlatformCommand(
        options,
        surroundings,
        broker === undefined ? "list the brokers" : `show ${broker}`,
        (session) => {
          if (broker !== undefined) return showAnswer(session, (ask) => ask("broker", { broker }), brokerText);
          return printPage(
            session,
            () => session.ask("brokers", {}),
            { limit: 500 },
            brokerHeadings,
            brokerRow,
            "there are none",
          );
        },
      ),
    );
  withPlatformOptions(command);
  withExamples(command, [
    { does: "do they all answer?", command: "osbert platform brokers" },
    { does: "what is wrong with this one?", command: "osbert platform brokers databases" },
  ]);
}

const brokerHeadings = ["NAME", "HEALTH", "SERVICES", "CATALOG READ", "URL", ""];

function brokerRow({ name, url, health, catalog, waiting }: Broker): readonly string[] {
  const news = [waiting && "its queue waits", health.message, catalog.fault].filter(Boolean).join("; ");
  return [name, health.state, String(catalog.offerings), catalog.read_at ?? "-", url, news];
}

function brokerText({ name, url, authentication, limits, health, catalog, ...broker }: Broker): string {
  return facts({
    broker: name,
    url,
    authentication,
    health: [`${health.state} since ${health.since}`, health.message].filter(Boolean).join(": "),
    queue: broker.waiting ? "waits until the broker can be reached" : "",
    catalog: `${catalog.offerings} services, read ${catalog.read_at ?? "never"}, every ${formatDurationMs(broker.relist_ms)}`,
    "wrong with it": catalog.fault ?? "",
    bounds: `${limits.in_flight} calls at a time, ${formatDurationMs(limits.timeout_ms)} each`,
    "registered by": `${broker.registered_by}, ${broker.registered_at}`,
  });
}

interface RegisterOptions extends PlatformOptions {
  readonly brokerCredentialsFile?: string;
  readonly anonymous?: boolean;
  readonly brokerCa?: string;
  readonly brokerCertificate?: string;
  readonly brokerKey?: string;
  readonly inFlight?: number;
  /** Seconds. */
  readonly callTimeout?: number;
  /** Seconds. */
  readonly relistEvery?: number;
  readonly notFoundMeansGone?: boolean;
}

function registerRegister(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("register")
    .summary("register a broker, or change its registration")
    .description(
      "Registers a broker, or changes one that is registered: operations under way go on with what is new, and what is not said stays.",
    )
    .argument("<name>", "how it is called here")
    .argument("<broker-url>", "where it is, without /v2")
    .option(
      "--broker-credentials-file <file>",
      "a file with the broker's name:password, or with Bearer and a token (else OSBERT_LOGIN or OSBERT_TOKEN)",
    )
    .option("--anonymous", "it wants no credentials")
    .option("--broker-ca <file>", "the certificate (PEM) of who must have signed the broker's")
    .option(
      "--broker-certificate <file>",
      "the certificate (PEM) that the platform shows to the broker; with --broker-key",
    )
    .option("--broker-key <file>", "the key (PEM) of that certificate")
    .option("--in-flight <number>", "so many calls to it at a time", parseInFlight)
    .option("--call-timeout <time>", "how long one call to it may take", parseSecondsOption)
    .option("--relist-every <time>", "how often its catalog is read", parseSecondsOption)
    .option("--not-found-means-gone", "it says 404 to the delete of what is gone, where it should say 410")
    .action((name: string, url: string, options: RegisterOptions) =>
      runPlatformCommand(options, surroundings, `register ${name}`, async (session) => {
        const body = { url, ...(await registrationOf(session, options)) };
        return told(session, await registerOrChange(session, name, body));
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [
    {
      does: "with its password in a file",
      command: "osbert platform register databases https://broker.example --broker-credentials-file broker-login.txt",
    },
    {
      does: "it has moved; its password is the same",
      command: "osbert platform register databases https://broker.other.example",
    },
  ]);
}

/** What the command line says of it. */
async function registrationOf(session: PlatformSession, options: RegisterOptions) {
  const { brokerCa, brokerCertificate, brokerKey, inFlight, callTimeout, relistEvery, notFoundMeansGone } = options;
  if ((brokerCertificate === undefined) !== (brokerKey === undefined))
    throw new CommandError("usage", "--broker-certificate and --broker-key go together");
  const login = options.anonymous
    ? undefined
    : await readLogin(session.surroundings.env, options.brokerCredentialsFile, session.read);
  const limits = { in_flight: inFlight, timeout_ms: callTimeout && callTimeout * 1_000 };
  return {
    ...(login !== undefined && { authentication: authenticationOf(login.credentials) }),
    ...(options.anonymous && { authentication: { kind: "none" } }),
    ...(brokerCa !== undefined && { ca: await session.read(brokerCa) }),
    ...(brokerCertificate !== undefined &&
      brokerKey !== undefined && {
        client_certificate: { certificate: await session.read(brokerCertificate), key: await session.read(brokerKey) },
      }),
    ...((inFlight !== undefined || callTimeout !== undefined) && { limits }),
    ...(notFoundMeansGone !== undefined && { quirks: { not_found_means_gone: notFoundMeansGone } }),
    ...(relistEvery !== undefined && { relist_ms: relistEvery * 1_000 }),
  };
}

/** A change leaves the credentials that it does not name; what is new and names none has none. */
async function registerOrChange(session: PlatformSession, name: string, body: object): Promise<Broker> {
  const { items } = await session.ask("brokers", {});
  if (items.some((one) => one.name === name)) return session.ask("changeBroker", { broker: name }, { body });
  return session.ask("registerBroker", { broker: name }, { body: { authentication: { kind: "none" }, ...body } });
}

function parseInFlight(text: string): number {
  if (!/^[0-9]{1,4}$/.test(text) || Number(text) < 1)
    throw new InvalidArgumentError("It must be a whole number from 1.");
  return Number(text);
}

function authenticationOf(credentials: string | { readonly username: string; readonly password: string }): object {
  if (typeof credentials !== "string") return { kind: "basic", ...credentials };
  return { kind: "bearer", token: credentials.replace(/^Bearer /, "") };
}

function told(session: PlatformSession, broker: Broker) {
  const text = `${table(brokerHeadings, [brokerRow(broker)])}\n`;
  session.surroundings.stdout.write(session.json ? `${plainJson(broker)}\n` : text);
  return broker.catalog.fault === null && broker.health.state === "ok"
    ? exitStatuses.succeeded.status
    : exitStatuses.failed.status;
}

function registerRelist(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("relist")
    .summary("read the catalog of a broker now")
    .description("Reads the catalog of a broker now, and says what is wrong with it.")
    .argument("<name>", "the broker's name")
    .action((broker: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `read the catalog of ${broker}`, async (session) =>
        told(session, await session.ask("relistBroker", { broker }, { body: {} })),
      ),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "after a change of plans", command: "osbert platform relist databases" }]);
}

function registerRemove(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("remove-broker")
    .summary("remove a broker")
    .description(
      "Removes a broker. That is refused while it has instances, or something may be left there (the ledger of orphans tells what), unless it is forced: then instances stay as unmanaged, and can be adopted, and the ledger keeps its rows.",
    )
    .argument("<name>", "the broker's name")
    .option("--force", "although it has instances, or something may be left there")
    .option("--yes", "do not ask; needed where nobody can be asked")
    .action((broker: string, options: PlatformOptions & { readonly force?: boolean; readonly yes?: boolean }) =>
      runPlatformCommand(options, surroundings, `remove ${broker}`, async (session) => {
        const force = options.force ?? false;
        const what = force ? `removes ${broker}, and leaves its instances unmanaged` : `removes ${broker}`;
        await confirm(surroundings, { what, name: broker, yes: options.yes ?? false });
        await session.ask("removeBroker", { broker }, { query: { force: force ? "true" : undefined } });
        surroundings.stdout.write(session.json ? `${plainJson({ removed: broker })}\n` : `${broker} is removed\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "one that is no more", command: "osbert platform remove-broker databases --yes" }]);
}
