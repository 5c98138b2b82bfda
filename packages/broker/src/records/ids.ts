import { BrokerError } from "@osbert/protocol";

const longestIdBytes = 400;
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for.
const unkeepable = /[\u0000\ud800-\udfff]/u;

/** A UUID, and most else that platforms send. */
const usual = /^[\w-]{0,100}$/;

/** Ids may hold anything that every store keeps alike; else it is a 400 that says which one does not. */
export function checkId(id: string, what: string): void {
  if (usual.test(id)) return;
  if (unkeepable.test(id))
    throw new BrokerError("bad-request", `${what} must not hold NUL or half of a surrogate pair`);
  if (Buffer.byteLength(id) > longestIdBytes)
    throw new BrokerError("bad-request", `${what} has more than ${longestIdBytes} bytes`);
}
