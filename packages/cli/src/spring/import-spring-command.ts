import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { realSystem } from "../settings/system.js";
import { reportErrors } from "../user-error.js";
import { readSpringFile } from "./read-spring-file.js";
import { settingsYaml } from "./settings-yaml.js";
import { toSettings } from "./to-settings.js";

/** `osbert config import-spring`: settings that say what those of a broker on Spring say. */
export function registerImportSpring(config: Command): void {
  const command = config
    .command("import-spring")
    .summary("make settings of those of a broker on Spring")
    .description(
      "Reads `spring.cloud.openservicebroker`, `com.equalities.osbapi`, `server` and `spring.security.user` of a broker on Spring Cloud Open Service Broker, and prints the settings that say the same. What has no equivalent, or needs a look, is in comments at the top. Names can be written in any way that Spring takes. Secrets are not printed. Ends with 2 if the file cannot be read.",
    )
    .argument("<file>", "application.yml or application.properties")
    .action((file: string) => reportErrors(async () => print(file)));
  withExamples(command, [
    {
      does: "a catalog that was in YAML for Spring",
      command: "osbert config import-spring src/main/resources/application.yml > osbert.yaml",
    },
  ]);
}

function print(file: string): void {
  const { properties, notes } = readSpringFile(file, realSystem());
  const converted = toSettings(properties);
  process.stdout.write(settingsYaml({ ...converted, notes: [...notes, ...converted.notes] }, file));
}
