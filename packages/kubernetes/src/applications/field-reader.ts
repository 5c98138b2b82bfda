import { isKeepable } from "@osbert/journal";
import type { Finding } from "@osbert/protocol";

type Fields = Readonly<Record<string, unknown>>;

/** So much is said of one object: a person mends the first faults first. */
const mostFindings = 50;
/** Of what a finding repeats of what it found. */
const mostQuoted = 80;

/**
 * Reads fields of an object that anybody may have written. What is not as it has to be is a finding with its place, and counts as left out; nothing
 * throws. Texts are kept as they are, markup included, but bounded, and without what a store cannot keep.
 */
export class FieldReader {
  readonly #findings: Finding[];
  readonly #fields: Fields;
  readonly #place: string;

  constructor(value: unknown, place: string, findings: Finding[]) {
    this.#findings = findings;
    this.#place = place;
    this.#fields = isObject(value) ? value : {};
    if (value !== undefined && value !== null && !isObject(value)) this.tell("", "must be an object");
  }

  tell(field: string, message: string): void {
    tell(this.#findings, this.#at(field), message);
  }

  has(field: string): boolean {
    return this.#value(field) !== undefined;
  }

  /** A text that is not empty. One that is too long is cut. `null`: there is none. */
  text(field: string, mostLength: number): string | null {
    const value = this.#value(field);
    if (value === undefined) return null;
    if (typeof value !== "string") return this.#wrong(field, "must be a text");
    const whole = isKeepable(value) ? value : wellFormed(value.replaceAll("\0", ""));
    if (whole !== value) this.tell(field, "holds NUL or half of a surrogate pair, which is left out");
    if (whole.length > mostLength) this.tell(field, `is longer than ${mostLength} characters, and is cut`);
    const text = wellFormed(whole.slice(0, mostLength));
    return text.trim() === "" ? null : text;
  }

  /** A text that names something: it is taken whole or not at all. */
  id(field: string, mostLength: number): string | null {
    const value = this.#value(field);
    if (value === undefined || value === "") return null;
    if (typeof value !== "string") return this.#wrong(field, "must be a text");
    if (!isKeepable(value)) return this.#wrong(field, "must not hold NUL or half of a surrogate pair");
    if (Buffer.byteLength(value) > mostLength) return this.#wrong(field, `must have at most ${mostLength} bytes`);
    if (value.trim() !== value) return this.#wrong(field, "must not begin or end with blanks");
    return value;
  }

  url(field: string): string | null {
    const value = this.#value(field);
    if (value === undefined || value === "") return null;
    if (typeof value !== "string" || value.length > longestUrl || !URL.canParse(value))
      return this.#wrong(field, `must be a URL, not ${quoted(value)}`);
    const { protocol } = new URL(value);
    if (protocol !== "http:" && protocol !== "https:") return this.#wrong(field, "must begin with http or https");
    return value;
  }

  flag(field: string): boolean {
    const value = this.#value(field);
    if (value === undefined || typeof value === "boolean") return value ?? false;
    this.tell(field, "must be true or false");
    return false;
  }

  object(field: string): FieldReader {
    return new FieldReader(this.#value(field), this.#at(field), this.#findings);
  }

  /** The items, up to so many, each with its place. */
  items(field: string, most: number): readonly { readonly value: unknown; readonly place: string }[] {
    const value = this.#value(field);
    if (value === undefined) return [];
    if (!Array.isArray(value)) return this.#wrong(field, "must be a list") ?? [];
    if (value.length > most) this.tell(field, `has more than ${most} items: the others are left out`);
    return value.slice(0, most).map((item, at) => ({ value: item, place: `${this.#at(field)}[${at}]` }));
  }

  /** Short texts, each once. */
  texts(field: string, most: number, mostLength: number): readonly string[] {
    const texts = new Set<string>();
    for (const { value, place } of this.items(field, most)) {
      const text = new FieldReader({ value }, "", []).text("value", mostLength);
      if (text === null || text !== value)
        tell(this.#findings, place, `must be a text of up to ${mostLength} characters`);
      else texts.add(text);
    }
    return [...texts];
  }

  /** Labels as Kubernetes has them; others are left out. */
  labels(field: string, most = 64): Readonly<Record<string, string>> {
    const value = this.#value(field);
    if (value === undefined) return {};
    if (!isObject(value)) return this.#wrong(field, "must be an object") ?? {};
    const labels: Record<string, string> = {};
    const pairs = Object.entries(value);
    if (pairs.length > most) this.tell(field, `has more than ${most} labels: the others are left out`);
    for (const [name, text] of pairs.slice(0, most)) {
      if (!isLabelName(name)) this.tell(field, `${quoted(name)} is no name of a label`);
      else if (typeof text !== "string" || !isLabelValue(text)) this.tell(`${field}.${name}`, "is no value of a label");
      else Object.defineProperty(labels, name, { value: text, enumerable: true, configurable: true, writable: true });
    }
    return labels;
  }

  raw(field: string): unknown {
    return this.#value(field);
  }

  #value(field: string): unknown {
    return Object.hasOwn(this.#fields, field) ? (this.#fields[field] ?? undefined) : undefined;
  }

  #wrong(field: string, message: string): null {
    this.tell(field, message);
    return null;
  }

  #at(field: string): string {
    return field === "" ? this.#place : this.#place === "" ? field : `${this.#place}.${field}`;
  }
}

const longestUrl = 2_048;

/** What is wrong, up to a number of things. */
export function tell(findings: Finding[], path: string, message: string): void {
  if (findings.length < mostFindings)
    findings.push({ level: "warning", path: wellFormed(path.slice(0, 200)), message });
}

/** A bit of something, for a person, on one line. */
export function quoted(value: unknown): string {
  const text = typeof value === "string" ? value.slice(0, mostQuoted + 1) : typeof value;
  const cut = text.length > mostQuoted ? `${text.slice(0, mostQuoted)}…` : text;
  return JSON.stringify(wellFormed(cut));
}

/** Half of a surrogate pair becomes the character that stands for what is unreadable. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLabelName(name: string): boolean {
  return /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/.test(name);
}

function isLabelValue(value: string): boolean {
  return value === "" || /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/.test(value);
}

/** As names of namespaces, Secrets and most else have to be. */
export function isObjectName(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(name);
}
