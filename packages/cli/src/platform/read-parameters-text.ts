import { type ParameterSource, readParameters } from "../client/parameters.js";
import { JsonText, type PlatformSession } from "./platform-session.js";

/**
 * The parameters of a command as they go to the platform. A single document goes as it was written, numbers beyond 2^53 too; several are
 * put together. `undefined`: there are none.
 */
export async function readParametersText(
  session: PlatformSession,
  sources: readonly ParameterSource[] = [],
): Promise<JsonText | undefined> {
  const [first, ...others] = sources;
  if (first === undefined) return undefined;
  // Standard input can be read once.
  const texts = new Map<string, Promise<string>>();
  const read = (file: string) => {
    const text = texts.get(file) ?? session.read(file);
    texts.set(file, text);
    return text;
  };
  const parameters = await readParameters(sources, read);
  if (first.kind === "pair" || others.length > 0) return new JsonText(JSON.stringify(parameters));
  return new JsonText(first.text.startsWith("@") ? await read(first.text.slice(1)) : first.text);
}
