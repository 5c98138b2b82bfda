import { limits } from "../../limits.js";
import { setAsideLabel } from "../../store.js";
import { clock } from "./clock.js";
import { lookup } from "./lookup.js";
import type { Schema } from "./schema.js";
import type { Statement } from "./session.js";

/** Removes a record, if it is as expected, with all that belongs to it. */
export function removeStatement({ resource, entry, part, label }: Schema): Statement {
  return {
    name: "osbert remove",
    text: `
      with gone as (delete from ${resource} where key = $1 and seq = $2 and epoch = $3 returning id),
      entries as (delete from ${entry} using gone where ${lookup("resource_id", "gone.id")}),
      parts as (delete from ${part} using gone where ${lookup("resource_id", "gone.id")}),
      labels as (delete from ${label} using gone where ${lookup("resource_id", "gone.id")})
      select count(*) from gone`,
  };
}

/**
 * The newer reason takes the place of an older one. An equal one stays: a statement must not remove and add the same
 * row.
 */
export function setAsideStatement({ resource, label }: Schema): Statement {
  return {
    name: "osbert set aside",
    text: `
      with aside as (
        update ${resource}
        set due_at = null, lease_owner = null, lease_until = null, epoch = epoch + 1
        where key = $1
        returning id, key
      ),
      outdated as (
        delete from ${label} as l using aside where ${lookup("l.resource_id", "aside.id")} and l.name = '${setAsideLabel}' and l.value <> $2
      )
      insert into ${label} (resource_id, name, value, key)
      select id, '${setAsideLabel}', $2, key from aside
      on conflict do nothing`,
  };
}

/** A reason as a label's value: within its bounds and without NUL, which PostgreSQL keeps in no text. */
export function reasonAsLabel(reason: string): string {
  const clean = reason.replaceAll("\0", "");
  const bytes = Buffer.from(clean);
  if (bytes.length <= limits.labelValueBytes) return clean;
  // A cut within a character leaves a mark at the end.
  return bytes
    .subarray(0, limits.labelValueBytes)
    .toString()
    .replace(/\ufffd$/, "");
}

/** The record is locked before its label, as in a commit. */
export function restoreStatement({ resource, label, channel }: Schema): Statement {
  return {
    name: "osbert restore",
    text: `
      with clock as materialized (${clock(2)}),
      aside as materialized (select id, key from ${resource} where key = $1 for no key update),
      reason as (
        delete from ${label} as l using aside where ${lookup("l.resource_id", "aside.id")} and l.name = '${setAsideLabel}' returning l.key
      ),
      restored as (
        update ${resource} as r set due_at = clock.at from aside, clock
        where ${lookup("r.key", "aside.key")} and exists (select from reason)
        returning r.key
      )
      select pg_notify('${channel}', '') from restored`,
  };
}
