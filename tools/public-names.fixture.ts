interface Base {
  readonly inherited: string;
}

/** It is. */
interface Documented extends Omit<Base, "a"> {
  /** It is. */
  // A line for the linter.
  member(): void;
  // It is not.
  readonly plain: string;
}

/** It is. */
type Either =
  | { readonly kind: "a"; readonly one: string }
  | {
      readonly kind: "b";
      /** It is. */
      readonly other: string;
    };

/** It is. */
class Thing {
  readonly #hidden = 1;
  method(): number {
    return this.#hidden;
  }
}

/* It is not. */
const bare = 1;

export { bare, type Documented, type Either, Thing };
