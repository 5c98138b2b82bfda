import type { Place, ScalarNode, ValueNode } from "@osbert/server/yaml";

/**
 * Properties as Spring sees them: however they were written, nested, with dots or with indices, they are one tree. Items of a list are
 * children with a number for a name.
 */
export interface PropertyTree {
  readonly place: Place;
  /** At the end of a path; an empty list or map has neither this nor children. */
  readonly scalar?: ScalarNode;
  readonly children: ReadonlyMap<string, PropertyTree>;
  /** Written as a list, though it may be empty. */
  readonly isList: boolean;
}

/** Too much of something: the file is refused. */
export class TooLarge extends Error {
  readonly place: Place;

  constructor(place: Place, message: string) {
    super(message);
    this.place = place;
  }
}

const deepest = 50;
const longestKey = 2_000;
/** A key with dots makes many of one. */
const mostNodes = 50_000;

/** Makes a tree of what was written. Throws TooLarge. */
export function propertyTree(written: ValueNode): PropertyTree {
  const root = emptyNode(written.place);
  let nodes = 0;
  const insert = (from: Node, at: ValueNode, depth: number): void => {
    if (at.kind === "scalar") {
      from.scalar = at;
      from.children.clear();
      return;
    }
    from.isList = at.kind === "list";
    const inner =
      at.kind === "list"
        ? at.items.map((item, index) => [String(index), { place: item.place, written: item }] as const)
        : [...at.entries];
    for (const [key, { place, written: value }] of inner) {
      if (key.length > longestKey) throw new TooLarge(place, `a key has more than ${longestKey} characters`);
      const path = at.kind === "list" ? [key] : segments(key);
      if (depth + path.length > deepest) throw new TooLarge(place, `is nested deeper than ${deepest} levels`);
      let node = from;
      for (const name of path) {
        const child = node.children.get(name) ?? emptyNode(place);
        if (!node.children.has(name)) nodes += 1;
        if (nodes > mostNodes) throw new TooLarge(place, `has more than ${mostNodes} properties`);
        node.children.set(name, child);
        delete node.scalar;
        node = child;
      }
      insert(node, value, depth + path.length);
    }
  };
  insert(root, written, 0);
  return root;
}

/** Of two documents the later one counts more: lists are exchanged as a whole, everything else name by name, in any spelling. */
export function mergeTrees(earlier: PropertyTree, later: PropertyTree): PropertyTree {
  if (itemsOf(later) !== undefined) return later;
  return unite(earlier, later, mergeTrees, uniform);
}

/** The child of this name in any of its spellings: `plan-updateable`, `planUpdateable`, `plan_updateable`. */
export function childOf(tree: PropertyTree | undefined, ...path: readonly string[]): PropertyTree | undefined {
  const [name, ...rest] = path;
  if (tree === undefined || name === undefined) return tree;
  const found = [...tree.children].flatMap(([key, child]) => (uniform(key) === uniform(name) ? [child] : []));
  return childOf(found.length === 0 ? undefined : found.reduce(sameDocument), ...rest);
}

/** Two spellings of one name: what is below either is below both, items of lists included. */
function sameDocument(one: PropertyTree, other: PropertyTree): PropertyTree {
  return unite(one, other, sameDocument, (name) => name);
}

function unite(
  one: PropertyTree,
  other: PropertyTree,
  both: (one: PropertyTree, other: PropertyTree) => PropertyTree,
  nameOf: (name: string) => string,
): PropertyTree {
  if (one.scalar !== undefined || other.scalar !== undefined) return other;
  const children = new Map(one.children);
  const known = new Map([...one.children.keys()].map((name) => [nameOf(name), name]));
  for (const [name, child] of other.children) {
    const before = known.get(nameOf(name)) ?? name;
    const present = children.get(before);
    children.set(before, present === undefined ? child : both(present, child));
  }
  return { ...other, children };
}

/** A name without what its spellings differ in. */
export function uniform(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}

/** In their order, or undefined if it is no list. */
export function itemsOf({ children, isList, scalar }: PropertyTree): readonly PropertyTree[] | undefined {
  if (scalar !== undefined || (children.size === 0 && !isList)) return undefined;
  const numbered = [...children].map(([name, child]) => ({ index: indexOf(name), child }));
  if (numbered.some(({ index }) => Number.isNaN(index))) return undefined;
  return numbered.sort((one, other) => one.index - other.index).map(({ child }) => child);
}

interface Node extends PropertyTree {
  scalar?: ScalarNode;
  readonly children: Map<string, Node>;
  isList: boolean;
}

function emptyNode(place: Place): Node {
  return { place, children: new Map(), isList: false };
}

function indexOf(name: string): number {
  return /^[0-9]{1,9}$/.test(name) ? Number(name) : Number.NaN;
}

/** `plans[0].name` is plans, 0, name. What is in brackets is one name, whatever is in it. */
function segments(key: string): readonly string[] {
  const found = [...key.matchAll(/\[([^\]]*)\]|[^.[]+/g)].map(([whole, inner]) => inner ?? whole);
  return found.length === 0 ? [key] : found;
}
