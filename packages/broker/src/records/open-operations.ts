import type { ListedOperation } from "@osbert/journal";

interface WithOpen {
  readonly open: readonly ListedOperation[];
}

/** The open operation on the instance itself, if there is one; a cancelled one that has not ended yet does not count. */
export function instanceOperation(resource: WithOpen | undefined): ListedOperation | undefined {
  return resource?.open.find((operation) => operation.part === null && operation.cancel === null);
}

/** Also one that was told to stop and has not yet: it may still be at work. */
export function isBusy(resource: WithOpen | undefined, part: string | null): boolean {
  return resource?.open.some((operation) => operation.part === part) ?? false;
}

export function bindingOperation(resource: WithOpen | undefined, part: string): ListedOperation | undefined {
  return resource?.open.find((operation) => operation.part === part && operation.cancel === null);
}

export function someBindingOperation(resource: WithOpen | undefined): ListedOperation | undefined {
  return resource?.open.find((operation) => operation.part !== null);
}
