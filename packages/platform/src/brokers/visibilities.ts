import type { Journal } from "@osbert/journal";
import { PlatformError } from "../errors.js";
import type { Asking, Visibilities, WantedVisibility } from "../platform.js";
import { keys } from "../records/keys.js";
import { isName, nameRule } from "../records/name.js";
import type { Visibility } from "../records/visibility-record.js";
import { FollowedRules } from "./followed-rules.js";

const mostSpaces = 500;
const longestText = 1_000;

/** What is offered in some spaces only. A rule may be there before its broker is, and stays when that is removed. */
export class FollowedVisibilities extends FollowedRules<Visibility> implements Omit<Visibilities, "set"> {
  readonly #now: () => number;

  constructor(journal: () => Journal) {
    super({ journal, key: keys.visibilities, what: "visibility", most: 500 });
    this.#now = () => journal().now();
  }

  async setRule(name: string, wanted: WantedVisibility, asking: Asking): Promise<Visibility> {
    const { broker, offering, plan = null, spaces } = wanted;
    for (const [what, text] of Object.entries({ broker, offering, plan }))
      if ((what !== "plan" || text !== null) && !isText(text))
        throw new PlatformError("invalid", `the ${what} of a visibility is a text`);
    if (!Array.isArray(spaces) || spaces.length > mostSpaces || !spaces.every(isName))
      throw new PlatformError("invalid", `a visibility names at most ${mostSpaces} spaces, and a space ${nameRule}`);
    const { subject } = asking.by.actor;
    const at = this.#now();
    return this.set({ name, broker, offering, plan, spaces: [...new Set(spaces)], by: subject, at }, asking);
  }
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "" && value.length <= longestText;
}
