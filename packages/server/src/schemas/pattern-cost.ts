/**
 * How much work a pattern is to compile: about as many instructions as RE2 makes of it, which writes what is repeated out, and the length of its classes,
 * which it does not. Found in one look at the text, before RE2 sees it. It may be wrong where RE2 reads a text otherwise; who compiles the pattern learns
 * then what it was.
 */
export function patternCost(pattern: string): number {
  const open: number[] = [];
  let sum = 0;
  let last = 0;
  let classes = 0;
  const foldsCase = /\(\?[A-Za-z]*i/.test(pattern);
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
    } else if (letter === "\\" && pattern[at + 1] === "Q") {
      const end = endOfQuoted(pattern, at);
      sum += end - at;
      last = 1;
      at = end;
    } else {
      last = 1;
      sum += 1;
      if (letter === "\\") {
        const long = /^(?:[pP](?:\{[^}]{0,99}\}|.)|x\{[^}]{0,99}\})/s.exec(pattern.slice(at + 1, at + 104))?.[0];
        classes += long === undefined || long.startsWith("x") ? 0 : costOfClass;
        at += long?.length ?? 1;
      } else if (letter === "[") {
        const end = endOfBrackets(pattern, at);
        classes += costOfBrackets(pattern.slice(at + 1, end), foldsCase);
        at = end;
      }
    }
  }
  return open.reduce((all, one) => all + one, sum) + classes;
}

/** Such as \pL, which has hundreds of ranges. */
const costOfClass = 200;
/** Where upper and lower case are the same, RE2 looks at each letter of a range; there are none behind the last. */
const lettersInACost = 100;
const lastWithCase = 0x1e943;

/** Of what stands between them. */
function costOfBrackets(inside: string, foldsCase: boolean): number {
  const named = inside.match(/\\[pP]/g)?.length ?? 0;
  const ranges = foldsCase ? inside.matchAll(/-(?:\\([x0-7])|(.))/gsu) : [];
  let letters = 0;
  for (const [, escaped, last] of ranges)
    letters += escaped === undefined ? Math.min(last?.codePointAt(0) ?? 0, lastWithCase) : lastWithCase;
  return 1 + inside.length + named * costOfClass + letters / lettersInACost;
}

/** Of `[…]`, as RE2 reads it: a bracket that comes first is a letter, also behind a `^`. One that is never closed is for RE2 to refuse. */
function endOfBrackets(pattern: string, start: number): number {
  const first = pattern[start + 1] === "^" ? start + 2 : start + 1;
  for (let at = first; at < pattern.length; at++) {
    if (pattern[at] === "\\") at++;
    else if (pattern[at] === "]" && at > first) return at;
    else if (pattern.startsWith("[:", at))
      at += (/^\[:\^?[a-z]{1,9}:\]/.exec(pattern.slice(at, at + 15))?.[0].length ?? 1) - 1;
  }
  return start;
}

/** Of `\Q…\E`, in which all are letters. Without an end, it is that of the pattern. */
function endOfQuoted(pattern: string, start: number): number {
  const end = pattern.indexOf("\\E", start + 2);
  return end === -1 ? pattern.length - 1 : end + 1;
}
