/**
 * The text of one member of a JSON object, as it was written: numbers beyond 2^53 do not survive being parsed. Of a name that is there twice
 * the last one counts, as it does to JSON.parse. `json` must be the text of an object that was parsed before; `undefined`: it has no such member.
 *
 * It reads the text once, from its first character to its last, and keeps nothing but places in it.
 */
export function memberText(json: string, name: string): string | undefined {
  let found: string | undefined;
  let depth = 0;
  let key: string | undefined;
  let valueStart = -1;
  const endValue = (end: number) => {
    if (key === name) found = json.slice(valueStart, end).trim();
    key = undefined;
    valueStart = -1;
  };
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case quote: {
        const end = endOfText(json, at);
        // A text at the first level that no colon stands before is a name. It may be written with escapes.
        if (depth === 1 && valueStart < 0) key = JSON.parse(json.slice(at, end)) as string;
        at = end - 1;
        break;
      }
      case colon:
        if (depth === 1) valueStart = at + 1;
        break;
      case comma:
        if (depth === 1) endValue(at);
        break;
      case openBrace:
      case openBracket:
        depth++;
        break;
      case closeBrace:
      case closeBracket:
        if (--depth === 0) endValue(at);
        break;
    }
  }
  return found;
}

/** The place behind the closing quote. */
function endOfText(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === backslash) at++;
    else if (code === quote) return at + 1;
  }
  return json.length;
}

const quote = 34;
const comma = 44;
const colon = 58;
const openBracket = 91;
const backslash = 92;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;
