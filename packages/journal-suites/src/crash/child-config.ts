import type { CrashPoint, Json, Retention } from "@osbert/journal";
import type { Store } from "@osbert/journal/store";
import type { ScenarioOptions } from "./scenario.js";

/** Where children find the store: the address of a module with `openStore`, and what that is given. */
export interface StoreAddress {
  /** A file: or other URL that plain Node can import. */
  readonly module: string;
  readonly config: Json;
}

/** What a store module exports. It is imported by a process of its own, in plain Node. */
export interface StoreModule {
  readonly openStore: (config: Json) => Store | Promise<Store>;
}

/** What a child is started with. */
export interface ChildConfig {
  /** The how-manieth child it is. */
  readonly process: number;
  readonly store: StoreAddress;
  readonly task:
    | {
        readonly kind: "run";
        readonly scenario: ScenarioOptions;
        readonly leaseMs: number;
        readonly retention: Retention;
        /** Kills itself when it reaches that point for the nth time. */
        readonly dieAt: { readonly point: CrashPoint; readonly nth: number } | null;
        /** How fast its clocks go; 1 is right. */
        readonly clockRate: number;
        /** How long a caller waits for an answer. */
        readonly timeoutMs: number;
        /** Whether it goes on trying if the store cannot be opened, or ends with the error. */
        readonly keepsTrying: boolean;
      }
    | { readonly kind: "dump" }
    /** Opens what another process has. */
    | { readonly kind: "rival" };
}

/** What a running child is told, one line of JSON each. */
export type ChildCommand =
  | { readonly kind: "accept"; readonly request: number }
  | { readonly kind: "cancel"; readonly n: number; readonly id: string }
  /** Nothing more will be asked: end when nothing is open. */
  | { readonly kind: "finish" };
