import { columnsOf, fitting, plainText } from "./plain-text.js";

/** Rows under headings, in columns; the last column is cut where the line would be wider than `width`. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[], width = Infinity): string {
  const lines = [headings, ...rows.map((row) => row.map((cell) => plainText(cell)))];
  const last = headings.length - 1;
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => columnsOf(line[column] ?? ""))));
  return lines
    .map((line) => {
      const front = line
        .slice(0, last)
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - columnsOf(cell)));
      const text = [...front, line[last] ?? ""].join("  ").trimEnd();
      return Number.isFinite(width) ? fitting(text, width) : text;
    })
    .join("\n");
}
