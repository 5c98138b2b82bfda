import type { Json, KindRules, NewOperation, Operation, OperationKind } from "@osbert/journal";

interface Job {
  readonly name: string;
  readonly operation: Operation;
  /** Lets the operation's function return. */
  finish(result?: Json): void;
  /** Lets it throw. */
  fail(error: Error): void;
}

/** Operations that do nothing but run until the story ends them. An operation's input is its name. */
export class ManualJobs {
  /** Names in the order in which they began, once for every attempt. */
  readonly begun: string[] = [];
  readonly #jobs: Job[] = [];

  /** A kind of operation that stops when it is told to, or, if it is deaf, does not. */
  kind(rules: KindRules & { readonly deaf?: boolean } = {}): OperationKind {
    const { deaf = false, ...rest } = rules;
    return { ...rest, run: (operation) => this.work(operation, deaf) };
  }

  work(operation: Operation, deaf = false): Promise<Json> {
    const name = String(operation.input);
    this.begun.push(name);
    return new Promise((resolve, reject) => {
      const over = (then: () => void) => () => {
        const at = this.#jobs.indexOf(job);
        if (at >= 0) this.#jobs.splice(at, 1);
        then();
      };
      const job: Job = {
        name,
        operation,
        finish: (result = null) => over(() => resolve(result))(),
        fail: (error) => over(() => reject(error))(),
      };
      this.#jobs.push(job);
      if (!deaf)
        operation.signal.addEventListener("abort", () => job.fail(operation.signal.reason as Error), { once: true });
    });
  }

  /** Names of what runs now, sorted. */
  get running(): readonly string[] {
    return this.#jobs.map(({ name }) => name).sort();
  }

  runs(...names: readonly string[]): boolean {
    return JSON.stringify(this.running) === JSON.stringify([...names].sort());
  }

  job(name: string): Job {
    const job = this.#jobs.find((candidate) => candidate.name === name);
    if (job === undefined) throw new Error(`${name} does not run; what runs: ${this.running.join(", ") || "nothing"}`);
    return job;
  }
}

/** An operation for `ManualJobs`. */
export function job(name: string, rest: Partial<NewOperation> = {}): NewOperation {
  return { kind: "job", input: name, ...rest };
}
