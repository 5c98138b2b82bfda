import { setAsideLabel } from "../../store.js";
import { clock } from "./clock.js";
import { lookup, lookupRow } from "./lookup.js";
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

export function setAsideStatement({ resource, label }: Schema): Statement {
  return {
    name: "osbert set aside",
    text: `
      with aside as (
        update ${resource}
        set due_at = null, lease_owner = null, lease_until = null, epoch = epoch + 1
        where key = $1
        returning id, key
      )
      insert into ${label} (resource_id, name, value, key)
      select id, '${setAsideLabel.name}', '${setAsideLabel.value}', key from aside
      on conflict do nothing`,
  };
}

/**
 * The record is locked before its label, as in a commit. The label is looked up by its resource, never among all that were set
 * aside, so its name comes from the same relation.
 */
export function restoreStatement({ resource, label, channel }: Schema): Statement {
  return {
    name: "osbert restore",
    text: `
      with clock as materialized (${clock(2)}),
      aside as materialized (
        select id, key, '${setAsideLabel.name}' as label from ${resource} where key = $1 for no key update
      ),
      unlabelled as (
        delete from ${label} as l using aside where ${lookupRow(["l.resource_id", "l.name"], ["aside.id", "aside.label"])} returning l.key
      ),
      restored as (
        update ${resource} as r set due_at = clock.at from aside, clock
        where ${lookup("r.key", "aside.key")} and exists (select from unlabelled)
        returning r.key
      )
      select pg_notify('${channel}', '') from restored`,
  };
}
