import type { Command } from "commander";
import { type ChangeOptions, changeCommand } from "../admin/change-command.js";
import { say } from "../admin/print.js";
import type { Surroundings } from "../client/surroundings.js";
import { runBundleCommand } from "./bundle-command.js";

interface ConfirmOptions extends ChangeOptions {
  readonly observation?: string;
  readonly digest?: string;
}

const theSource = ["<source>", "the source's name, as it is configured"] as const;
const theSpec = ["<spec>", "the spec's id, as `osbert bundles specs` shows it"] as const;

/** A decision that needs nothing but what it is about. */
interface Decision<Name extends string> {
  readonly name: Name;
  readonly summary: string;
  readonly description: string;
  readonly done: string;
  readonly why: string;
  readonly whereReasonStands?: string;
}

const aboutSources: readonly Decision<"refresh" | "disable" | "enable" | "drain">[] = [
  {
    name: "refresh",
    summary: "read a source now",
    description:
      "Has a source read now, by whichever process follows it, and tells which reading sees what there is now. `osbert bundles runs` shows what it has changed.",
    done: "is read now",
    why: "a bundle was pushed",
    // It is no decision about the source, and leaves no event.
    whereReasonStands: "",
  },
  {
    name: "disable",
    summary: "do not read a source until it is enabled",
    description: "Has a source not read any more. Its specs stay as they are, and are offered.",
    done: "is not read any more",
    why: "the registry moves",
  },
  {
    name: "enable",
    summary: "read a source again",
    description: "Has a source read again that was disabled.",
    done: "is read again",
    why: "the registry has moved",
  },
  {
    name: "drain",
    summary: "let all specs of a source retire",
    description:
      "Has a source not read any more, and lets its specs leave the catalog. Instances go on, and nothing is deleted that has any.",
    done: "is draining",
    why: "the registry is given up",
  },
];

const aboutSpecs: readonly Decision<"hold" | "release" | "withdraw" | "restore">[] = [
  {
    name: "hold",
    summary: "let nothing of a spec change by itself",
    description: "Keeps a spec at its state and its revision, whatever readings say, until it is released.",
    done: "is held",
    why: "the new version is not tested yet",
  },
  {
    name: "release",
    summary: "let a held spec change by itself again",
    description: "Lets readings decide about a spec again that was held.",
    done: "is released",
    why: "the new version is tested",
  },
  {
    name: "withdraw",
    summary: "take a spec out of the catalog at once",
    description:
      "Takes a spec out of the catalog at once. No reading brings it back, only restore. Instances go on; users who ask for a new one are told the reason.",
    done: "is withdrawn",
    why: "it has a hole",
  },
  {
    name: "restore",
    summary: "put a retired spec back into the catalog",
    description: "Puts a spec back into the catalog that was withdrawn, or has retired.",
    done: "is back",
    why: "the hole is closed",
  },
];

/** The commands about bundles that change something. Each leaves the operator's name and reason in the source's journal. */
export function registerDecisions(bundles: Command, surroundings: Surroundings): void {
  for (const { name, summary, description, done, why, ...reason } of aboutSources) {
    changeCommand(bundles, {
      ...{ name, summary, description, ...reason },
      arguments: [theSource],
      examples: [{ does: why, command: `osbert bundles ${name} registry --reason '${why}'` }],
    }).action((source: string, options: ChangeOptions) =>
      runBundleCommand(options, surroundings, `${name} ${source}`, async (ask, session) => {
        const answer = await ask(name, { source }, { body: { reason: options.reason } });
        const which = "reading" in answer ? `, by reading ${answer.reading}` : "";
        say(session, answer, `source ${source} ${done}${which}`);
      }),
    );
  }
  for (const { name, summary, description, done, why } of aboutSpecs) {
    const example = `osbert bundles ${name} registry team/postgres:latest --reason '${why}'`;
    changeCommand(bundles, {
      ...{ name, summary, description },
      arguments: [theSource, theSpec],
      examples: [{ does: why, command: example }],
    }).action((source: string, spec: string, options: ChangeOptions) =>
      runBundleCommand(options, surroundings, `${name} ${spec}`, async (ask, session) => {
        const answer = await ask(name, { source, spec }, { body: { reason: options.reason } });
        say(session, answer, `spec ${spec} ${done}`);
      }),
    );
  }
  registerConfirmRemoval(bundles, surroundings);
  registerConfirmContent(bundles, surroundings);
}

function registerConfirmRemoval(bundles: Command, surroundings: Surroundings): void {
  changeCommand(bundles, {
    name: "confirm",
    summary: "let a removal go that is held",
    description:
      "Lets a removal of many specs go that is held because it may be a mistake: the next reading that says the same does it.",
    arguments: [theSource],
    options: (command) =>
      command.requiredOption("--observation <id>", "which one, as `osbert bundles source` shows it"),
    examples: [
      {
        does: "they were removed on purpose",
        command: "osbert bundles confirm registry --observation 7-1a2b3c.4 --reason 'removed on purpose'",
      },
    ],
  }).action((source: string, options: ConfirmOptions) =>
    runBundleCommand(options, surroundings, `confirm the removal in ${source}`, async (ask, session) => {
      const { reason, observation } = options;
      const answer = await ask("confirmRemoval", { source }, { body: { reason, observation } });
      say(session, answer, `the removal in ${source} is confirmed; the next reading does it`);
    }),
  );
}

function registerConfirmContent(bundles: Command, surroundings: Surroundings): void {
  changeCommand(bundles, {
    name: "confirm-content",
    summary: "take content that lacks plans in use",
    description:
      "Takes the newest content of a spec although it lacks plans that have instances. The instances stay on their revisions.",
    arguments: [theSource, theSpec],
    options: (command) =>
      command.requiredOption("--digest <digest>", "which content, as `osbert bundles spec` shows it"),
    examples: [
      {
        does: "the plan is given up",
        command:
          "osbert bundles confirm-content registry team/postgres:latest --digest sha256:0a1b… --reason 'the plan is given up'",
      },
    ],
  }).action((source: string, spec: string, options: ConfirmOptions) =>
    runBundleCommand(options, surroundings, `confirm the content of ${spec}`, async (ask, session) => {
      const { reason, digest } = options;
      const answer = await ask("confirmContent", { source, spec }, { body: { reason, digest } });
      say(session, answer, `the content of ${spec} is confirmed; the next reading takes it`);
    }),
  );
}
