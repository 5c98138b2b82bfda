import type { TextReplacement } from "../../store.js";
import type { Connection } from "./connection.js";

const ofResource = "resource = (select id from resource where key = ?)";

export const replaceSql = {
  state: "update resource set state = ? where key = ? and seq = ? and state = ?",
  part: `update part set body = ? where ${ofResource} and id = ? and body = ?`,
  entry: `update entry set body = ? where ${ofResource} and seq = ? and body = ?`,
} as const;

/** Puts other texts in the place of texts that are still there, inside the writer's transaction. */
export class TextReplacer {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#statements = prepare(database);
  }

  /** Answers how many were replaced. */
  replace(key: string, replacements: readonly TextReplacement[]): number {
    let replaced = 0;
    for (const replacement of replacements) replaced += this.#replaceOne(key, replacement);
    return replaced;
  }

  #replaceOne(key: string, { place, from, to }: TextReplacement): number {
    const { state, part, entry } = this.#statements;
    switch (place.kind) {
      case "state":
        return state.run(to, key, place.seq, from).changes;
      case "part":
        return part.run(to, key, place.id, from).changes;
      case "entry":
        return entry.run(to, key, place.seq, from).changes;
    }
  }
}

/** About how many bytes replacements take on their way and in the file. */
export function replacementsWeight(replacements: readonly TextReplacement[]): number {
  return replacements.reduce((weight, { from, to }) => weight + 100 + from.length + to.length, 200);
}

function prepare(database: Connection) {
  return {
    state: database.prepare(replaceSql.state),
    part: database.prepare(replaceSql.part),
    entry: database.prepare(replaceSql.entry),
  };
}
