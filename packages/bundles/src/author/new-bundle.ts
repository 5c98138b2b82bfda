/** A file of a bundle that is begun. */
export interface NewFile {
  readonly name: string;
  readonly text: string;
  readonly executable: boolean;
}

export const languages = ["sh", "node"] as const;

export type Language = (typeof languages)[number];

/**
 * The files of a small bundle that works: it passes `lint` and `test`, and makes nothing but names and passwords. The name is that of the
 * service: lower case letters, digits and dashes, so that it can be part of a repository's name, too.
 */
export function newBundle(name: string, language: Language): readonly NewFile[] {
  const { file, text, command } = programs[language];
  return [
    { name: "osbert.yaml", text: osbertYaml(name, command), executable: false },
    { name: file, text, executable: true },
  ];
}

export function isBundleName(name: string): boolean {
  return name.length <= 100 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name);
}

function osbertYaml(name: string, command: string): string {
  return `osbert: 1
name: ${name}
version: 0.1.0
description: One ${name} per instance
command: ${command}
timeout: 5m
actions: [provision, update, deprovision, bind, unbind]
plans:
  small:
    description: For a team
    provision:
      type: object
      additionalProperties: false
      properties:
        label: { type: string, pattern: "^[a-z]{1,20}$", description: A word to find it by }
    update:
      type: object
      additionalProperties: false
      properties:
        label: { type: string, pattern: "^[a-z]{1,20}$", description: A word to find it by }
    bind: { type: object, additionalProperties: false }
`;
}

const sh = `#!/bin/sh
# Run with the action as its argument and one JSON document on standard input. It prints lines of JSON; standard error is the log.
# Every action may be run twice with the same idempotencyKey: the second run must end as well as the first.
set -eu

# Ids come from outside and may be any text, so a hash of the instance's id and platform names what is made. Use jq for more than this.
input=$(cat)
instance=$(printf '%s' "$input" | grep -oE '"instance":[{]"id":"([^"\\\\]|\\\\.)*","platform":"([^"\\\\]|\\\\.)*"' | sha256sum | cut -c 1-16)

case "$1" in
  provision)
    # State is said before the thing is made: a deprovision knows of it, whatever happens next.
    echo "{\\"state\\":{\\"name\\":\\"i-$instance\\"}}"
    echo '{"progress":"making it"}'
    ;;
  update)
    # Other parameters, another plan, or a new version of this bundle. What is not named in "parameters" stays as it was.
    echo '{"progress":"changing it"}'
    ;;
  bind)
    password=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \\n')
    echo "{\\"credentials\\":{\\"name\\":\\"i-$instance\\",\\"password\\":\\"$password\\"}}"
    ;;
  unbind | deprovision)
    # What is gone already is no error.
    echo "removed for $1" >&2
    ;;
  *)
    exit 8 # an action that is not known
    ;;
esac
`;

const node = `// Run with the action as its last argument and one JSON document on standard input. It prints lines of JSON; standard error is the log.
// Every action may be run twice with the same idempotencyKey: the second run must end as well as the first.
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

const input = JSON.parse(readFileSync(0, "utf8"));
const say = (line) => process.stdout.write(\`\${JSON.stringify(line)}\\n\`);
// Ids come from outside and may be any text.
const { platform, id } = input.instance;
const name = \`i-\${createHash("sha256").update(JSON.stringify([platform, id])).digest("hex").slice(0, 16)}\`;

const actions = {
  provision() {
    say({ state: { name } }); // before it is made: a deprovision knows of it, whatever happens next
    say({ progress: "making it" });
  },
  update() {
    // Other parameters, another plan, or a new version of this bundle. What is not named in input.parameters stays as it was.
    say({ progress: "changing it" });
  },
  bind() {
    say({ credentials: { name: input.state.name, password: randomBytes(16).toString("hex") } });
  },
  unbind() {
    console.error("removed for unbind"); // what is gone already is no error
  },
  deprovision() {
    console.error("removed for deprovision");
  },
};

const act = actions[process.argv.at(-1)];
if (act === undefined) process.exit(8); // an action that is not known
act();
`;

const programs: Readonly<Record<Language, { file: string; text: string; command: string }>> = {
  sh: { file: "run.sh", text: sh, command: "./run.sh" },
  node: { file: "bundle.mjs", text: node, command: "[node, bundle.mjs]" },
};
