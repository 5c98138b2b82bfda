/** What happened to a source or to one of its specs, with a reason that a person can act on (F5-86). The codes are for machines, and stay. */
export interface ReconcileEvent {
  readonly code: EventCode;
  /** `null`: it is about the source. */
  readonly spec: string | null;
  readonly serviceId: string | null;
  readonly why: string;
}

export const eventCodes = {
  "source.failing": "the source could not be read; everything stays as it is",
  "source.recovered": "the source can be read again",
  "source.changed": "its configuration has changed",
  "source.renamed": "it has another name and the ids it had",
  "source.draining": "it has left the configuration; its specs retire",
  "source.disabled": "it is not read until it is enabled",
  "source.enabled": "it is read again",
  "source.hidden": "it has not been readable for so long that its specs are not shown",
  "source.shown": "its specs are shown again",
  "source.untagged": "of so many repositories nothing is read, because they lack the tag that is asked for",
  "guard.tripped": "too many specs would go at once; they stay until that is confirmed",
  "guard.confirmed": "a person has confirmed that they go",
  "guard.released": "the removal that was held is done",
  "guard.cleared": "so few specs are missing now, or a person has drained the source, that nothing is held any more",
  "spec.pending": "it was listed and could not be read yet",
  "spec.rejected": "it cannot be offered as it is",
  "spec.added": "it is offered",
  "spec.updated": "it has a new revision; instances keep theirs",
  "spec.degraded": "its newest content cannot be offered; the last good revision stays",
  "spec.recovered": "its newest content is offered",
  "spec.stale": "it could not be read; it stays as it is",
  "spec.fresh": "it can be read again",
  "spec.missing": "it was not found; it stays in the catalog for now",
  "spec.returned": "it was found again",
  "spec.retired": "it left the catalog; its instances go on",
  "spec.withdrawn": "a person has taken it out of the catalog",
  "spec.restored": "a person has put it back",
  "spec.held": "it does not change by itself",
  "spec.released": "it may change by itself again",
  "spec.confirmed": "a person takes its newest content although it lacks plans in use",
  "spec.deleted": "nothing used it any more; its ids are remembered for a while",
  "spec.forgotten": "its ids are free again",
  "version.unchanged": "its content has changed, and its bundleVersion has not",
  "version.downgraded": "its bundleVersion is lower than before",
} as const;

export type EventCode = keyof typeof eventCodes;
