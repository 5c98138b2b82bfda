import type { Condition } from "../flows/flow-record.js";
import type { What } from "../flows/pass.js";

/** What happens to flows, for whoever watches: a log, metrics. */
export type FlowEvent =
  | {
      readonly kind: "flow condition";
      readonly namespace: string;
      readonly flow: string;
      readonly application: string;
      readonly condition: Condition;
      /** How long it was otherwise; `null`: it was never said before. */
      readonly afterMs: number | null;
    }
  | { readonly kind: "flow gone"; readonly namespace: string; readonly flow: string; readonly application: string }
  | {
      readonly kind: "broker state";
      readonly namespace: string;
      readonly from: string;
      readonly to: string;
      readonly holders: number;
    }
  | {
      readonly kind: "cluster changed";
      readonly namespace: string;
      readonly what: What;
      readonly done: "applied" | "removed";
      readonly name: string;
    }
  | {
      readonly kind: "cluster refused";
      readonly namespace: string;
      readonly what: What;
      readonly name: string;
      readonly error: unknown;
    }
  | { readonly kind: "namespace looked at"; readonly namespace: string; readonly tookMs: number };

export type TellFlows = (event: FlowEvent) => void;
