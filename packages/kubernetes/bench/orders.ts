/** What the process under measure is told, and what it answers: see event-broker.ts. */
export interface Orders {
  readonly open: { readonly order: OpenOrder; readonly answer: null };
  /** Resolves when all of them have ended. */
  readonly provision: { readonly order: readonly FlowOrder[]; readonly answer: Provisioned };
  /** Since the last time that it was asked. */
  readonly requests: { readonly order: null; readonly answer: Requests };
  /** Namespaces that were looked at since it was opened. */
  readonly looked: { readonly order: null; readonly answer: number };
  readonly memory: { readonly order: null; readonly answer: Memory };
  readonly stop: { readonly order: null; readonly answer: null };
}

export interface OpenOrder {
  readonly kubeconfig: string;
  /** The file of the store. */
  readonly store: string;
  readonly integrationNamespace: string;
  readonly applications: readonly string[];
  readonly mirror: boolean;
  /** Conditions are told without any wait: what is left is the way from the object to the condition. */
  readonly atOnce: boolean;
}

export interface FlowOrder {
  readonly namespace: string;
  readonly application: string;
}

export interface Provisioned {
  readonly succeeded: number;
  readonly tookMs: number;
}

/** To the API server, by what they do: such as "PATCH subscriptions". */
export interface Requests {
  readonly writes: number;
  readonly reads: number;
  readonly watches: number;
  readonly by: Readonly<Record<string, number>>;
}

export interface Memory {
  /** After a collection. */
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly peakBytes: number;
}

/** Told as it happens. */
export interface ConditionTold {
  readonly kind: "condition";
  readonly application: string;
  readonly type: string;
  readonly status: string;
  readonly at: number;
}

export interface Asked {
  readonly id: number;
  readonly name: keyof Orders;
  readonly order: unknown;
}

export interface Answered {
  readonly kind: "answer";
  readonly id: number;
  readonly value: unknown;
  readonly failed: string | null;
}
