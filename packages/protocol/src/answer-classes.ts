/**
 * What a platform asked for. Not last_operation: what its answer means hangs on the state in it and on what is polled, and most errors are
 * just asked again. `waitForInstance` and `waitForBinding` of the client know it.
 */
export type Call = "provision" | "update" | "deprovision" | "bind" | "unbind" | "fetch" | "catalog";

/**
 * What came back:
 * - an answer. `wellFormed`: its body is what the specification says it is. `error` is the field of that name; a description tells nothing
 * - `not sent`: not a byte of the request went out
 * - `lost`: it may have arrived, and no answer came back that could be read: a time-out, a connection that broke, a body too large
 */
export type Received =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly wellFormed: boolean;
      readonly error?: string | undefined;
      readonly retryAfterMs?: number | undefined;
    }
  | { readonly kind: "not sent" }
  | { readonly kind: "lost" };

/**
 * What a platform does next:
 * - `succeed`, `fail`: it is over. A failed create left nothing behind, unless an orphan is named
 * - `poll`: the broker goes on with it; last_operation tells how far it is
 * - `keep`: the broker refuses to delete; the resource is as it was before
 * - `wait`: the broker is busy; the same request later, which does not count as another attempt
 * - `send again`: the same request later, which does
 * - `refresh catalog`: the platform's catalog is out of date; once it is read again, the request may be right
 * - `replace credentials`: no request to this broker can succeed until an operator has done so
 * - `resolve`: find out what became of it (fetch, last_operation, the same request again), then go on or undo it
 * - `fetch`: it counts as failed, but what exists can be seen where instances and bindings can be fetched
 * - `delete again`: done only if a second delete is answered with 410
 */
export type NextStep =
  | "succeed"
  | "fail"
  | "poll"
  | "keep"
  | "wait"
  | "send again"
  | "refresh catalog"
  | "replace credentials"
  | "resolve"
  | "fetch"
  | "delete again";

interface Row {
  /** Which answers these are. */
  readonly meaning: string;
  /** Of a provision or bind, an update, a deprovision or unbind, and of what only reads. */
  readonly create: NextStep;
  readonly update: NextStep;
  readonly remove: NextStep;
  readonly read: NextStep;
}

/** Every way in which a platform takes what came back, whatever it asked for. The table is closed. */
export const answerClasses = {
  done: {
    meaning: "200 with a body as specified, 201 with one unless to a delete, 410 to a delete, 304 to the catalog",
    create: "succeed",
    update: "succeed",
    remove: "succeed",
    read: "succeed",
  },
  running: {
    meaning: "202 with a body as specified",
    create: "poll",
    update: "poll",
    remove: "poll",
    // Nothing that reads is answered so.
    read: "send again",
  },
  rejected: {
    meaning: "any 4xx that is not named below: the broker has not done it, and would not the next time",
    create: "fail",
    update: "fail",
    remove: "keep",
    read: "fail",
  },
  conflict: {
    meaning: "409: the id belongs to something that exists, which must not be deleted because of this",
    create: "fail",
    update: "fail",
    remove: "send again",
    read: "fail",
  },
  "not found": {
    meaning: "404 to a delete, where 410 is specified",
    create: "fail",
    update: "fail",
    remove: "delete again",
    read: "fail",
  },
  busy: {
    meaning: "422 ConcurrencyError, 408, 423, 429, and 503 with Retry-After",
    create: "wait",
    update: "wait",
    remove: "wait",
    read: "wait",
  },
  "needs refresh": {
    meaning: "422 MaintenanceInfoConflict to a provision or update",
    create: "refresh catalog",
    update: "refresh catalog",
    remove: "keep",
    read: "fail",
  },
  "needs async": {
    meaning:
      "422 AsyncRequired: the platform must send accepts_incomplete=true; if it has, this is a fault of the broker",
    create: "fail",
    update: "fail",
    remove: "keep",
    read: "fail",
  },
  "needs app": {
    meaning: "422 RequiresApp to a bind: it must be asked for with an application",
    create: "fail",
    update: "fail",
    remove: "keep",
    read: "fail",
  },
  unauthorized: {
    meaning: "401: a matter between platform and broker, not a failure of the user's",
    create: "replace credentials",
    update: "replace credentials",
    remove: "replace credentials",
    read: "replace credentials",
  },
  "not sent": {
    meaning: "no address, nobody who listens, no secure connection: the broker knows nothing of the request",
    create: "send again",
    update: "send again",
    remove: "send again",
    read: "send again",
  },
  unknown: {
    meaning:
      "no answer after bytes were sent, 5xx, 3xx, any other 2xx, 201 to a delete, 201 or 202 with a body that is not as specified",
    create: "resolve",
    update: "resolve",
    remove: "resolve",
    read: "send again",
  },
  "malformed 200": {
    meaning: "200 with a body that is not as specified",
    create: "fetch",
    update: "fail",
    remove: "delete again",
    read: "send again",
  },
} as const satisfies Readonly<Record<string, Row>>;

