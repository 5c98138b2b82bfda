import type { Sessions } from "./sessions.js";
import { bytes, chunks } from "./sql.js";
import type { Tables } from "./tables.js";

/** A process with more lanes than this writes some of them down again and again, instead of keeping them all in memory. */
const mostKept = 10_000;

/** Claims look only into lanes that are written down, so a lane is written down before the first resource that is in it. */
export class LaneTable {
  readonly #sessions: Sessions;
  readonly #lane: string;
  readonly #known = new Set<string>();

  constructor(sessions: Sessions, { lane }: Tables) {
    this.#sessions = sessions;
    this.#lane = lane;
  }

  async register(lanes: readonly string[]): Promise<void> {
    const unknown = lanes.filter((lane) => !this.#known.has(lane));
    if (unknown.length === 0) return;
    for (const some of chunks([...new Set(unknown)].sort(), 100)) {
      const rows = some.map((lane) => `(${bytes(lane)})`).join(", ");
      const sql = `insert into ${this.#lane} (lane) values ${rows} on duplicate key update lane = values(lane)`;
      await this.#sessions.transaction((session) => session.change(sql));
      if (this.#known.size + some.length > mostKept) this.#known.clear();
      for (const lane of some) this.#known.add(lane);
    }
  }
}
