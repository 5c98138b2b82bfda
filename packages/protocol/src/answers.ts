/** What a platform asked for. */
export type Call = "provision" | "update" | "deprovision" | "bind" | "unbind" | "last_operation" | "fetch" | "catalog";

/** What came back: an answer, or none within the time. `wellFormed`: its body is what the specification says it is. */
export type Received =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly wellFormed: boolean;
      readonly operationFailed?: boolean;
    }
  | { readonly kind: "timeout" };

/** How a platform must take an answer, and whether it has to clean up after it (P-ORPH-03 to P-ORPH-18). */
export interface AnswerClass {
  readonly result: "success" | "failure" | "rejected";
  /** What may exist at the broker without the platform knowing, and must be deleted. */
  readonly orphan: "instance" | "binding" | null;
}

/** The orphan-mitigation table of the specification. */
export function classify(call: Call, received: Received): AnswerClass {
  const owner = ownerOf(call);
  if (received.kind === "timeout") return { result: "failure", orphan: creates(call) ? owner : null };
  const { status, wellFormed, operationFailed } = received;
  if (call === "last_operation" || call === "fetch" || call === "catalog") {
    return { result: status === 200 && wellFormed && !operationFailed ? "success" : "failure", orphan: null };
  }
  if (status === 200) return { result: wellFormed ? "success" : "failure", orphan: null };
  if (status === 201 || status === 202) {
    return wellFormed
      ? { result: "success", orphan: null }
      : { result: "failure", orphan: creates(call) ? owner : null };
  }
  if (status >= 200 && status < 300) return { result: "failure", orphan: owner };
  if (status === 410 && !creates(call) && call !== "update") return { result: "success", orphan: null };
  if (status >= 400 && status < 500) return { result: status === 408 ? "failure" : "rejected", orphan: null };
  return { result: "failure", orphan: owner };
}

/** What has to be mitigated when an operation that was answered with 202 has failed (P-ORPH-05, P-ORPH-06). */
export function orphanOfFailedOperation(call: Call): "instance" | "binding" | null {
  return ownerOf(call);
}

function creates(call: Call): boolean {
  return call === "provision" || call === "bind";
}

function ownerOf(call: Call): "instance" | "binding" | null {
  if (call === "provision" || call === "deprovision") return "instance";
  return call === "bind" || call === "unbind" ? "binding" : null;
}
