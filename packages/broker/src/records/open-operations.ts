import type { OpenOperation, Resource } from "@osbert/journal";
import type { Verb } from "../service/verb.js";

/** The open operation on the instance itself, if there is one; a cancelled one that has not ended yet does not count. */
export function instanceOperation(resource: Resource | undefined): OpenOperation | undefined {
  return resource?.open.find((operation) => operation.part === null && operation.cancel === null);
}

/** Also one that was told to stop and has not yet: it may still be at work. */
export function isBusy(resource: Resource | undefined, part: string | null): boolean {
  return resource?.open.some((operation) => operation.part === part) ?? false;
}

export function bindingOperation(resource: Resource | undefined, part: string): OpenOperation | undefined {
  return resource?.open.find((operation) => operation.part === part && operation.cancel === null);
}

export function someBindingOperation(resource: Resource | undefined): OpenOperation | undefined {
  return resource?.open.find((operation) => operation.part !== null);
}

/** "is being provisioned", for the sentence that says why something has to wait. */
export function doing(verb: Verb | string): string {
  return words[verb as Verb] ?? "is being changed";
}

const words: Readonly<Record<Verb, string>> = {
  provision: "is being provisioned",
  update: "is being updated",
  deprovision: "is being deprovisioned",
  bind: "is being bound",
  unbind: "is being unbound",
};
