import type { Clock } from "@osbert/journal";
import type { RefusedCaller } from "../authentication/refused-caller.js";

/** What is told of the callers of one network that were not let in. */
export interface RefusedCallers {
  /** `others`: of more networks than are told apart. */
  readonly network: string;
  readonly unauthorized: number;
  readonly tooManyRequests: number;
  /** User names that were tried and that a credential has. */
  readonly names: readonly string[];
  /** Requests with names of these that are let in elsewhere on the server. */
  readonly atWrongDoor: number;
  /** Requests with user names that nobody has. They are not told: people type passwords where names belong. */
  readonly withUnknownName: number;
  /** Requests without a user name. */
  readonly withoutName: number;
}

const gatherMs = 60_000;
const mostNetworks = 100;
const mostNames = 10;

/**
 * Gathers refusals, so that 20 seconds of guessing are some lines and not megabytes of them. The first of a network is told at once,
 * what follows once a minute, for as long as there is something; networks beyond the first hundred are told together. So it is at most
 * some two hundred lines a minute, whoever guesses from wherever. What was gathered last before the process ends is not told.
 */
export class RefusalGatherer {
  readonly #clock: Clock;
  readonly #tell: (callers: RefusedCallers) => void;
  readonly #gathered = new Map<string, Gathered>();

  constructor(clock: Clock, tell: (callers: RefusedCallers) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  add(caller: RefusedCaller, status: 401 | 429): void {
    const isOther = !this.#gathered.has(caller.network) && this.#gathered.size >= mostNetworks;
    const network = isOther ? "others" : caller.network;
    const known = this.#gathered.get(network);
    const gathered = known ?? new Gathered();
    gathered.add(caller, status);
    if (known !== undefined) return;
    if (this.#gathered.size === 0) this.#tellLater();
    this.#gathered.set(network, gathered);
    this.#tell(gathered.take(network));
  }

  #tellLater(): void {
    this.#clock.after(gatherMs, () => {
      for (const [network, gathered] of this.#gathered) {
        if (gathered.isEmpty) this.#gathered.delete(network);
        else this.#tellSafely(gathered.take(network));
      }
      if (this.#gathered.size > 0) this.#tellLater();
    });
  }

  /** In a timer there is nobody who would catch what a log throws. */
  #tellSafely(callers: RefusedCallers): void {
    try {
      this.#tell(callers);
    } catch {
      // A log that cannot be written harms nobody; the next minute is told again.
    }
  }
}

class Gathered {
  #unauthorized = 0;
  #tooManyRequests = 0;
  #atWrongDoor = 0;
  #withUnknownName = 0;
  #withoutName = 0;
  #names = new Set<string>();

  get isEmpty(): boolean {
    return this.#unauthorized + this.#tooManyRequests === 0;
  }

  add({ user }: RefusedCaller, status: 401 | 429): void {
    if (status === 401) this.#unauthorized++;
    else this.#tooManyRequests++;
    if (user.kind === "unknown") this.#withUnknownName++;
    if (user.kind === "none") this.#withoutName++;
    if (user.kind === "wrong door") this.#atWrongDoor++;
    if ("name" in user && this.#names.size < mostNames) this.#names.add(user.name);
  }

  /** All of it; what comes next is counted anew. */
  take(network: string): RefusedCallers {
    const taken = {
      network,
      unauthorized: this.#unauthorized,
      tooManyRequests: this.#tooManyRequests,
      names: [...this.#names],
      atWrongDoor: this.#atWrongDoor,
      withUnknownName: this.#withUnknownName,
      withoutName: this.#withoutName,
    };
    this.#unauthorized = this.#tooManyRequests = this.#atWrongDoor = this.#withUnknownName = this.#withoutName = 0;
    this.#names = new Set();
    return taken;
  }
}