export type AnswerClass = keyof typeof answerClasses;

/** How a platform takes what came back. */
export interface ClassifiedAnswer {
  readonly class: AnswerClass;
  readonly next: NextStep;
  /**
   * What may exist at the broker although nobody was told so, and must be deleted unless the platform goes on with it: the specification's
   * table of orphan mitigation (P-ORPH-03 to P-ORPH-18).
   */
  readonly orphan: "instance" | "binding" | null;
}

/**
 * The class of what came back, and what follows from it. `lostBefore`: an earlier attempt of the same request is lost, so that a broker
 * which is busy with this resource may be busy with that attempt, and is polled. It may be busy with something else: of a delete or an update,
 * what polls tell then proves nothing, and the same request tells once more.
 */
export function classify(call: Call, received: Received, { lostBefore = false } = {}): ClassifiedAnswer {
  const found = classOf(call, received);
  const own = lostBefore && found === "busy" && received.kind === "answer" && received.error === "ConcurrencyError";
  const column = columnOf(call);
  return {
    class: found,
    next: own && column !== "read" ? "poll" : answerClasses[found][column],
    orphan: orphanOf(call, received),
  };
}

function classOf(call: Call, received: Received): AnswerClass {
  if (received.kind === "not sent") return "not sent";
  if (received.kind === "lost") return "unknown";
  const { status, wellFormed, retryAfterMs } = received;
  const column = columnOf(call);
  if (status === 200) return wellFormed ? "done" : "malformed 200";
  // A delete creates nothing: whoever answers it so has not understood it.
  if (status === 201 && column !== "read") return wellFormed && column !== "remove" ? "done" : "unknown";
  if (status === 202 && column !== "read") return wellFormed ? "running" : "unknown";
  if (status === 304 && call === "catalog") return "done";
  if (status === 503 && retryAfterMs !== undefined) return "busy";
  if (status < 400 || status >= 500) return "unknown";
  if (status === 410 && column === "remove") return "done";
  if (status === 404 && column === "remove") return "not found";
  if (status === 422) return classOfError(call, received.error);
  return classOfStatus[status] ?? "rejected";
}

const classOfStatus: Readonly<Record<number, AnswerClass>> = {
  401: "unauthorized",
  408: "busy",
  409: "conflict",
  423: "busy",
  429: "busy",
};

/** The codes of the specification. Where one does not belong to the request, the broker has just said no. */
function classOfError(call: Call, error: string | undefined): AnswerClass {
  // Also to a fetch, while what it asks for is being changed (FETCH-05).
  if (error === "ConcurrencyError") return "busy";
  if (columnOf(call) === "read") return "rejected";
  if (error === "AsyncRequired") return "needs async";
  if (error === "RequiresApp" && call === "bind") return "needs app";
  if (error === "MaintenanceInfoConflict" && (call === "provision" || call === "update")) return "needs refresh";
  return "rejected";
}

function orphanOf(call: Call, received: Received): ClassifiedAnswer["orphan"] {
  const created = columnOf(call) === "create" ? ownerOf(call) : null;
  if (received.kind === "not sent") return null;
  if (received.kind === "lost") return created;
  const { status, wellFormed } = received;
  if (status === 200 || (status >= 400 && status < 500)) return null;
  if (status === 201 || status === 202) return wellFormed ? null : created;
  return ownerOf(call);
}

/** What has to be mitigated when an operation that was answered with 202 has failed (P-ORPH-05, P-ORPH-06). */
export function orphanOfFailedOperation(call: Call): "instance" | "binding" | null {
  return ownerOf(call);
}

function columnOf(call: Call): "create" | "update" | "remove" | "read" {
  switch (call) {
    case "provision":
    case "bind":
      return "create";
    case "update":
      return "update";
    case "deprovision":
    case "unbind":
      return "remove";
    case "fetch":
    case "catalog":
      return "read";
  }
}

function ownerOf(call: Call): "instance" | "binding" | null {
  if (call === "provision" || call === "deprovision") return "instance";
  return call === "bind" || call === "unbind" ? "binding" : null;
}
