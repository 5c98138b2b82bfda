import { misbehavingCatalogs, namedMisbehaviours } from "../src/testing/index.js";

/** The reference page of what a misbehaving broker can be told by name. */
export function misbehavioursPage(): string {
  return [
    "# Misbehaviours",
    "",
    "What [`osbert misbehave`](../misbehave.md) can be told to do, by name. The class is how a platform takes it when it creates something, as",
    "[the table of classes](answer-classes.md) has it. The page is generated; `npx vitest run page -u` writes it anew.",
    "",
    "| name | what the broker does | class |",
    "|---|---|---|",
    ...Object.entries(namedMisbehaviours).map(
      ([name, one]) => `| \`${name}\` | ${one.does} | ${one.class ?? "as a good answer"} |`,
    ),
    "",
    "## Catalogs",
    "",
    `For \`--catalog\`: ${Object.keys(misbehavingCatalogs)
      .map((name) => `\`${name}\``)
      .join(", ")}. \`usual\` is the only one without a fault, but for \`plans-15000\`, which is large.`,
    "",
  ].join("\n");
}
