import { type Fault, faultLine } from "@osbert/server/yaml";
import { stringify } from "yaml";
import type { Converted } from "./to-settings.js";

const mostNotes = 500;

/** A file of settings, with all that needs a look in comments at its top. Pure. */
export function settingsYaml({ settings, notes }: Converted, file: string): string {
  const catalog =
    settings.catalog === undefined ? [`nothing of spring.cloud.openservicebroker.catalog is in ${file}`] : use;
  const told = notes.slice(0, mostNotes).map((note: Fault) => `- ${faultLine(note)}`);
  const more = notes.length > mostNotes ? [`and ${notes.length - mostNotes} more`] : [];
  const look = notes.length === 0 ? [] : ["", "What has no equivalent, or needs a look:", ...told, ...more];
  const comments = [`Made from ${file} by osbert config import-spring.`, ...catalog, ...look].map(comment);
  return `${comments.join("\n")}\n${stringify(settings, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

const use = [
  "`use` is what the module exports under this name: functions (defineServiceFunctions), or a service. One can be used by all.",
];

/** Whatever is in it, it stays on its line. */
function comment(text: string): string {
  const line = text.replaceAll(/[\p{C}\u2028\u2029]+/gu, " ");
  return `# ${line.length > 500 ? `${line.slice(0, 500)}…` : line}`.trimEnd();
}
