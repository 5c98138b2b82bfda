import { createHash } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { defineService } from "@osbert/broker";
import Database from "better-sqlite3";

/** A SQLite database file for every instance, and for every binding the path that opens it. */
export function sqliteDatabase(folder: string) {
  // Ids come from outside and may be anything, a path included: the file's name is a hash. Two platforms may use the same id.
  const fileOf = ({ platform, id }: { readonly platform: string; readonly id: string }) => {
    const hash = createHash("sha256")
      .update(JSON.stringify([platform, id]))
      .digest("hex");
    // The whole path: whoever is given it may run in another folder.
    return join(resolve(folder), `${hash.slice(0, 32)}.db`);
  };

  return defineService({
    id: "8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10",
    name: "sqlite-database",
    description: "A SQLite database file",
    tags: ["sqlite", "sql"],
    plans: {
      file: {
        id: "8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11",
        description: "One file, on the disk of the broker",
        provision: {
          type: "object",
          properties: { pageSize: { enum: [4096, 8192, 16384], description: "Bytes; cannot be changed later" } },
          additionalProperties: false,
        },
      },
    },
    state: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },

    // A step may run again after a crash between its effect and its record, so each is the same the second time.
    async provision(operation, { parameters, instance }) {
      const file = await operation.step("create the file", async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        const path = fileOf(instance);
        const database = new Database(path);
        // Only settings that the file keeps: others would be those of this connection, and gone with it.
        database.pragma(`page_size = ${parameters.pageSize ?? 4096}`);
        database.pragma("journal_mode = wal");
        database.exec("create table if not exists note (id integer primary key, text text not null)");
        database.close();
        return path;
      });
      return { state: { file } };
    },

    // Whoever may read the file may open it: SQLite has no users, so a binding has nothing to make and nothing to remove.
    async bind(_operation, { state }) {
      return { credentials: { file: state.file, uri: `file:${state.file}` } };
    },

    // Asks for no state: it also runs after a provision that failed half-way, and the name follows from the id.
    async deprovision(operation, { instance }) {
      await operation.step("remove the file", async () => {
        for (const suffix of ["", "-wal", "-shm"]) await rm(fileOf(instance) + suffix, { force: true });
      });
    },
  });
}
