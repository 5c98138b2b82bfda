/** How far a rotation is. */
export interface RotationCounts {
  readonly walk: number;
  readonly resources: number;
  readonly texts: number;
}

/** What came of one. */
export interface RotationResult {
  readonly resources: number;
  readonly texts: number;
  readonly left: number;
  readonly leftPlain: number;
  readonly unused: readonly string[];
}

export function formatRotationProgress({ walk, resources, texts }: RotationCounts): string {
  return `walk ${walk}: ${resources} resources seen, ${texts} texts encrypted anew`;
}

export function formatRotationResult(
  { resources, texts, left, leftPlain, unused }: RotationResult,
  address: string,
): string {
  const lines = [`${texts} texts of ${resources} resources in ${address} were encrypted anew`];
  if (left > 0) {
    const plain = leftPlain > 0 ? `, ${leftPlain} of them not encrypted at all` : "";
    lines.push(
      `${left} are not under the first key${plain}: they cannot be read, or a broker still writes under another`,
    );
  }
  if (unused.length > 0) {
    const ids = unused.join(", ");
    lines.push(`nothing is under ${ids} any more: once no broker has it as its first key, it may be taken out`);
  }
  return lines.join("\n");
}
