/**
 * A promise that knows whether anybody listens to it: `await`, `then`, `Promise.all` and returning it from an async function all do.
 * A subclass, because `await` does not ask a plain promise for its `then`.
 */
export class Listened<T> extends Promise<T> {
  /** What follows from it is an ordinary promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  #isListenedTo = false;

  get isListenedTo(): boolean {
    return this.#isListenedTo;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise, and this is how it learns who listens.
  override then<Next = T, Other = never>(
    ...reactions: Parameters<typeof Promise.prototype.then<Next, Other>>
  ): Promise<Next | Other> {
    this.#isListenedTo = true;
    return super.then(...reactions) as Promise<Next | Other>;
  }
}

/** The same promise, as one that knows who listens. That it fails unheard does not end the process; who listens hears of it all the same. */
export function listened<T>(promise: Promise<T>): Listened<T> {
  const known = new Listened<T>((resolve, reject) => {
    promise.then(resolve, reject);
  });
  void Promise.prototype.then.call(known, undefined, () => undefined);
  return known;
}
