import { type AccessRule, eventAccess } from "@osbert/kubernetes";
import type { Command } from "commander";
import { stringify } from "yaml";
import { withExamples } from "../examples-of.js";
import { flowSettings } from "../settings/flow-settings.js";
import { usualFile } from "../settings/load.js";
import type { Settings } from "../settings/table.js";
import { reportErrors } from "../user-error.js";
import { loadEventSettings } from "./run.js";

interface Options {
  readonly name: string;
  readonly namespace: string;
}

/** `osbert events access`: prints what a service account has to be granted. */
export function registerEventsAccess(events: Command): void {
  const command = events
    .command("access")
    .summary("print the RBAC rules that a broker for events needs")
    .description(
      "Prints, for kubectl, a ServiceAccount with the roles that `osbert events serve` needs with these settings, and nothing more. It asks nobody.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .option("--namespace <name>", "where the broker runs", "osbert")
    .option("--name <name>", "of the ServiceAccount and of its roles", "osbert-events")
    .action((file: string | undefined, options: Options) =>
      reportErrors(async () => {
        const { settings } = loadEventSettings(file);
        process.stdout.write(
          accessObjects(settings, options)
            .map((object) => `---\n${stringify(object)}`)
            .join(""),
        );
      }),
    );
  withExamples(command, [
    { does: "grant it", command: "osbert events access events.yaml --namespace osbert | kubectl apply -f -" },
  ]);
}

/** The objects that grant a service account all that a broker for events with these settings asks of the cluster. */
export function accessObjects({ events }: Pick<Settings, "events">, { name, namespace }: Options): readonly object[] {
  const { kinds, integrationNamespace, secretNamespace = integrationNamespace } = events;
  const access = eventAccess({ settings: flowSettings(events), kinds, secretNamespace });
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const role = (
    kind: "Role" | "ClusterRole",
    rules: readonly AccessRule[],
    within: { readonly namespace?: string },
  ) => [
    { apiVersion: "rbac.authorization.k8s.io/v1", kind, metadata: { name, ...within }, rules },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: `${kind}Binding`,
      metadata: { name, ...within },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
      subjects,
    },
  ];
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    ...role("ClusterRole", access.cluster, {}),
    ...access.namespaces.flatMap(({ namespace: within, rules }) => role("Role", rules, { namespace: within })),
  ];
}
