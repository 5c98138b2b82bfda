import pg from "pg";
import { describe, expect, test } from "vitest";
import { JournalError } from "../src/errors.js";
import { type PostgresPool, postgresStore } from "../src/stores/postgres/index.js";
import { migrations } from "../src/stores/postgres/migrations.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("the schema in PostgreSQL", () => {
  test("is what schema.sql shows (vitest -u writes it anew)", () =>
    PostgresPlace.use(async (place) => {
      await place.store();
      await expect(await dump(place)).toMatchFileSnapshot("../src/stores/postgres/schema.sql");
    }));

  test("is made once by processes that start together", () =>
    PostgresPlace.use(async (place) => {
      const stores = await Promise.all(Array.from({ length: 8 }, () => place.store()));
      expect(await versions(place)).toEqual(migrations.map((_, index) => index + 1));
      await Promise.all(stores.map((store, index) => store.commit(change(`k${index}`, null))));
    }));

  test("of a newer Osbert is refused with a sentence and left alone", () =>
    PostgresPlace.use(async (place) => {
      await place.store();
      await place.pool.query(`insert into ${place.schema}.migration (version, name) values (999, 'from the future')`);
      const before = await dump(place);
      for (const migrate of [true, false]) {
        const error = await place.store({ migrate }).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(JournalError);
        expect(error).toMatchObject({ code: "schema-newer" });
        expect((error as Error).message).toContain(`"${place.schema}" is at version 999`);
      }
      expect(await dump(place)).toBe(before);
      expect(await versions(place)).toEqual([...migrations.keys(), migrations.length, 999].slice(1));
    }));

  test("that is missing is only checked without migrate", () =>
    PostgresPlace.use(async (place) => {
      const error = await place.store({ migrate: false }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "schema-missing" });
      const { rowCount } = await place.pool.query("select from pg_namespace where nspname = $1", [place.schema]);
      expect(rowCount).toBe(0);
      await place.store();
      await place.store({ migrate: false });
    }));

  test("is used by a role that may not create anything, once it is there", () =>
    PostgresPlace.use(async (place) => {
      await place.store();
      const role = `role_${place.schema}`;
      await place.pool.query(`
        create role ${role} login password 'x' nosuperuser;
        grant usage on schema ${place.schema} to ${role};
        grant select, insert, update, delete on all tables in schema ${place.schema} to ${role};
        grant usage on all sequences in schema ${place.schema} to ${role}`);
      const url = new URL(place.url);
      [url.username, url.password] = [role, "x"];
      const pool = new pg.Pool({ connectionString: url.href });
      const store = postgresStore(pool, { schema: place.schema });
      await store.open();
      await store.attend("owner", () => {});
      expect((await store.commit(change("k", null, { dueAt: 0, wake: true }))).kind).toBe("committed");
      expect(
        (await store.claim({ owner: "owner", leaseMs: 1, limit: 1, laneRoom: 1, rooms: new Map() })).claimed.length,
      ).toBe(1);
      await store.close();
      await pool.end();
      await place.pool.query(`drop owned by ${role}; drop role ${role}`);
    }));

  test("has a plain name", () => {
    const pool = { connect: () => Promise.reject(new Error("is not called")) };
    for (const schema of ['a"b', "a.b", "", "1a", "pg_x", "é", "a".repeat(49), "a; drop table b"]) {
      expect(() => postgresStore(pool, { schema })).toThrow("cannot be the schema");
    }
    for (const schema of ["osbert", "Osbert_2", "_", "a".repeat(48), "select"]) postgresStore(pool, { schema });
  });

  test("may have a name in capitals or of a keyword", () =>
    PostgresPlace.use(async (place) => {
      for (const schema of ["Select", place.schema.toUpperCase()]) {
        const store = await place.store({ schema });
        const woken = new Promise<void>((resolve) => store.onWake(() => resolve()));
        await store.commit(change("k", null, { wake: true }));
        await woken;
        await place.pool.query(`drop schema "${schema}" cascade`);
      }
    }));

  test("keeps commits that were answered, whatever the database is set to", () =>
    PostgresPlace.use(async (place) => {
      // As "alter role … set" would have it.
      const pool = new pg.Pool({
        connectionString: place.url,
        options: "-c synchronous_commit=off -c default_transaction_isolation=serializable",
      });
      const settings: string[] = [];
      const watched: PostgresPool = {
        connect: (callback) =>
          pool.connect((error, client) => {
            if (client === undefined) return callback(error, undefined);
            callback(undefined, {
              on: client.on.bind(client),
              release: client.release.bind(client),
              async query(query) {
                const answer = await client.query(query);
                const { rows } = await client.query("show synchronous_commit; show transaction_isolation").then(flat);
                settings.push(...rows);
                return answer as never;
              },
            });
          }),
      };
      const store = await place.store({}, watched as never);
      await store.commit(change("k", null));
      expect(new Set(settings)).toEqual(new Set(["on", "read committed"]));
      await store.close();
      await pool.end();
    }));
});

function flat(results: unknown): { rows: string[] } {
  return {
    rows: (results as pg.QueryResult[]).flatMap(({ rows }) => rows.flatMap((row) => Object.values<string>(row))),
  };
}

async function versions(place: PostgresPlace): Promise<number[]> {
  const { rows } = await place.pool.query(`select version from ${place.schema}.migration order by version`);
  return rows.map(({ version }) => version);
}

/** The schema as statements, from the catalog alone, the same from every version of PostgreSQL. */
async function dump(place: PostgresPlace): Promise<string> {
  const { rows } = await place.pool.query(
    `
    with relation as (
      select c.oid, c.relname, c.relkind, c.reloptions from pg_class as c where c.relnamespace = $1::text::regnamespace
    )
    select format('create sequence %s increment by %s;', r.relname, s.seqincrement) as line, 1 as part, r.relname as place
    from relation as r join pg_sequence as s on s.seqrelid = r.oid
    union all
    select
      format(
        E'create table %s (\\n%s\\n)%s;', r.relname,
        (
          select string_agg(definition, E',\\n' order by place)
          from (
            select
              format('  %s %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                case when a.attcollation <> t.typcollation then format(' collate "%s"', l.collname) end,
                case when a.attnotnull then ' not null' end, ' default ' || pg_get_expr(d.adbin, d.adrelid)) as definition,
              a.attnum::integer as place
            from pg_attribute as a
            join pg_type as t on t.oid = a.atttypid
            left join pg_collation as l on l.oid = a.attcollation
            left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
            where a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
            union all
            select format('  constraint %s %s', k.conname, pg_get_constraintdef(k.oid)), 10000
            from pg_constraint as k where k.conrelid = r.oid and k.contype <> 'n'
          ) as definitions
        ),
        ' with (' || array_to_string(r.reloptions, ', ') || ')'
      ), 2, r.relname
    from relation as r where r.relkind = 'r'
    union all
    select replace(pg_get_indexdef(r.oid), quote_ident($1::text) || '.', '') || ';', 3, r.relname
    from relation as r
    where r.relkind = 'i' and not exists (select from pg_constraint as k where k.conindid = r.oid)
    order by part, place`,
    [place.schema],
  );
  return `-- What the migrations come to. Made by postgres-schema.test.ts from the catalog.\n\n${rows.map(({ line }) => line).join("\n\n")}\n`;
}
