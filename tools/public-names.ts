import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The entries of packages that an author of services imports from. */
export const authorEntries = ["index.ts", "http/index.ts", "testing/index.ts"].map(
  (file) => `packages/broker/src/${file}`,
);

/** A name that the compiler shows to whoever uses a package: an export, or a member of one. */
export interface PublicName {
  /** Such as `Work.step`. */
  readonly name: string;
  readonly file: string;
  /** The text of its doc comment; `null` if it has none. */
  readonly doc: string | null;
}

/**
 * What an entry of a package exports, with the members of its interfaces, classes and types of objects, and those of what they are made
 * of. Read from the sources: TypeScript 7 has no API that could be asked.
 */
export function publicNames(entry: string): readonly PublicName[] {
  const found = new Map<string, PublicName>();
  const visited = new Set<string>();
  const visitMembers = ({ file, name, declaration }: Place) => {
    if (visited.has(`${file} ${name}`)) return;
    visited.add(`${file} ${name}`);
    for (const member of membersOf(declaration)) {
      const key = `${name}.${keyOf(member)}`;
      found.set(key, { name: key, file, doc: docOf(file, member) });
    }
    for (const part of madeOf(declaration)) {
      const place = declarationOf(file, part);
      if (place !== undefined) visitMembers(place);
    }
  };
  for (const exported of exportsOf(entry)) {
    const place = declarationOf(entry, exported);
    if (place === undefined) throw new Error(`${entry} exports ${exported}, which is declared nowhere`);
    const { file, name, statement } = place;
    found.set(name, { name, file, doc: docOf(file, statement) });
    visitMembers(place);
  }
  return [...found.values()];
}

/** As much of the parser's nodes as is looked at. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

interface Parsed {
  readonly text: string;
  readonly body: readonly Node[];
  readonly comments: readonly {
    readonly type: string;
    readonly value: string;
    readonly start: number;
    readonly end: number;
  }[];
}

const parsed = new Map<string, Parsed>();

function parse(file: string): Parsed {
  const known = parsed.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(join(root, file), "utf8");
  const { program, comments, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const all = { text, body: program.body as unknown as readonly Node[], comments };
  parsed.set(file, all);
  return all;
}

/** The file that an import leads to; `undefined` if it is none of this repository. */
function resolved(from: string, source: string): string | undefined {
  if (source.startsWith(".")) return join(dirname(from), source.replace(/\.js$/, ".ts"));
  const [, room, path] = /^@osbert\/([a-z]+)(?:\/([a-z]+))?$/.exec(source) ?? [];
  if (room === undefined) return undefined;
  return `packages/${room}/src/${path === undefined ? "index.ts" : `${path}/index.ts`}`;
}

function exportsOf(entry: string): readonly string[] {
  return parse(entry)
    .body.filter(({ type }) => type === "ExportNamedDeclaration")
    .flatMap(({ specifiers }) => (specifiers as readonly Node[]).map(({ exported }) => nameOf(exported)));
}

interface Place {
  readonly file: string;
  readonly name: string;
  readonly statement: Node;
  readonly declaration: Node;
}

/** Where a name that a file declares, imports or passes on is declared. */
function declarationOf(file: string, name: string): Place | undefined {
  for (const statement of parse(file).body) {
    const declaration = (statement.declaration ?? statement) as Node;
    if (declares(declaration, name)) return { file, name, statement, declaration };
    const { source, specifiers = [] } = statement as { source?: Node | null; specifiers?: readonly Node[] };
    const specifier = specifiers.find((each) => nameOf(each.exported ?? each.local) === name);
    if (specifier === undefined || source == null) continue;
    const target = resolved(file, source.value as string);
    const original = nameOf(
      statement.type === "ImportDeclaration" ? (specifier.imported ?? specifier.local) : specifier.local,
    );
    return target === undefined ? undefined : declarationOf(target, original);
  }
  return undefined;
}

function declares(declaration: Node, name: string): boolean {
  if (declaration.type !== "VariableDeclaration") return nameOf(declaration.id) === name;
  return (declaration.declarations as readonly Node[]).some(({ id }) => nameOf(id) === name);
}

function membersOf(declaration: Node): readonly Node[] {
  if (declaration.type === "TSInterfaceDeclaration") return keyed((declaration.body as Node).body as readonly Node[]);
  if (declaration.type === "ClassDeclaration") {
    const members = keyed((declaration.body as Node).body as readonly Node[]);
    return members.filter((member) => {
      const isHidden = (member.key as Node).type === "PrivateIdentifier" || member.accessibility === "private";
      return !isHidden && member.override !== true && member.kind !== "constructor";
    });
  }
  return declaration.type === "TSTypeAliasDeclaration" ? literalMembers(declaration.typeAnnotation) : [];
}

function keyed(members: readonly Node[]): readonly Node[] {
  return members.filter(({ key }) => key !== undefined);
}

/** Those of the types of objects in a type, but for the tag by which a union is told apart, which explains itself. */
function literalMembers(node: unknown): readonly Node[] {
  if (Array.isArray(node)) return node.flatMap(literalMembers);
  if (typeof node !== "object" || node === null) return [];
  const { type, members } = node as Node;
  if (type === "TSTypeLiteral") return keyed(members as readonly Node[]).filter((member) => keyOf(member) !== "kind");
  return Object.entries(node).flatMap(([field, each]) => (field === "extendsType" ? [] : literalMembers(each)));
}

/** The types that a type takes its members from: what an interface extends, also inside of `Omit`; what an alias is made of. */
function madeOf(declaration: Node): readonly string[] {
  if (declaration.type === "TSInterfaceDeclaration") return identifiersIn(declaration.extends);
  return declaration.type === "TSTypeAliasDeclaration" ? identifiersIn(declaration.typeAnnotation) : [];
}

function identifiersIn(node: unknown): readonly string[] {
  if (Array.isArray(node)) return node.flatMap(identifiersIn);
  if (typeof node !== "object" || node === null || (node as Node).type === "TSTypeLiteral") return [];
  const own = (node as Node).type === "Identifier" ? [nameOf(node)] : [];
  return [...own, ...Object.values(node).flatMap(identifiersIn)];
}

function keyOf(member: Node): string {
  return nameOf(member.key);
}

function nameOf(node: unknown): string {
  const { name, value } = (node ?? {}) as { readonly name?: string; readonly value?: unknown };
  return name ?? (typeof value === "string" ? value : "");
}

/** The doc comment right before a node. Lines for the linter may stand between. */
function docOf(file: string, { start }: Node): string | null {
  const { text, comments } = parse(file);
  let end = start;
  for (const comment of [...comments].reverse()) {
    if (comment.end > end) continue;
    if (text.slice(comment.end, end).trim() !== "") return null;
    if (comment.type === "Block") return comment.value.startsWith("*") ? comment.value : null;
    end = comment.start;
  }
  return null;
}
