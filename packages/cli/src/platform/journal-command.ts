import { apiDescriptions } from "@osbert/platform/api";
import { type Shaped, ShapeError } from "@osbert/server/client";
import type { Command } from "commander";
import { parseLimit } from "../admin/admin-command-options.js";
import { CommandError, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type PageOptions, theInstance, withPageOptions } from "./platform-options.js";
import type { PlatformSession } from "./platform-session.js";
import { printPage } from "./print-page.js";
import { readEvents } from "./read-events.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { pause } from "./wait-with-progress.js";

type Line = Shaped<(typeof apiDescriptions)["journal"]["events"]>;

interface JournalOptions extends PageOptions {
  readonly follow?: boolean;
  readonly last?: number;
}

/** `osbert platform journal`: what was asked, sent, answered and decided. */
export function registerJournal(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("journal")
    .summary("show the journal of an instance")
    .description(
      "Shows what was asked of an instance, what was sent to its broker, what it answered and what was decided: who, when, why.",
    )
    .argument("<instance>", theInstance)
    .option("-f, --follow", "go on with each line as it comes, until Ctrl-C; with --json one document a line")
    .option("--last <number>", "only so many of the newest lines, at most 500", parseLimit)
    .action((instance: string, options: JournalOptions) =>
      runPlatformCommand(options, surroundings, `show the journal of ${instance}`, async (session) => {
        const values = { space: session.space, instance };
        if (options.follow) return follow(session, values, options.after);
        const { last } = options;
        const ask = async (query: { limit: string; after: string | undefined }) => {
          if (last === undefined) return session.ask("journal", values, { query });
          const newest = { limit: String(last), before: behindAll };
          const { items } = await session.ask("journal", values, { query: newest });
          return { items: items.toReversed(), next: null };
        };
        return printPage(
          session,
          ask,
          last === undefined ? options : { limit: last },
          ["SEQ", "AT", "BY", "WHAT", ""],
          rowOf,
          "it is empty",
        );
      }),
    );
  withPageOptions(command);
  withExamples(command, [
    { does: "what happened", command: "osbert platform journal my-db" },
    { does: "what happened just now", command: "osbert platform journal my-db --last 20" },
    { does: "and what happens now", command: "osbert platform journal my-db --follow" },
  ]);
}

function rowOf(line: Line): readonly string[] {
  return [String(line.seq), line.at, line.by, `${line.family} ${line.kind}`, line.summary];
}

/** The largest number that the API takes for that of a line. */
const behindAll = "9".repeat(15);
const pauseMs = 1_000;

/** A stream that ends is asked for again, from where it was: the platform ends each after a while, and may be started anew. */
async function follow(
  session: PlatformSession,
  { space, instance }: { readonly space: string; readonly instance: string },
  after: string | undefined,
) {
  const { surroundings } = session;
  const { stdout, stderr } = surroundings;
  const path = `/api/v1/spaces/${encodeURIComponent(space)}/instances/${encodeURIComponent(instance)}/journal`;
  const ending = new AbortController();
  const endListening = surroundings.onInterrupt(() => ending.abort());
  let last = after ?? "";
  let opened = false;
  try {
    while (!ending.signal.aborted) {
      try {
        const headers = { accept: "text/event-stream", ...(last !== "" && { "last-event-id": last }) };
        const response = await session.stream(path, headers, ending.signal);
        opened = true;
        for await (const { id, data } of readEvents(response.body ?? [])) {
          const line = lineOf(data);
          last = id || last;
          stdout.write(session.json ? `${plainJson(line, 0)}\n` : `${plainText(rowOf(line).join("  "))}\n`);
        }
      } catch (error) {
        if (ending.signal.aborted) break;
        // What never began will not begin by itself; what broke off is asked for again.
        if (!opened || (error instanceof CommandError && error.status !== exitStatuses.unreachable.status)) throw error;
        stderr.write("the connection broke; asking again\n");
      }
      await pause(pauseMs, ending.signal);
    }
  } finally {
    endListening();
  }
  return exitStatuses.succeeded.status;
}

function lineOf(data: string): Line {
  try {
    return apiDescriptions.journal.events(JSON.parse(data));
  } catch (error) {
    if (!(error instanceof ShapeError) && !(error instanceof SyntaxError)) throw error;
    throw new CommandError("failed", "what comes there are no lines of a journal");
  }
}
