import type { Json } from "@osbert/journal";
import type { BundleFormat } from "../sources/source.js";

export type JsonSchema = { readonly [name: string]: Json };

export const actions = ["provision", "update", "deprovision", "bind", "unbind"] as const;

export type Action = (typeof actions)[number];

/**
 * What a bundle offers and can do, whatever it was written in: checked, complete, plain JSON, the same text for the same meaning. All
 * that stands in a catalog comes from here, and nothing is looked up in the artifact again.
 */
export interface BundleSpec {
  readonly format: BundleFormat;
  /** Of classic bundles: 1, credentials by a command; 2, by a file. `null`: the own contract. */
  readonly runtime: 1 | 2 | null;
  readonly name: string;
  /** Given by the author for ever; else the identity comes from where the bundle lies. */
  readonly id: string | null;
  readonly description: string;
  readonly tags: readonly string[];
  readonly bindable: boolean;
  readonly metadata: { readonly [name: string]: Json };
  /** Semantic, as the author gave it. `null`: none was given. */
  readonly bundleVersion: string | null;
  /** Whether it may be asked to answer at once. */
  readonly async: "optional" | "required" | "unsupported";
  /** Those that it knows. A classic bundle says so only when it is asked (exit code 8). */
  readonly actions: readonly Action[];
  /** At least one. */
  readonly plans: readonly PlanSpec[];
  /** What it runs, of the own format. `null`: the image's own entry point. */
  readonly command: readonly string[] | null;
  /** It wants to reach the network. The operator decides. */
  readonly network: boolean;
  /** An action that takes longer is stopped. */
  readonly timeoutMs: number | null;
}

/** Why they are neither offered nor run here. */
export const noImageProblem =
  "a classic bundle runs in its own image, which a folder does not have; push the image to a registry, or write an osbert.yaml";
export const runtime2Problem = "classic bundles of runtime 2 write a Secret of Kubernetes, and run only there";

export interface PlanSpec {
  readonly name: string;
  readonly id: string | null;
  /** Earlier names: the identity stays. */
  readonly previousNames: readonly string[];
  readonly description: string;
  readonly free: boolean;
  readonly bindable: boolean;
  readonly metadata: { readonly [name: string]: Json };
  /** Names of plans that instances of this one may change to. */
  readonly updatesTo: readonly string[];
  readonly schemas: {
    readonly provision: JsonSchema | null;
    readonly update: JsonSchema | null;
    readonly bind: JsonSchema | null;
  };
}

/** A fault of a bundle, with its place in the author's file. */
export interface SpecProblem {
  /** `plans[0].parameters[2].type` */
  readonly path: string;
  readonly message: string;
  /** From 1; `null`: it is not at one line. */
  readonly line: number | null;
  /** Advice only: the bundle can be used. */
  readonly advice: boolean;
}

/** A bundle as it was read: what can be used of it, or why nothing can. */
export type ParsedBundle =
  | { readonly kind: "valid"; readonly spec: BundleSpec; readonly advice: readonly SpecProblem[] }
  | { readonly kind: "invalid"; readonly problems: readonly SpecProblem[] };
