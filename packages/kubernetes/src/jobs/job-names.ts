import { createHash } from "node:crypto";
import { checkJobId } from "@osbert/bundles";

/**
 * What all objects of a job are called, its sandbox included: for ever the same for an id. Ids are longer than names may be, and tell
 * capitals apart, which names do not have.
 */
export function jobName(id: string): string {
  return `osbert-${createHash("sha256").update(checkJobId(id)).digest("hex").slice(0, 40)}`;
}

/** Where a part of what a job has said is kept; `said` tells apart what several have written down of it. */
export function saidName(name: string, said: string, part: number): string {
  return `${name}-${said}-${part}`;
}

export const labels = {
  /** On every object of a job: its name. */
  job: "osbert.io/job",
  /** On the record of a job: how far it is. */
  state: "osbert.io/job-state",
  /** On the record of a job: `due` as long as there may be objects of it beside the record. */
  clear: "osbert.io/job-clear",
} as const;

/** On the objects that a person may look at: the id of the job, which is the operation's and its action. */
export const idAnnotation = "osbert.io/job-id";

/** On the record of a job whose start was tried again: when. */
export const triedAnnotation = "osbert.io/job-tried-at";

/** On a Job: `no` until it is resumed, which happens once. */
export const resumedAnnotation = "osbert.io/job-resumed";

/** What tools of the cluster know a part of Osbert by. */
export const managedBy = {
  "app.kubernetes.io/managed-by": "osbert",
  "app.kubernetes.io/component": "bundle-job",
} as const;

export function jobLabels(name: string): Readonly<Record<string, string>> {
  return { ...managedBy, [labels.job]: name };
}
