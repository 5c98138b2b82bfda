/** Why something did not get its turn. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";
}

/** How often its network has asked before without having been found right; see tries.ts. */
export interface Rank {
  /** From there. 0: it is the first time. */
  readonly tries: number;
  /** From the wider network around it, as it is now: neighbours are equal in this, whoever came first. */
  readonly around: { readonly tries: number };
}

interface Waiting {
  readonly rank: Rank;
  readonly begin: () => void;
  readonly refuse: () => void;
}

export interface TurnsOptions {
  /** How many pieces of work run at a time. */
  readonly places: number;
  /** Of them, how many are kept free for first tries. */
  readonly keptForFirst: number;
  /** How many wait. */
  readonly room: number;
}

/**
 * Lets so many pieces of work run at a time; the others wait. Strangers who guess from hundreds of addresses must not keep out a user
 * whose password is right and was not checked since the start, and there is nothing by which to tell that user from them but this: a
 * user's first try is right, while a guesser who wants more than one try has to come again. Hence
 *
 * - who has tried least is next. Taking turns by address would not do: with 320 addresses the user's turn is the 320th;
 * - a place is kept for first tries, so that none of them waits for the end of somebody's hundredth;
 * - when the room is full, those are refused who have tried most.
 *
 * Who is next among those who have tried equally often, no single rule can say that strangers do not know as well. So there are three,
 * by turns, and to keep a user waiting it would take a crowd that comes before the user by all of them:
 *
 * - the one with the quietest wider network, for fresh addresses are cheap by the network: an IPv6 /48 has 65,536 of them;
 * - the newest: a user who comes into a crowd is served before it, not behind it, also if it is in the same network;
 * - whoever has waited longest, however often they have tried, so that nobody waits for ever: neither a user who was there before the
 *   crowd, nor one who shares an address with a guesser.
 *
 * That crowd has to bring a new address, in a network as quiet as the user's, for every single guess, faster than passwords are checked.
 */
export class Turns {
  readonly #options: TurnsOptions;
  /** In the order in which they came. */
  #waiting: readonly Waiting[] = [];
  #running = 0;
  /** Of those that run, the ones that are not first tries. */
  #runningAgain = 0;
  #turns = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** Rejects with NoRoom where the work was not begun. */
  async run<Result>(rank: Rank, work: () => Promise<Result>): Promise<Result> {
    if (this.#hasPlaceFor(rank)) this.#enter(rank);
    else await this.#turn(rank);
    try {
      return await work();
    } finally {
      this.#running--;
      if (!isFirst(rank)) this.#runningAgain--;
      this.#passOn();
    }
  }

  #hasPlaceFor(rank: Rank): boolean {
    const { places, keptForFirst } = this.#options;
    return this.#running < places && (isFirst(rank) || this.#runningAgain < places - keptForFirst);
  }

  #enter(rank: Rank): void {
    this.#running++;
    if (!isFirst(rank)) this.#runningAgain++;
  }

  #turn(rank: Rank): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = () => reject(new NoRoom("too many are waiting"));
      const begin = () => {
        this.#enter(rank);
        resolve();
      };
      this.#waiting = [...this.#waiting, { rank, begin, refuse }];
      if (this.#waiting.length > this.#options.room) this.#take(lastServed(this.#waiting))?.refuse();
    });
  }

  #passOn(): void {
    const candidates = this.#waiting.filter(({ rank }) => this.#hasPlaceFor(rank));
    if (candidates.length === 0) return;
    const rule = rules[this.#turns++ % rules.length] ?? longestWaiting;
    this.#take(rule(candidates))?.begin();
  }

  #take(waiting: Waiting | undefined): Waiting | undefined {
    this.#waiting = this.#waiting.filter((other) => other !== waiting);
    return waiting;
  }
}

function isFirst({ tries }: Rank): boolean {
  return tries === 0;
}

/** Who is next of those who wait, who are in the order in which they came. */
type Rule = (waiting: readonly Waiting[]) => Waiting | undefined;

const quietest: Rule = (waiting) =>
  waiting.reduce((first, other) => (compare(other.rank, first.rank) <= 0 ? other : first));

const newest: Rule = (waiting) =>
  waiting.reduce((first, other) => (other.rank.tries <= first.rank.tries ? other : first));

const longestWaiting: Rule = ([first]) => first;

const rules: readonly Rule[] = [quietest, newest, quietest, newest, longestWaiting];

/** Who has tried most, and of those the one that came first. */
const lastServed: Rule = (waiting) =>
  waiting.reduce((last, other) => (compare(other.rank, last.rank) > 0 ? other : last));

/** Negative: `a` has tried less. */
function compare(a: Rank, b: Rank): number {
  return a.tries - b.tries || a.around.tries - b.around.tries;
}
