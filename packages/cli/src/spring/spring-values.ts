import { formatDurationMs, unitsMs } from "../duration.js";

/** As Spring's conversion has it. */
export function springBoolean(text: string): boolean | undefined {
  const word = text.trim().toLowerCase();
  if (["true", "on", "yes", "1"].includes(word)) return true;
  return ["false", "off", "no", "0"].includes(word) ? false : undefined;
}

const units = { ns: 1e-6, us: 1e-3, ...unitsMs } as const;

/** A duration of Spring (`10d`, `PT2H`, or a number of milliseconds) in the form of the settings. `undefined`: it is none. */
export function springDuration(text: string): string | undefined {
  const simple = /^\+?([0-9]{1,15})(ns|us|ms|s|m|h|d)?$/i.exec(text.trim());
  if (simple !== null) {
    const unit = (simple[2] ?? "ms").toLowerCase() as keyof typeof units;
    return formatDurationMs(Math.ceil(Number(simple[1]) * units[unit]));
  }
  const iso =
    /^P(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:\.[0-9]{1,9})?S)?)?$/i.exec(
      text.trim(),
    );
  if (iso === null) return undefined;
  const [d, h, m, s] = iso.slice(1).map((part) => Number(part ?? 0)) as [number, number, number, number];
  return formatDurationMs(d * units.d + h * units.h + m * units.m + s * units.s);
}

const macros: Readonly<Record<string, string>> = {
  "@yearly": "0 0 0 1 1 *",
  "@annually": "0 0 0 1 1 *",
  "@monthly": "0 0 0 1 * *",
  "@weekly": "0 0 0 * * 0",
  "@daily": "0 0 0 * * *",
  "@midnight": "0 0 0 * * *",
  "@hourly": "0 0 * * * *",
};

/** A schedule of Spring; `null`: it is switched off. */
export function springSchedule(text: string): string | null {
  const schedule = text.trim().replaceAll(/\s+/g, " ");
  if (schedule === "-" || schedule === "") return null;
  return Object.hasOwn(macros, schedule.toLowerCase()) ? (macros[schedule.toLowerCase()] ?? schedule) : schedule;
}

export interface Filled {
  readonly text: string;
  /** Placeholders of Spring that were in it, and whether each had a default, which now stands there. */
  readonly placeholders: readonly { readonly name: string; readonly hasDefault: boolean }[];
}

/** Puts the defaults of placeholders (`${name:default}`) in their place; one without a default stays. */
export function fillPlaceholders(text: string): Filled {
  const placeholders: { name: string; hasDefault: boolean }[] = [];
  const filled = text.replaceAll(
    /\$\{([^{}:]{1,200})(?::([^{}]{0,2000}))?\}/g,
    (whole, name: string, given?: string) => {
      placeholders.push({ name, hasDefault: given !== undefined });
      return given ?? whole;
    },
  );
  return { text: filled, placeholders };
}

/** The variable of the environment that Spring takes for a property of this name. */
export function variableFor(property: string): string {
  const name = property.replaceAll("-", "").replaceAll(/[^A-Za-z0-9]+/g, "_");
  return name.toUpperCase().replace(/^(?=[0-9])/, "_");
}
