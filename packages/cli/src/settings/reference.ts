import { fileVariableOf, variableOf } from "./environment.js";
import { inline } from "./inline.js";
import type { Field, Fields, Shape } from "./shape.js";
import { table } from "./table.js";

/** The reference page of all settings, as Markdown. */
export function settingsReference(): string {
  const sections = Object.entries(table as Fields).map(([name, field]) => section(name, field));
  return `${introduction}${sections.join("")}`;
}

const introduction = `# Settings

<!-- Made from packages/cli/src/settings/ by \`npm run docs\`; change it there. -->

\`osbert serve [osbert.yaml]\` reads these settings from a YAML file. A variable of the environment, where one is named, counts more than
the file; the file counts more than the default. \`osbert config\` prints what is in force and where it comes from, and
\`osbert config --schema\` a JSON Schema for editors.

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

function section(name: string, field: Field): string {
  const lines = linesOf(name, field, true);
  const intro = field.shape.kind === "group" ? `\n${field.meaning}\n` : "";
  const rows = lines.map(row).join("\n");
  return `\n## ${name}\n${intro}\n| setting | type | default | environment | meaning |\n|---|---|---|---|---|\n${rows}\n`;
}

function linesOf(key: string, field: Field, overridable: boolean): readonly Line[] {
  const { shape } = field;
  if (shape.kind === "group") return below(key, shape.fields, overridable);
  const own = { key, field, overridable };
  if (shape.kind === "list" && shape.of.kind === "group") {
    const inner = below(`${key}[]`, shape.of.fields, false);
    // A list is exchanged as a whole.
    return [
      own,
      ...inner.map((line) => (field.reloads ? { ...line, field: { ...line.field, reloads: true } } : line)),
    ] as Line[];
  }
  if (shape.kind === "map" && shape.of.kind === "group") {
    return below(`${key}.<${shape.name}>`, shape.of.fields, false);
  }
  return [own];
}

function below(key: string, fields: Fields, overridable: boolean): readonly Line[] {
  return Object.entries(fields).flatMap(([name, field]) => linesOf(`${key}.${name}`, field, overridable));
}

function row({ key, field, overridable }: Line): string {
  const cells = [
    `\`${key}\`${field.reloads ? " ↻" : ""}`,
    typeName(field.shape),
    defaultOf(field),
    variables(key, field, overridable),
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

function variables(key: string, { shape, environment = [] }: Field, overridable: boolean): string {
  if (!overridable || ["group", "map", "json"].includes(shape.kind)) return "";
  if (shape.kind === "list" && shape.fromText === undefined) return "";
  const names = [variableOf(key), ...environment];
  const all = shape.kind === "secret" ? names.flatMap((name) => [name, fileVariableOf(name)]) : names;
  return all.map((name) => `\`${name}\``).join(", ");
}

function meaningOf({ meaning, example, default: given }: Field): string {
  const isNews = example !== undefined && inline(example) !== inline(given);
  return isNews ? `${meaning} Example: \`${inline(example)}\`` : meaning;
}
