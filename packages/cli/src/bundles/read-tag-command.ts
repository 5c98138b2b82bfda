import { bundleDescriptions, bundleRoutes } from "@osbert/bundles/admin";
import type { Shaped } from "@osbert/server/client";
import type { Command } from "commander";
import { withAdminOptions } from "../admin/admin-command-options.js";
import type { AdminOptions } from "../admin/admin-session.js";
import { facts } from "../admin/print.js";
import { runAdminCommand } from "../admin/run-admin-command.js";
import { exitStatuses } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";

type Read = Shaped<(typeof bundleDescriptions)["read"]["answer"]>;

/** `osbert bundles read`: what a tag of a repository is now. */
export function registerReadTag(bundles: Command, surroundings: Surroundings): void {
  const command = bundles
    .command("read")
    .summary("ask a registry what a tag is now")
    .description(
      "Has the broker ask a source for one tag of one repository, with the source's own credentials, and prints what is there: a bundle with its plans, or what is wrong with it and where. Nothing is kept, and nothing in the catalog changes. It fails if there is no bundle that can be used.",
    )
    .argument("<source>", "the source's name, as it is configured")
    .argument("<image>", "REPOSITORY or REPOSITORY:TAG; without a tag it is latest")
    .action((source: string, image: string, options: AdminOptions) =>
      runAdminCommand(options, surroundings, `read ${image}`, async (session) => {
        const ask = session.client(bundleRoutes, bundleDescriptions);
        const [, repository = image, tag = "latest"] = /^(.*):([^:/]*)$/.exec(image) ?? [];
        const answer = await ask("read", { source }, { query: { repository, tag } });
        session.surroundings.stdout.write(session.json ? `${plainJson(answer)}\n` : textOf(answer));
        return answer.found === "bundle" ? exitStatuses.succeeded.status : exitStatuses.failed.status;
      }),
    );
  withAdminOptions(command);
  withExamples(command, [
    { does: "why it is not offered", command: "osbert bundles read registry team/postgres:1.2.0" },
  ]);
}

function textOf(read: Read): string {
  const text = facts({
    image: `${read.repository}:${read.tag}`,
    found: read.found,
    why: read.why ?? "",
    digest: read.digest ?? "",
    format: read.format === null ? "" : `${read.format}, runs as ${read.runs ?? ""}`,
    service: read.name ?? "",
    version: read.version ?? "",
    description: read.description ?? "",
    bindable: read.bindable === null ? "" : read.bindable ? "yes" : "no",
    actions: read.actions.join(", "),
  });
  const plans = read.plans.map(({ name, free, bindable, description }) => [
    ...[name, free ? "yes" : "no", bindable ? "yes" : "no", description],
  ]);
  const problems = read.problems.map(({ path, line, message, advice }) => [
    ...[path || "-", line === null ? "-" : String(line), advice ? "advice" : "fault", message],
  ]);
  return [
    text,
    ...(plans.length > 0 ? [`\n${table(["PLAN", "FREE", "BINDABLE", "DESCRIPTION"], plans)}\n`] : []),
    ...(problems.length > 0 ? [`\n${table(["PLACE", "LINE", "KIND", "WHAT"], problems)}\n`] : []),
  ].join("");
}
