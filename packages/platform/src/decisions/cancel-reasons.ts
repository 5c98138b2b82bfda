/** Why the platform itself ends an operation of the queue. The commit that says so says what it means; the end adds nothing. */
export const cancelReasons = {
  folded: "a later change of the same author was taken into it before it was sent",
  coalesced: "a newer update of the same author has taken its place",
  superseded: "a newer update writes what failed, and takes its place",
  escalated: "a stronger delete has taken its place",
  deleting: "the instance is being deleted",
  deleted: "the instance was deleted",
  abandoned: "the instance is abandoned",
  unmanaged: "the broker was removed",
  bindingFailed: "a binding could not be unbound",
} as const;
