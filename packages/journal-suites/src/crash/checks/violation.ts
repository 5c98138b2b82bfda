/** Every way in which a run can show that a promise was broken. */
export const violations = {
  "accepted, then missing": "J1: an operation that a caller was told of is not in the store",
  "accepted twice": "J1: a request that was asked again, because nobody had answered, counted twice",
  "refused, then happened": "J1: an operation whose request was refused is in the store, or ran",
  "never answered": "a request was not answered, though a process lived to the end to do so",
  "never ended": "an operation was still open when nothing was left to do",
  "ended twice": "J2: the end of an operation was recorded more than once",
  "ended otherwise": "an operation ended in a way that its script does not allow",
  "told another end": "the end that a process told is not the one in the store",
  "two runners": "J3: an attempt let an effect begin after a later attempt had begun",
  "ran at the same time": "J3: effects of one operation overlapped in two attempts",
  "recorded step ran again": "J4: an effect began after its step had been recorded",
  "recorded step forgotten": "J4: an attempt did not see a step that had been recorded before",
  "two results of a step": "J4: a step was recorded with more than one result",
  "result from nowhere": "J4: a recorded result is not what an effect gave",
  "several idempotency keys": "J4: the effects of a step carried more than one idempotency key",
  "idempotency key shared": "J4: two steps carried the same idempotency key",
  "woke too early": "J6: a wait was over before its time",
  "look forgotten": "J6: a poll did not know of a look that it had made before",
  "effect made twice": "J4: an effect on another resource was made more than once",
  "effect missing": "J4: an operation that ended has not had its effect on another resource",
  "order broken": "J7: an operation ran before one that stood before it was over",
  "ran after the end": "J3: an attempt or an effect began, or something was recorded, after the operation had ended",
  "cancel ignored": "J8: an operation that was cancelled went on, or did not end as cancelled",
  "entry missing": "entries that retention must keep are not there",
  "entry not attributed": "J9: an entry does not say who, why, or under which request",
  "ended by itself": "a process ended without having been killed",
  slept: "J11: nothing was disturbed any more, work was open, and nobody did anything for a long time",
  "hot loop": "a step or an operation was tried again and again without a pause",
  "two owners": "a process opened a file that another one had",
} as const;

export interface Violation {
  readonly kind: keyof typeof violations;
  /** What was seen, for a person. */
  readonly story: string;
}
