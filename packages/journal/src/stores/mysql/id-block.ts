import type { Sessions } from "./sessions.js";
import { int } from "./sql.js";
import type { Tables } from "./tables.js";

/** How many a process takes at a time. Those that are left when it ends are never used. */
const blockSize = 1_000;

/**
 * Ids for new resources, known before they are inserted: what lies beside a resource can then be written without asking for its id,
 * which AUTO_INCREMENT would cost a round trip (or a guess, which is wrong where a cluster hands out every third number only).
 */
export class IdBlock {
  readonly #sessions: Sessions;
  readonly #tables: Tables;
  #next = 0;
  #end = 0;
  #taking: Promise<void> | undefined;

  constructor(sessions: Sessions, tables: Tables) {
    this.#sessions = sessions;
    this.#tables = tables;
  }

  /** After a restore of some of the tables, ids might be handed out again that are in use. */
  async catchUp(): Promise<void> {
    const { sequence, resource } = this.#tables;
    const used = `(select coalesce(max(id), 0) from ${resource})`;
    await this.#sessions.use(async (session) => {
      const [row] = await session.rows(`select next_id <= ${used} as behind from ${sequence}`);
      if (Number(row?.behind) !== 0)
        await session.change(`update ${sequence} set next_id = greatest(next_id, ${used} + 1)`);
    });
  }

  /** The first of so many ids in a row. */
  async take(count: number): Promise<number> {
    while (this.#end - this.#next < count) {
      this.#taking ??= this.#takeBlock(Math.max(blockSize, count)).finally(() => {
        this.#taking = undefined;
      });
      await this.#taking;
    }
    const first = this.#next;
    this.#next += count;
    return first;
  }

  async #takeBlock(size: number): Promise<void> {
    const sql = `update ${this.#tables.sequence} set next_id = last_insert_id(next_id + ${int(size)})`;
    this.#end = await this.#sessions.transaction((session) => session.number(sql));
    this.#next = this.#end - size;
  }
}
