import { createHash } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { defineService } from "@osbert/broker";
import Database from "better-sqlite3";

/** A SQLite database file for every instance, and for every binding the path that opens it. */
export function sqliteDatabase(folder: string) {
  // Ids come from outside and may be anything, a path included: the file's name is a hash of it.
  const fileOf = (instance: string) =>
    join(folder, `${createHash("sha256").update(instance).digest("hex").slice(0, 32)}.db`);

  return defineService({
    id: "8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b10",
    name: "sqlite-database",
    description: "A SQLite database file",
    tags: ["sqlite", "sql"],
    plans: {
      file: {
        id: "8f3f1b52-6c0d-4f5e-9a51-3d1a6f0c2b11",
        description: "One file, as large as you say",
        provision: {
          type: "object",
          properties: { maxMegabytes: { type: "integer", minimum: 1, maximum: 1024 } },
          additionalProperties: false,
        },
      },
    },
    state: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },

    // Every step may run again after a crash between its effect and its record, so each is the same the second time.
    async provision(operation, { parameters, instance }) {
      const file = await operation.step("create the file", async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        const path = fileOf(instance.id);
        const database = new Database(path);
        database.pragma("journal_mode = wal");
        database.exec("create table if not exists note (id integer primary key, text text not null)");
        database.pragma(`max_page_count = ${(parameters.maxMegabytes ?? 16) * 256}`);
        database.close();
        return path;
      });
      return { state: { file } };
    },

    async bind(_operation, { state }) {
      return { credentials: { file: state.file, uri: `file:${state.file}` } };
    },

    // The state may be missing: it also runs after a provision that failed half-way.
    async deprovision(operation, { instance }) {
      await operation.step("remove the file", async () => {
        for (const suffix of ["", "-wal", "-shm"]) await rm(fileOf(instance.id) + suffix, { force: true });
      });
    },
  });
}
