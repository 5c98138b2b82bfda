import type { adminDescriptions } from "@osbert/broker/admin";
import type { Shaped } from "@osbert/server/client";
import type { Command } from "commander";
import { exitStatuses } from "../client/exit-status.js";
import { resourceId } from "../client/resource-id.js";
import { parseSecondsOption } from "../client/seconds-option.js";
import { shellQuote } from "../client/shell-quote.js";
import type { Surroundings } from "../client/surroundings.js";
import {
  formatRotationProgress,
  formatRotationResult,
  type RotationCounts,
  type RotationResult,
} from "../keys/format-rotation.js";
import type { AdminSession } from "./admin-session.js";
import { type ChangeOptions, changeCommand } from "./change-command.js";
import { confirm } from "./confirm.js";
import { say } from "./print.js";
import { reportForceDelete } from "./report-force-delete.js";
import { runAdminCommand } from "./run-admin-command.js";

interface DestructiveOptions extends ChangeOptions {
  readonly yes?: boolean;
}

interface ForceDeleteOptions extends DestructiveOptions {
  /** Seconds. */
  readonly within?: number;
  readonly wait: boolean;
}

const done = exitStatuses.succeeded.status;
const theInstance = "the instance's id, as the platform gave it";
const yesOption = ["--yes", "do not ask; needed where nobody can be asked"] as const;

/** The admin commands that change something. Each leaves an entry with the operator's name and reason. */
export function registerChangeCommands(admin: Command, surroundings: Surroundings): void {
  registerRetry(admin, surroundings);
  registerCancel(admin, surroundings);
  registerPurge(admin, surroundings);
  registerForceDelete(admin, surroundings);
  registerPause(admin, surroundings);
  registerResume(admin, surroundings);
  registerRestore(admin, surroundings);
  registerRotateKeys(admin, surroundings);
}

function registerRetry(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "retry",
    summary: "run a waiting operation now, or a failed one again",
    description:
      "Runs an operation now that waits for its next attempt, or begins one anew, with what it was asked, that failed or was cancelled.",
    arguments: [
      ["<instance>", theInstance],
      ["<operation>", "the operation's id"],
    ],
    ofInstance: true,
    examples: [
      {
        does: "the backend is up again",
        command: "osbert admin retry my-db 12-0f3c2a --reason 'the backend is up again'",
      },
    ],
  }).action((instance: string, operation: string, options: ChangeOptions) =>
    runAdminCommand(options, surroundings, `retry operation ${operation}`, async (session) => {
      const values = { instance: resourceId(instance, "instance"), operation };
      const answer = await session.ask("retry", values, { body: { reason: options.reason } });
      const { operation: goesOn } = answer;
      say(session, answer, `operation ${goesOn} ${goesOn === operation ? "goes on" : "has begun"}`);
      hint(session, `osbert admin operation ${shellQuote(instance)} ${shellQuote(goesOn)}`);
      return done;
    }),
  );
}

function registerCancel(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "cancel",
    summary: "end an open operation",
    description:
      "Ends an open operation, wherever it runs. It counts as failed for the platform, which is told the reason.",
    arguments: [
      ["<instance>", theInstance],
      ["<operation>", "the operation's id"],
    ],
    ofInstance: true,
    examples: [{ does: "it hangs", command: "osbert admin cancel my-db 12-0f3c2a --reason 'hangs since the move'" }],
  }).action((instance: string, operation: string, options: ChangeOptions) =>
    runAdminCommand(options, surroundings, `cancel operation ${operation}`, async (session) => {
      const values = { instance: resourceId(instance, "instance"), operation };
      const answer = await session.ask("cancel", values, { body: { reason: options.reason } });
      say(session, answer, `operation ${operation} was told to stop`);
      hint(session, `osbert admin operation ${shellQuote(instance)} ${shellQuote(operation)}`);
      return done;
    }),
  );
}

function registerPurge(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "purge",
    summary: "forget an instance or a binding without calling the service",
    description:
      "Makes the broker forget an instance with its bindings, or one binding, without calling the service's functions: for what is known to be gone.",
    arguments: [
      ["<instance>", theInstance],
      ["[binding]", "only this binding"],
    ],
    options: (command) => command.option(...yesOption),
    ofInstance: true,
    examples: [
      { does: "it was removed by hand", command: "osbert admin purge my-db --yes --reason 'removed by hand'" },
      { does: "one binding of it", command: "osbert admin purge my-db my-app --yes --reason 'the user was dropped'" },
    ],
  }).action((instance: string, binding: string | undefined, options: DestructiveOptions) =>
    runAdminCommand(options, surroundings, `purge ${binding ?? instance}`, async (session) => {
      const name = binding ?? instance;
      const about = binding === undefined ? "instance" : "binding";
      const what = `makes the broker forget ${about} ${name}; nothing is removed in its backend`;
      const ids = { instance: resourceId(instance, "instance"), binding: binding && resourceId(binding, "binding") };
      await confirm(surroundings, { what, name, yes: options.yes ?? false });
      const body = { reason: options.reason };
      const answer =
        ids.binding === undefined
          ? await session.ask("purge", { instance: ids.instance }, { body })
          : await session.ask("purgeBinding", { instance: ids.instance, binding: ids.binding }, { body });
      say(session, answer, `${about} ${name} is forgotten`);
      return done;
    }),
  );
}

