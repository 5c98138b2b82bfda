import type { BundleSpec } from "../formats/bundle-spec.js";
import type { JobSecrets } from "../runners/runner.js";
import { compilePattern } from "../selection/compile-selection.js";

/**
 * What bundles get from the operator, and no user is asked for: the password of the server that they make databases on. Who can push a
 * bundle to one of `sources` can get at it.
 */
export interface OperatorSecret {
  /** Lower case letters, digits and dashes. */
  readonly name: string;
  /** Names of the sources whose bundles may have it. */
  readonly sources: readonly string[];
  /** Patterns of RE2 for the whole names of their services. */
  readonly services: readonly string[];
  /** By their keys. A parameter with the name of a key is hidden from users, and filled in. */
  readonly values: ReadonlyMap<string, HiddenText>;
}

/** A text that cannot be printed by accident. */
export interface HiddenText {
  reveal(): string;
}

/** What is wrong with a secret, and where: `services[0]`. `null`: nothing. Nothing of the values is told. */
export function secretProblem({ name, services, values }: OperatorSecret): { path: string; message: string } | null {
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
    return { path: "", message: "must have a name of lower case letters, digits and dashes, such as database-server" };
  for (const key of values.keys())
    if (!/^[A-Za-z_][A-Za-z0-9_.-]{0,99}$/.test(key))
      return {
        path: `values.${key}`,
        message: "must be called by letters, digits, _, . and -, such as admin_password",
      };
  for (const [at, pattern] of services.entries()) {
    try {
      compilePattern({ pattern, match: "whole" });
    } catch (error) {
      const why = error instanceof Error ? error.message : "it cannot be read";
      return { path: `services[${at}]`, message: `is no pattern of RE2: ${why}` };
    }
  }
  return null;
}

/** The operator's secrets, as bundles are given them. They may be others while it runs. */
export class OperatorSecrets {
  #secrets: readonly { readonly secret: OperatorSecret; readonly isFor: (service: string) => boolean }[] = [];
  readonly #everGiven = new Set<string>();

  /** Those with a problem are thrown. */
  constructor(secrets: readonly OperatorSecret[]) {
    this.exchange(secrets);
  }

  /** From now on it is these. Those with a problem are thrown, and nothing has changed then. */
  exchange(secrets: readonly OperatorSecret[]): void {
    const taken = secrets.map((secret) => {
      const problem = secretProblem(secret);
      if (problem !== null) throw new Error(`the secret ${secret.name}: ${problem.path} ${problem.message}`);
      const patterns = secret.services.map((pattern) => compilePattern({ pattern, match: "whole" }));
      return { secret, isFor: (service: string) => patterns.some(({ matches }) => matches(service)) };
    });
    for (const { secret } of taken) for (const text of Object.values(textsOf(secret))) this.#everGiven.add(text);
    this.#secrets = taken;
  }

  /** Those that a bundle may have, by the name that its source has now. */
  for(source: string, { name: service }: Pick<BundleSpec, "name">): JobSecrets {
    const allowed = this.#secrets.filter(({ secret, isFor }) => secret.sources.includes(source) && isFor(service));
    return Object.fromEntries(allowed.map(({ secret }) => [secret.name, textsOf(secret)]));
  }

  /** All values that this process has ever given to bundles, for whoever has to keep them out of a log: logs are older than the settings. */
  everGiven(): readonly string[] {
    return [...this.#everGiven];
  }
}

/** What a bundle gets of several secrets: of a key that two of them have, the later one in the settings counts. */
export function secretValues(secrets: JobSecrets): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.values(secrets).flatMap((values) => Object.entries(values)));
}

function textsOf({ values }: OperatorSecret): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(values, ([key, text]) => [key, text.reveal()]));
}
