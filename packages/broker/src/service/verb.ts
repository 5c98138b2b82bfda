/** The five things that a platform asks of a service, and an author may write a function for. */
export const verbs = ["provision", "update", "deprovision", "bind", "unbind"] as const;

/** One of them. */
export type Verb = (typeof verbs)[number];
