/** Why something did not get its turn. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";
}

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
}

/**
 * Lets so many pieces of work run at a time; the others wait, in lanes that take turns. When the room is full, the newest of the longest
 * lane is refused: whoever fills the room stands in their own way alone.
 */
export class Turns {
  readonly #places: number;
  readonly #room: number;
  readonly #lanes = new Map<string, Waiting[]>();
  #running = 0;
  #waiting = 0;

  constructor({ places, room }: { readonly places: number; readonly room: number }) {
    this.#places = places;
    this.#room = room;
  }

  /** Rejects with NoRoom where the work was not begun. */
  async run<Result>(lane: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= this.#places) await this.#turn(lane);
    else this.#running++;
    try {
      return await work();
    } finally {
      this.#passOn();
    }
  }

  #turn(lane: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#waiting >= this.#room && !this.#makeRoom(lane)) {
        reject(new NoRoom("too many are waiting"));
        return;
      }
      const waiting = { begin: resolve, refuse: () => reject(new NoRoom("too many are waiting")) };
      const queue = this.#lanes.get(lane);
      if (queue === undefined) this.#lanes.set(lane, [waiting]);
      else queue.push(waiting);
      this.#waiting++;
    });
  }

  /** `false`: the lane is itself the longest, or all are as short as can be. */
  #makeRoom(lane: string): boolean {
    const own = this.#lanes.get(lane);
    let longest = own ?? [];
    for (const queue of this.#lanes.values()) {
      if (queue.length > longest.length) longest = queue;
    }
    if (longest === own || longest.length < 2) return false;
    longest.pop()?.refuse();
    this.#waiting--;
    return true;
  }

  /** The place goes to the lane whose turn it is, without becoming free in between. */
  #passOn(): void {
    const [next] = this.#lanes;
    if (next === undefined) {
      this.#running--;
      return;
    }
    const [lane, queue] = next;
    const waiting = queue.shift();
    this.#lanes.delete(lane);
    if (queue.length > 0) this.#lanes.set(lane, queue);
    this.#waiting--;
    waiting?.begin();
  }
}
