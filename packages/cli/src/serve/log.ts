import { type Logger, pino } from "pino";
import type { Settings } from "../settings/table.js";

/** The program's log: pino, on standard error, as lines for people or for programs. */
export function createLog({ level, format }: Settings["log"]): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, format === "json" ? { write: writeLine } : { write: (line) => writeLine(textLine(line)) });
}

/** Written at once: what is said last before the end must not be lost. */
function writeLine(line: string): void {
  process.stderr.write(line);
}

/** `2030-01-01T12:00:01Z warn  the words {"other":"facts"}` */
function textLine(json: string): string {
  const { level, time, msg, ...facts } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const name = pino.levels.labels[Number(level)] ?? "";
  const rest = Object.keys(facts).length === 0 ? "" : ` ${JSON.stringify(facts)}`;
  return `${String(time).slice(0, 19)}Z ${name.padEnd(5)} ${String(msg ?? "")}${rest}\n`;
}
