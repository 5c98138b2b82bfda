import { didYouMean } from "@osbert/server/yaml";
import { asObject } from "../sources/json-object.js";
import type { SettingFault } from "./source-config.js";

/** Collects what is wrong with settings, all at once. */
export class SettingFaults {
  readonly faults: SettingFault[] = [];
  readonly advice: SettingFault[] = [];

  fault(path: string, message: string): undefined {
    this.faults.push({ path, message });
    return undefined;
  }

  advise(path: string, message: string): void {
    this.advice.push({ path, message });
  }
}

/** Reads a group of settings. What is not there is `undefined`; what is wrong is a fault, and `undefined`. Nothing is made fit silently. */
export class SettingReader {
  readonly path: string;
  readonly faults: SettingFaults;
  readonly #values: { readonly [name: string]: unknown };

  private constructor(values: { readonly [name: string]: unknown }, path: string, faults: SettingFaults) {
    this.#values = values;
    this.path = path;
    this.faults = faults;
  }

  static of(value: unknown, path: string, faults: SettingFaults, known: readonly string[]): SettingReader | undefined {
    const values = asObject(value);
    if (values === undefined) return faults.fault(path, "must be a group of settings");
    for (const name of Object.keys(values)) {
      if (!known.includes(name)) faults.fault(place(path, name), `is not a setting${didYouMean(name, known)}`);
    }
    return new SettingReader(values, path, faults);
  }

  at(name: string): string {
    return place(this.path, name);
  }

  has(name: string): boolean {
    return this.raw(name) !== undefined;
  }

  /** YAML's `key:` without a value is as if it were not there. */
  raw(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? (this.#values[name] ?? undefined) : undefined;
  }

  fault(name: string, message: string): undefined {
    return this.faults.fault(this.at(name), message);
  }

  text(name: string, most = 2_048): string | undefined {
    const value = this.raw(name);
    return value === undefined ? undefined : textOf(value, this.at(name), this.faults, most);
  }

  flag(name: string): boolean | undefined {
    const value = this.raw(name);
    if (value === undefined || typeof value === "boolean") return value;
    return this.fault(name, "must be true or false, without quotes");
  }

  number(name: string, least: number, most: number): number | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
    return this.fault(name, `must be a whole number from ${least} to ${most}`);
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const found = choices.find((choice) => choice === given);
    return found ?? this.fault(name, `must be one of ${choices.join(", ")}${didYouMean(given, choices)}`);
  }

  list(name: string): readonly unknown[] {
    const value = this.raw(name);
    if (value === undefined) return [];
    if (!Array.isArray(value)) return this.fault(name, "must be a list") ?? [];
    if (value.length > mostItems) return this.fault(name, `must have at most ${mostItems} items`) ?? [];
    return value;
  }

  /** Every text of a list, with its path. Those that are none are faults. */
  texts(name: string): readonly { readonly text: string; readonly path: string }[] {
    return this.list(name).flatMap((value, at) => {
      const path = `${this.at(name)}[${at}]`;
      const text = textOf(value, path, this.faults);
      return text === undefined ? [] : [{ text, path }];
    });
  }

  durationMs(name: string, leastMs: number, least: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const [, amount, unit = ""] = /^([0-9]{1,6})(s|m|h|d)$/.exec(text) ?? [];
    if (amount === undefined) return this.fault(name, "must be a number with its unit, such as 30s, 10m, 2h or 7d");
    const ms = Number(amount) * (unitsMs[unit] ?? Number.NaN);
    return ms >= leastMs ? ms : this.fault(name, `must be at least ${least}`);
  }
}

const mostItems = 10_000;
const unitsMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function textOf(value: unknown, path: string, faults: SettingFaults, most = 2_048): string | undefined {
  if (typeof value === "number") return faults.fault(path, "must be a text; put quotes around it");
  if (typeof value !== "string" || value.trim() === "") return faults.fault(path, "must be a text");
  return value.length <= most ? value : faults.fault(path, `must have at most ${most} letters`);
}

function place(path: string, name: string): string {
  const isPlain = /^[A-Za-z_][A-Za-z0-9_-]*$/.test(name);
  const key = isPlain ? name : JSON.stringify(name.slice(0, 64));
  if (path === "") return key;
  return isPlain ? `${path}.${key}` : `${path}[${key}]`;
}
