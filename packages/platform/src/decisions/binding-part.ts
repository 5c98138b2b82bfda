export type BindingPart = `binding/${string}`;

/** The part of a binding that an operation is about. */
export function bindingPart(part: string | null): BindingPart | undefined {
  return part?.startsWith("binding/") ? (part as BindingPart) : undefined;
}

export function partOfBinding(name: string): BindingPart {
  return `binding/${name}`;
}

export function nameOfBinding(part: BindingPart): string {
  return part.slice("binding/".length);
}
