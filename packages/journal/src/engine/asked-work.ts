import type { Listened } from "../listened.js";
import type { Wait } from "../operation.js";

/** What the function of an attempt has asked for. Made with the first of it: many functions ask for nothing, and empty lists are not free. */
export class AskedWork {
  /** Of steps, polls and sleeps. */
  readonly names = new Set<string>();
  /** What the function was given for it, and the sentence if nobody has listened to that when the function returns. */
  readonly promises = new Map<Listened<unknown>, string>();
  /** Steps, polls and sleeps that were begun and have not ended. */
  readonly underWay = new Set<Promise<unknown>>();
  /** What it waits for, by name. */
  readonly waits = new Map<string, Wait>();
  /** How far those polls have got that look, or whose look has failed: their time has come already, so nothing may wait for it. */
  readonly looked = new Map<string, Wait>();
  /** What begun work has failed with. */
  readonly failures = new Set<unknown>();
}
