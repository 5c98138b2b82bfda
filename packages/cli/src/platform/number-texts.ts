/** Nothing that a broker writes begins so. */
export const numberMark = "\u0000number ";

/** Texts are left alone; each number becomes a text of its own digits, behind the mark. */
export function numbersAsTexts(json: string, mark: string): string {
  const written = JSON.stringify(mark).slice(1, -1);
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*/g, (token) =>
    token.startsWith('"') ? token : `"${written}${token}"`,
  );
}

/** JSON that was made of what was read so, with the numbers as they were written. */
export function numbersBack(json: string): string {
  return json.replaceAll(/"\\u0000number ([^"]*)"/g, "$1");
}
