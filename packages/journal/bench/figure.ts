/** One line of the result: what was measured, what it should be, and the absolute figures that it comes from. */
export interface Figure {
  readonly benchmark: string;
  readonly what: string;
  readonly store: string;
  readonly value: number;
  /** Of a ratio that was measured in turns: between which the middle half of the rounds lies. */
  readonly spread?: readonly [number, number];
  readonly unit: Unit;
  /** `null`: measured for comparison; nothing was promised. */
  readonly target: Target | null;
  /** The absolute figures, for a person. */
  readonly beside: string;
  /** The same, for a program: medians and the single rounds. */
  readonly details: Readonly<Record<string, number | string | readonly number[]>>;
}

export type Unit = "of the ceiling" | "times" | "commits" | "MB" | "% CPU" | "ms";

export interface Target {
  readonly kind: "at least" | "at most";
  readonly value: number;
}

export function meets({ value, target }: Figure): boolean {
  if (target === null) return true;
  return target.kind === "at least" ? value >= target.value : value <= target.value;
}

export function inUnit(value: number, unit: Unit): string {
  switch (unit) {
    case "of the ceiling":
      return `${Math.round(value * 100)} %`;
    case "times":
      return `${value.toFixed(2)} ×`;
    case "commits":
      return value.toFixed(2);
    case "MB":
      return `${value.toFixed(1)} MB`;
    case "% CPU":
      return `${value.toFixed(2)} %`;
    case "ms":
      return `${Math.round(value)} ms`;
  }
}

/** 15832 → "15,800/s": three digits say all that a noisy machine can. */
export function perSecond(rate: number): string {
  return `${threeDigits(rate).toLocaleString("en")}/s`;
}

export function micros(ms: number): string {
  return `${threeDigits(ms * 1000).toLocaleString("en")} µs`;
}

function threeDigits(value: number): number {
  return Number(value.toPrecision(3));
}
