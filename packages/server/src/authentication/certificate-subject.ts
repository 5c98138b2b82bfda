/** One attribute of a distinguished name, with the escapes taken away. */
interface Attribute {
  readonly type: string;
  readonly value: string;
}

/** A distinguished name: relative names, each of one attribute or (rarely) several. */
export type Subject = readonly (readonly Attribute[])[];

/** Names that mean the same attribute, as programs print them. */
const aliases: Readonly<Record<string, string>> = {
  COMMONNAME: "CN",
  ORGANIZATIONNAME: "O",
  ORGANIZATIONALUNITNAME: "OU",
  COUNTRYNAME: "C",
  LOCALITYNAME: "L",
  STATEORPROVINCENAME: "ST",
  S: "ST",
  DOMAINCOMPONENT: "DC",
  USERID: "UID",
  E: "EMAILADDRESS",
};

/** Reads `CN=platform,O=Example` with the escapes of RFC 2253, or the same with a line each. `undefined`: it is no such name. */
export function parseSubject(text: string): Subject | undefined {
  const names: Attribute[][] = [];
  for (const relative of splitAt(text, /[,\n]/)) {
    const attributes = splitAt(relative, /\+/).map(readAttribute);
    if (attributes.some((attribute) => attribute === undefined)) return undefined;
    names.push(attributes as Attribute[]);
  }
  return names.length > 0 ? names : undefined;
}

/** Printed alike if they are the same name. Some programs print the most specific part first, others last: both count. */
export function isSameSubject(one: Subject, other: Subject): boolean {
  const text = printSubject(one);
  return text === printSubject(other) || text === printSubject([...other].reverse());
}

function printSubject(subject: Subject): string {
  return JSON.stringify(
    subject.map((attributes) => attributes.map(({ type, value }) => JSON.stringify([type, value])).sort()),
  );
}

function readAttribute(text: string): Attribute | undefined {
  const equals = text.indexOf("=");
  if (equals < 1) return undefined;
  const type = text.slice(0, equals).trim().toUpperCase();
  const value = withoutEscapes(trimUnescaped(text.slice(equals + 1)));
  if (!/^[A-Z0-9.-]+$/.test(type) || value === undefined || value === "") return undefined;
  return { type: aliases[type] ?? type, value };
}

/** At every separator that is neither escaped nor in quotes. */
function splitAt(text: string, separator: RegExp): string[] {
  const parts: string[] = [];
  let part = "";
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === "\\") part += character + text.charAt(++at);
    else if (!quoted && separator.test(character)) {
      parts.push(part);
      part = "";
    } else {
      if (character === '"') quoted = !quoted;
      part += character;
    }
  }
  return [...parts, part];
}

/** Spaces around a value do not count, unless they are escaped. */
function trimUnescaped(text: string): string {
  const start = text.trimStart();
  const end = start.trimEnd();
  const backslashes = /\\*$/.exec(end)?.[0].length ?? 0;
  return end.length < start.length && backslashes % 2 === 1 ? `${end} ` : end;
}

/** `\,` is a comma, `\C3\A4` are bytes of UTF-8. `undefined`: the text ends within an escape, or its bytes are no text. */
function withoutEscapes(text: string): string | undefined {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/s.exec(text);
  const bytes: Buffer[] = [];
  for (const [piece] of (quoted?.[1] ?? text).matchAll(/\\[0-9A-Fa-f]{2}|\\.|\\$|[^\\]+/gs)) {
    if (piece === "\\") return undefined;
    if (/^\\[0-9A-Fa-f]{2}$/.test(piece)) bytes.push(Buffer.from(piece.slice(1), "hex"));
    else bytes.push(Buffer.from(piece.startsWith("\\") ? piece.slice(1) : piece));
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(bytes));
  } catch {
    return undefined;
  }
}
