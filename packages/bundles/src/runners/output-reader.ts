import { type ActionOutput, noOutput, readOutput } from "./action-output.js";
import type { Runner } from "./runner.js";

/** What a job says, as far as it has been read. */
export class OutputReader {
  readonly #runner: Pick<Runner, "output">;
  readonly #job: string;
  /** What the job was given, and nobody is to be told. */
  readonly #secrets: readonly unknown[];
  #from = 0;
  #output = noOutput;

  constructor(runner: Pick<Runner, "output">, job: string, secrets: readonly unknown[]) {
    this.#runner = runner;
    this.#job = job;
    this.#secrets = secrets;
  }

  get output(): ActionOutput {
    return this.#output;
  }

  /** Reads all that is there by now. `said` is given each piece of it, merged, with what was there before. */
  async readOn(said: (output: ActionOutput, before: ActionOutput) => Promise<void> | void): Promise<void> {
    for (;;) {
      const { lines, next } = await this.#runner.output(this.#job, this.#from);
      if (next === this.#from) return;
      this.#from = next;
      const before = this.#output;
      this.#output = readOutput(before, lines, this.#secrets);
      await said(this.#output, before);
    }
  }
}

/** A text for the user who waits, if it is a new one. */
export function newProgress({ progress }: ActionOutput, before: ActionOutput): string | null {
  return progress === before.progress ? null : progress;
}