function registerForceDelete(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "force-delete",
    summary: "delete an instance whatever its service says",
    description:
      "Cancels what is open, calls the service's unbind and deprovision once each, and forgets the instance whatever comes of them. Says which of them did not end well.",
    arguments: [["<instance>", theInstance]],
    options: (command) =>
      command
        .option(
          "--within <time>",
          "how long all functions together may take (default 5m, at most 1h)",
          parseSecondsOption,
        )
        .option("--no-wait", "end as soon as the broker has taken the order")
        .option(...yesOption),
    ofInstance: true,
    examples: [
      { does: "its host is gone", command: "osbert admin force-delete my-db --yes --reason 'the host is gone'" },
    ],
  }).action((instance: string, options: ForceDeleteOptions) =>
    runAdminCommand(options, surroundings, `delete ${instance} by force`, async (session) => {
      const values = { instance: resourceId(instance, "instance") };
      const what = `deletes instance ${instance} with its bindings, whatever its service says`;
      await confirm(surroundings, { what, name: instance, yes: options.yes ?? false });
      const within = options.within === undefined ? {} : { within_seconds: options.within };
      const answer = await session.ask("forceDelete", values, { body: { reason: options.reason, ...within } });
      if (options.wait) return reportForceDelete(session, instance, answer.operation);
      say(session, answer, `operation ${answer.operation} has begun`);
      return done;
    }),
  );
}

function registerPause(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "pause",
    summary: "let the operations of a service wait",
    description:
      "From now on nothing of this service begins, in any process of the broker: orders are taken and wait. What runs goes on.",
    arguments: [["<service>", "the service, by name or id"]],
    examples: [
      {
        does: "before its backend is moved",
        command: "osbert admin pause database --reason 'the cluster is being moved'",
      },
    ],
  }).action((service: string, options: ChangeOptions) =>
    runAdminCommand(options, surroundings, `pause ${service}`, async (session) => {
      const answer = await session.ask("pause", { service }, { body: { reason: options.reason } });
      const { paused } = answer;
      const earlier = `${service} was paused already, by ${paused?.by} at ${paused?.at}: ${paused?.reason}. That stays; resume it to pause it anew`;
      say(session, answer, answer.was_paused ? earlier : `${service} is paused`);
      return done;
    }),
  );
}

function registerResume(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "resume",
    summary: "let the operations of a service go on",
    description: "Ends the pause of a service: what waited goes on.",
    arguments: [["<service>", "the service, by name or id"]],
    examples: [{ does: "afterwards", command: "osbert admin resume database --reason 'the move is over'" }],
  }).action((service: string, options: ChangeOptions) =>
    runAdminCommand(options, surroundings, `resume ${service}`, async (session) => {
      const answer = await session.ask("resume", { service }, { body: { reason: options.reason } });
      say(session, answer, `${service} goes on`);
      return done;
    }),
  );
}

function registerRotateKeys(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "rotate-keys",
    summary: "encrypt the store anew, from within the broker",
    description:
      "Lets the running broker encrypt everything in its store under the first of its keys, and waits until it has. For a SQLite store, which no other process can open meanwhile; `osbert keys rotate` does it for other stores.",
    examples: [
      {
        does: "after a new key was put first",
        command: "osbert admin rotate-keys --reason 'the yearly change of keys'",
      },
    ],
  }).action((options: ChangeOptions) =>
    runAdminCommand(options, surroundings, "rotate the keys", async (session) => {
      let view = await session.ask("rotateKeys", {}, { body: { reason: options.reason } });
      for (let told = ""; view.state === "running"; ) {
        const line = formatRotationProgress(countsOf(view));
        if (line !== told && !options.json) surroundings.stderr.write(`${line}\n`);
        told = line;
        await new Promise((resolve) => setTimeout(resolve, rotationPollMs));
        view = await session.ask("keyRotation", {});
      }
      const isDone = view.state === "succeeded";
      say(
        session,
        view,
        isDone
          ? formatRotationResult(endedOf(view), "the store").replaceAll("\n", "; ")
          : (view.description ?? view.state),
      );
      return isDone && view.left === 0 ? done : exitStatuses.failed.status;
    }),
  );
}

const rotationPollMs = 500;

type Rotation = Shaped<(typeof adminDescriptions)["keyRotation"]["answer"]>;

function countsOf({ walk = 0, resources = 0, texts = 0 }: Rotation): RotationCounts {
  return { walk, resources, texts };
}

function endedOf(view: Rotation): RotationResult {
  const { left = 0, left_plain: leftPlain = 0, unused = [] } = view;
  return { ...countsOf(view), left, leftPlain, unused };
}

function registerRestore(admin: Command, surroundings: Surroundings): void {
  changeCommand(admin, {
    name: "restore",
    summary: "put an instance that was set aside back to work",
    description: "Puts an instance back to work that was set aside, once what is stored of it can be read again.",
    arguments: [["<instance>", theInstance]],
    ofInstance: true,
    examples: [
      {
        does: "after a backup was played back",
        command: "osbert admin restore my-db --reason 'row mended from the backup'",
      },
    ],
  }).action((instance: string, options: ChangeOptions) =>
    runAdminCommand(options, surroundings, `restore ${instance}`, async (session) => {
      const values = { instance: resourceId(instance, "instance") };
      const answer = await session.ask("restore", values, { body: { reason: options.reason } });
      say(session, answer, `instance ${instance} is back`);
      return done;
    }),
  );
}

/** What to look at next, for people. */
function hint({ json, surroundings, connection }: AdminSession, command: string): void {
  if (!json) surroundings.stderr.write(`see: ${[command, ...connection.map(shellQuote)].join(" ")}\n`);
}
