import type { Service } from "@osbert/broker";

/** So many are at hand: more than are made at a time, so that what is asked of each at first is asked of what was just made. */
const mostMade = 64;

/**
 * Services that are kept as the text of what they are made of: of thousands in a catalog few are asked for anything, and a text takes less than
 * half of the memory of what is in it. It is kept as bytes, outside of the heap of JavaScript, which is looked through again and again. A service
 * is made when something is asked of it, and forgotten when enough others were made since. (A `WeakRef` would keep each that was asked until
 * the loop turns: all of them, when a catalog is made.)
 */
export class KeptAsText {
  readonly #recent = new Recent();

  /** `facts` are JSON; `make` makes the same of them each time. Thousands may share one `make`. */
  keep<Facts>(facts: Facts, make: (facts: Facts) => Service): Service {
    const made = make(facts);
    const { id, name, revision = "" } = made;
    const kept = new MadeWhenAsked(this.#recent, made, Buffer.from(JSON.stringify(facts)), make);
    const service: Service = Object.create(prototype);
    return Object.assign(service, { id, name, revision, [maker]: kept });
  }
}

const maker = Symbol("made when asked");

/** Without a function of its own for each: there are thousands. */
class MadeWhenAsked<Facts = never> {
  readonly #recent: Recent;
  readonly #text: Buffer;
  readonly #make: (facts: Facts) => Service;
  #made: Service | undefined;

  constructor(recent: Recent, made: Service, text: Buffer, make: (facts: Facts) => Service) {
    this.#recent = recent;
    this.#text = text;
    this.#make = make;
    this.#made = made;
    recent.add(this);
  }

  get service(): Service {
    if (this.#made === undefined) {
      this.#made = this.#make(JSON.parse(this.#text.toString()));
      this.#recent.add(this);
    }
    return this.#made;
  }

  forget(): void {
    this.#made = undefined;
  }
}

type Forgetful = Pick<MadeWhenAsked, "forget">;

/**
 * Those that were made last. A ring, and no `Map` from which the oldest is deleted: that is copied now and then, and each copy that is left
 * behind keeps all that was in it until the whole heap is looked through.
 */
class Recent {
  readonly #ring = new Array<Forgetful | undefined>(mostMade).fill(undefined);
  #at = 0;

  add(made: Forgetful): void {
    this.#ring[this.#at]?.forget();
    this.#ring[this.#at] = made;
    this.#at = (this.#at + 1) % mostMade;
  }
}

/** All that the service of a bundle may have besides what tells it from others. */
const members = [
  ...(["description", "tags", "bindable", "planUpdateable", "metadata", "async", "plans"] as const),
  ...(["state", "bindingState", "prepareUpdate"] as const),
  ...(["provision", "update", "deprovision", "bind", "unbind"] as const),
] satisfies readonly (keyof Service)[];

const prototype = Object.defineProperties(
  {},
  Object.fromEntries(
    members.map((name) => {
      const get = function (this: { readonly [maker]: MadeWhenAsked }) {
        return this[maker].service[name];
      };
      return [name, { get }];
    }),
  ),
);
