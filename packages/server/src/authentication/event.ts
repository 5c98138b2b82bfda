/** What authentication tells those who watch it. There is no user name in it: people type passwords where names belong. */
export type AuthenticationEvent =
  | {
      readonly kind: "password hashed";
      /** A dummy is what an unknown user name is compared with, so that it takes as long as a known one. */
      readonly against: "credential" | "dummy";
    }
  | {
      readonly kind: "authentication failed";
      /** The IPv4 address or IPv6 network; "" where it is not known. */
      readonly network: string;
      /** In a row, of this user name from there. */
      readonly failures: number;
      /** So long the answer is held back. */
      readonly delayMs: number;
    }
  | {
      readonly kind: "guesses refused";
      /** The IPv4 address or IPv6 network; "" where it is not known. */
      readonly network: string;
    }
  | {
      readonly kind: "keys unavailable";
      /** Whose keys could not be fetched. */
      readonly issuer: string;
      /** Why. */
      readonly error: unknown;
    };

/** Told of everything, at once. */
export type ObserveAuthentication = (event: AuthenticationEvent) => void;
