/**
 * Work that is done one at a time. Who asks for it while it is being done gets the next run, which sees all that was there when it was asked
 * for; all who ask meanwhile share that one.
 */
export class OneAtATime<Result> {
  readonly #work: () => Promise<Result>;
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  constructor(work: () => Promise<Result>) {
    this.#work = work;
  }

  run(): Promise<Result> {
    if (this.#running === undefined) return this.#begin();
    const begin = () => {
      this.#next = undefined;
      return this.#begin();
    };
    this.#next ??= this.#running.then(begin, begin);
    return this.#next;
  }

  #begin(): Promise<Result> {
    const running = this.#work();
    const over = () => {
      if (this.#running === running) this.#running = undefined;
    };
    this.#running = running;
    running.then(over, over);
    return running;
  }
}
