import { type AnswerClass, type Catalog, checkCatalog, classify } from "@osbert/protocol";
import { BrokerAnswerError, type Client, receivedOf } from "@osbert/protocol/client";

/** What came of reading a broker's catalog once. */
export type CatalogReading =
  | { readonly kind: "same"; readonly retryAfterMs: number | null }
  | {
      readonly kind: "read";
      readonly catalog: Catalog;
      readonly etag: string | null;
      readonly retryAfterMs: number | null;
    }
  /** The broker answered, and what it said cannot be taken. */
  | { readonly kind: "faulty"; readonly fault: string; readonly retryAfterMs: number | null }
  /** It did not answer, or does not let the platform in. */
  | {
      readonly kind: "failed";
      readonly answer: AnswerClass;
      readonly fault: string;
      readonly retryAfterMs: number | null;
    };

const longestEtag = 1_024;
const toldFindings = 5;
const longestFault = 2_000;

/** No identity: nobody's action is behind it (P-ID-03). */
export async function readCatalog(
  client: Client,
  {
    etag,
    requestId,
    signal,
  }: { readonly etag: string | null; readonly requestId: string; readonly signal: AbortSignal },
): Promise<CatalogReading> {
  try {
    const answer = await client.catalog({ requestId, signal, ...(etag !== null && { etag }) });
    const retryAfterMs = answer.retryAfterMs ?? null;
    // Else a broker of which nothing is known would count as read.
    if (answer.catalog === "unchanged" && etag === null)
      return {
        kind: "faulty",
        fault: "the broker answered 304, although it was not told what is known",
        retryAfterMs,
      };
    if (answer.catalog === "unchanged") return { kind: "same", retryAfterMs };
    const fault = faultOf(answer.catalog);
    if (fault !== null) return { kind: "faulty", fault, retryAfterMs };
    const tag = answer.etag !== undefined && answer.etag.length <= longestEtag ? answer.etag : null;
    return { kind: "read", catalog: answer.catalog, etag: tag, retryAfterMs };
  } catch (error) {
    if (!(error instanceof BrokerAnswerError)) throw error;
    // The reading was called off because the operation must stop: that says nothing of the broker.
    signal.throwIfAborted();
    const { class: answer } = classify("catalog", receivedOf(error));
    const retryAfterMs = error.retryAfterMs ?? null;
    const fault = error.message.slice(0, longestFault);
    const isSilent = answer === "not sent" || answer === "unknown" || answer === "unauthorized";
    return isSilent ? { kind: "failed", answer, fault, retryAfterMs } : { kind: "faulty", fault, retryAfterMs };
  }
}

/** By the specification's rules; `null`: there is nothing that it forbids. */
function faultOf(catalog: unknown): string | null {
  const errors = findingsIn(catalog);
  if (errors.length === 0) return null;
  const more = errors.length > toldFindings ? `, and ${errors.length - toldFindings} more` : "";
  const told = errors.slice(0, toldFindings).map((text) => text.slice(0, 300));
  return `the catalog is not as specified: ${told.join("; ")}${more}`.slice(0, longestFault);
}

function findingsIn(catalog: unknown): readonly string[] {
  try {
    const errors = checkCatalog(catalog).filter(({ level }) => level === "error");
    return errors.map(({ path, message }) => `${path} ${message}`);
  } catch {
    // What is nested too deep for the rules is too deep for everyone.
    return ["it is nested too deep"];
  }
}
