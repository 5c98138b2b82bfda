/**
 * How much work a pattern is to compile: about as many instructions as RE2 makes of it, which writes what is repeated out. Found in one look at
 * the text, before RE2 sees it: a pattern of 64 KiB can be one of 60 million instructions.
 */
export function patternCost(pattern: string): number {
  const open: number[] = [];
  let sum = 0;
  let last = 0;
  for (let at = 0; at < pattern.length; at++) {
    const letter = pattern[at];
    if (letter === "{") {
      const count = /^\{(\d{0,9})(,?)(\d{0,9})\}/.exec(pattern.slice(at, at + 24));
      if (count !== null) {
        sum += last * Math.max(0, Number(count[1]) - 1, Number(count[3]) - 1);
        at += count[0].length - 1;
        continue;
      }
    }
    if (letter === "(") {
      open.push(sum);
      sum = 0;
      last = 0;
    } else if (letter === ")") {
      last = sum + 2;
      sum = (open.pop() ?? 0) + last;
    } else {
      last = 1;
      if (letter === "\\") {
        const named = /^[pP](?:\{[^}]{0,99}\}|.)/s.exec(pattern.slice(at + 1, at + 104));
        last = named === null ? 1 : costOfClass;
        at += named?.[0].length ?? 1;
      } else if (letter === "[") {
        const end = endOfBrackets(pattern, at);
        last = end - at;
        at = end;
      }
      sum += last;
    }
  }
  return open.reduce((all, one) => all + one, sum);
}

/** Such as \pL, which has hundreds of ranges. */
const costOfClass = 50;

/** Of `[…]`; a bracket that is never closed is for RE2 to refuse. */
function endOfBrackets(pattern: string, start: number): number {
  for (let at = start + 2; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++;
    else if (pattern[at] === "]") return at;
  }
  return start;
}
