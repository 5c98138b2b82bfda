import { type Expected, setAsideLabel } from "../../store.js";
import type { Connection } from "./connection.js";

/** Removes resources, sets them aside and restores them, inside the writer's transaction. */
export class Remover {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#statements = prepare(database);
  }

  remove(key: string, { seq, epoch }: Expected): boolean {
    const found = this.#statements.atExpected.get(key, seq, epoch) as readonly [number] | undefined;
    if (found === undefined) return false;
    for (const statement of this.#statements.removeAll) statement.run(found[0]);
    return true;
  }

  setAside(key: string): boolean {
    const { idOf, addAsideLabel, setAside } = this.#statements;
    const found = idOf.get(key) as readonly [number] | undefined;
    if (found === undefined) return false;
    addAsideLabel.run(found[0], setAsideLabel.name, setAsideLabel.value, key);
    setAside.run(found[0]);
    return true;
  }

  restore(key: string, now: number): boolean {
    const { idOf, dropAsideLabel, setDue } = this.#statements;
    const found = idOf.get(key) as readonly [number] | undefined;
    if (found === undefined || dropAsideLabel.run(found[0], setAsideLabel.name).changes === 0) return false;
    setDue.run(now, found[0]);
    return true;
  }
}

function prepare(database: Connection) {
  return {
    idOf: database.prepare("select id from resource where key = ?").raw(),
    atExpected: database.prepare("select id from resource where key = ? and seq = ? and epoch = ?").raw(),
    removeAll: [
      database.prepare("delete from entry where resource = ?"),
      database.prepare("delete from part where resource = ?"),
      database.prepare("delete from label where resource = ?"),
      database.prepare("delete from resource where id = ?"),
    ],
    dropAsideLabel: database.prepare("delete from label where resource = ? and name = ?"),
    addAsideLabel: database.prepare(
      "insert into label (resource, name, value, key) values (?, ?, ?, ?) on conflict (resource, name, value) do nothing",
    ),
    setAside: database.prepare(
      "update resource set epoch = epoch + 1, due_at = null, lease_owner = null, lease_until = null where id = ?",
    ),
    setDue: database.prepare("update resource set due_at = ? where id = ?"),
  };
}
