import { CommandError } from "../client/exit-status.js";

/** A server-sent event. */
export interface ServerEvent {
  readonly id: string;
  readonly data: string;
}

/** Larger ones are nobody's line. */
const longestEvent = 4 * 1024 * 1024;

/** The events in a stream of bytes, as they come. Comments are left out. */
export async function* readEvents(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    const events = text.split(/\r?\n\r?\n/);
    text = events.pop() ?? "";
    if (text.length > longestEvent) throw new CommandError("failed", "an event is too large");
    for (const event of events) {
      const data = fieldOf(event, "data");
      if (data !== "") yield { id: fieldOf(event, "id"), data };
    }
  }
}

function fieldOf(event: string, name: string): string {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith(`${name}:`));
  return lines.map((line) => line.slice(name.length + 1).replace(/^ /, "")).join("\n");
}
