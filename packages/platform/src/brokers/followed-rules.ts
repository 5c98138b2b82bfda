import type { Followed, Journal } from "@osbert/journal";
import { PlatformError } from "../errors.js";
import type { Asking } from "../platform.js";
import { isName, nameRule } from "../records/name.js";

export interface FollowedRulesOptions {
  readonly journal: () => Journal;
  readonly key: string;
  /** In words, as in `there is no such …`. */
  readonly what: string;
  readonly most: number;
}

/** Rules that operators set by their names, and that hold in all processes: one followed value. */
export class FollowedRules<Rule extends { readonly name: string }> {
  readonly #options: FollowedRulesOptions;
  #followed: Followed<readonly Rule[]> | undefined;

  constructor(options: FollowedRulesOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const read = (data: unknown): readonly Rule[] => (Array.isArray(data) ? data : []);
    // Of a type that is not known yet the compiler cannot say that JSON keeps it.
    this.#followed = await this.#options.journal().followed<readonly Rule[]>(this.#options.key, read as never);
  }

  close(): void {
    this.#followed?.close();
  }

  list(): readonly Rule[] {
    return this.#followed?.value ?? [];
  }

  /** A new one, or in place of the one that has the name. */
  async set(rule: Rule, { by }: Pick<Asking, "by">): Promise<Rule> {
    const { what, most } = this.#options;
    if (!isName(rule.name)) throw new PlatformError("invalid", `the name of a ${what} ${nameRule}`);
    await this.#change(by, (rules) => {
      const others = rules.filter(({ name }) => name !== rule.name);
      if (others.length >= most) throw new PlatformError("too-many", `there are at most ${most} of a ${what}`);
      return [...others, rule].sort((one, other) => (one.name < other.name ? -1 : 1));
    });
    return rule;
  }

  async remove(name: string, { by }: Pick<Asking, "by">): Promise<void> {
    await this.#change(by, (rules) => {
      const others = rules.filter((rule) => rule.name !== name);
      if (others.length === rules.length)
        throw new PlatformError("not-found", `there is no such ${this.#options.what}`);
      return others;
    });
  }

  async #change(by: Asking["by"], decide: (rules: readonly Rule[]) => readonly Rule[]): Promise<void> {
    if (this.#followed === undefined) throw new PlatformError("unavailable", "the platform is not open");
    await this.#followed.update((rules) => ({ value: decide(rules) }), { by });
  }
}
