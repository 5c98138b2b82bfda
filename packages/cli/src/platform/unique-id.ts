import { CommandError } from "../client/exit-status.js";

/** The one id that is meant: people write its beginning. `what` reads like "campaign". */
export function uniqueId(ids: readonly string[], beginning: string, what: string): string {
  if (ids.includes(beginning)) return beginning;
  const found = beginning === "" ? [] : ids.filter((id) => id.startsWith(beginning));
  const [id, ...others] = found;
  if (id === undefined) throw new CommandError("usage", `there is no ${what} ${JSON.stringify(beginning)}`);
  if (others.length > 0) throw new CommandError("usage", `several ${what}s begin with ${beginning}: say more of it`);
  return id;
}
