import { fileVariableOf, variableOf } from "./environment.js";
import { inline } from "./inline.js";
import { platformPrefix } from "./load-platform.js";
import { platformTable } from "./platform-table.js";
import type { Field, Fields, Shape } from "./shape.js";
import { table } from "./table.js";

/** The reference page of all settings, as Markdown. */
export function settingsReference(): string {
  return referenceOf(table, "OSBERT", brokerIntroduction);
}

/** The same of a platform. */
export function platformSettingsReference(): string {
  return referenceOf(platformTable, platformPrefix, platformIntroduction);
}

function referenceOf(fields: Fields, prefix: string, introduction: string): string {
  const sections = Object.entries(fields).map(([name, field]) => section(name, field, prefix));
  return `${introduction}${common}${sections.join("")}`;
}

const platformIntroduction = `# Settings of a platform

<!-- Made from packages/cli/src/settings/ by a test; change it there. -->

\`osbert platform serve [osbert-platform.yaml]\` reads these settings from a YAML file; it runs without any, too. A variable of the environment, where
one is named, counts more than the file; the file counts more than the default.
`;

const brokerIntroduction = `# Settings

<!-- Made from packages/cli/src/settings/ by \`npm run docs\`; change it there. -->

\`osbert serve [osbert.yaml]\` reads these settings from a YAML file. A variable of the environment, where one is named, counts more than
the file; the file counts more than the default. \`osbert config\` prints what is in force and where it comes from, and
\`osbert config --schema\` a JSON Schema for editors.
`;

const common = `
- **Paths** start from the folder of the file; those in the environment from where the program was started.
- **Durations** are a whole number with a unit: \`500ms\`, \`30s\`, \`5m\`, \`2h\`, \`3d\`.
- **Secrets** can be written as text, or better as \`{ file: path }\` or \`{ env: NAME }\`. In the environment, the variable with \`_FILE\` at its
  end names a file. No secret is ever printed.
- **A reload** (SIGHUP, or a change of the file) applies what is marked with ↻; the rest needs a restart. An invalid file changes nothing.
`;

interface Line {
  readonly key: string;
  readonly field: Field;
  readonly overridable: boolean;
}

function section(name: string, field: Field, prefix: string): string {
  const lines = linesOf(name, field, true);
  const intro = field.shape.kind === "group" ? `\n${field.meaning}\n` : "";
  const rows = lines.map((line) => row(line, prefix)).join("\n");
  return `\n## ${name}\n${intro}\n| setting | type | default | environment | meaning |\n|---|---|---|---|---|\n${rows}\n`;
}

function linesOf(key: string, field: Field, overridable: boolean): readonly Line[] {
  const { shape } = field;
  if (shape.kind === "group") return below(key, shape.fields, overridable);
  const own = { key, field, overridable };
  if (shape.kind === "list" && shape.of.kind === "group") {
    return [own, ...reloadedWith(field, below(`${key}[]`, shape.of.fields, false))];
  }
  if (shape.kind === "map" && shape.of.kind === "group") {
    return reloadedWith(field, below(`${key}.<${shape.name}>`, shape.of.fields, false));
  }
  return [own];
}

/** A list or a map is exchanged as a whole. */
function reloadedWith(field: Field, inner: readonly Line[]): readonly Line[] {
  return field.reloads
    ? inner.map((line): Line => ({ ...line, field: { ...line.field, reloads: true } as Field }))
    : inner;
}

function below(key: string, fields: Fields, overridable: boolean): readonly Line[] {
  return Object.entries(fields).flatMap(([name, field]) => linesOf(`${key}.${name}`, field, overridable));
}

function row({ key, field, overridable }: Line, prefix: string): string {
  const cells = [
    `\`${key}\`${field.reloads ? " ↻" : ""}`,
    typeName(field.shape),
    defaultOf(field),
    variables(key, field, overridable, prefix),
    meaningOf(field),
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function typeName(shape: Shape): string {
  switch (shape.kind) {
    case "text":
      return shape.mustBe === undefined ? "text" : `text: ${shape.mustBe}`;
    case "number":
      return `${shape.fractions ? "number" : "whole number"}, ${shape.from} to ${shape.to}`;
    case "flag":
      return "true or false";
    case "choice":
      return shape.of.map((choice) => `\`${choice}\``).join(", ");
    case "duration":
      return shape.forever ? "duration or `forever`" : "duration";
    case "path":
      return "path";
    case "contents":
    case "image":
      return "path of a file";
    case "secret":
      return "secret";
    case "json":
      return "object";
    case "documents":
      return "list of objects";
    case "list":
      return shape.of.kind === "group" ? "list" : `list of ${typeName(shape.of)}`;
    case "map":
      return `${typeName(shape.of)}, by ${shape.name}`;
    case "group":
      return "group";
  }
}

function defaultOf(field: Field): string {
  if (field.required) return "**must be there**";
  if (field.default !== undefined) return `\`${inline(field.default)}\``;
  return field.otherwise ?? "";
}

function variables(key: string, { shape, environment = [] }: Field, overridable: boolean, prefix: string): string {
  if (!overridable || ["group", "map", "json", "documents"].includes(shape.kind)) return "";
  if (shape.kind === "list" && shape.fromText === undefined) return "";
  const names = [variableOf(key, prefix), ...environment];
  const all = shape.kind === "secret" ? names.flatMap((name) => [name, fileVariableOf(name)]) : names;
  return all.map((name) => `\`${name}\``).join(", ");
}

function meaningOf({ meaning, example, default: given }: Field): string {
  const isNews = example !== undefined && inline(example) !== inline(given);
  return isNews ? `${meaning} Example: \`${inline(example)}\`` : meaning;
}
