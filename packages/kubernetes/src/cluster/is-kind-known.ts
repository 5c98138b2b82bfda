import { isJsonObject } from "@osbert/protocol";
import { ClusterError } from "./cluster-error.js";
import type { ObjectKind } from "./cluster-object.js";
import { groupPath } from "./object-path.js";
import { parseAnswer } from "./read-object.js";
import type { Transport } from "./transport.js";

const mostBytes = 4_194_304;

/**
 * Whether the server lists the kind among those that it has. Throws when it says neither yes nor no. Who may not look at the list has to believe
 * that the kind is not there.
 */
export async function isKindKnown(
  transport: Transport,
  kind: ObjectKind,
  call: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const list = async (path: string, field: string) => {
    const { [field]: entries } = parseAnswer(await transport.send({ method: "GET", path, ...call }, mostBytes));
    if (!Array.isArray(entries)) throw new ClusterError("unavailable", "the answer is no list of kinds");
    return entries.filter(isJsonObject);
  };
  try {
    if (kind.group !== "") {
      const groups = await list("/apis", "groups");
      const versions = groups.find(({ name }) => name === kind.group)?.versions;
      const hasVersion =
        Array.isArray(versions) && versions.filter(isJsonObject).some(({ version }) => version === kind.version);
      if (!hasVersion) return false;
    }
    return (await list(groupPath(kind), "resources")).some(({ name }) => name === kind.plural);
  } catch (error) {
    if (error instanceof ClusterError && error.failure === "forbidden") return false;
    throw error;
  }
}
