/**
 * What the client needs of a `fetch`. The built-in one has it, and so has one that makes no more of an answer than that, such as `brokerFetch`
 * of `@osbert/protocol/node`.
 */
export type ClientFetch = (url: string, request: ClientRequest) => Promise<ClientResponse>;

export interface ClientRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** A redirect would take the credentials along to who knows where. */
  readonly redirect: "manual";
  readonly signal: AbortSignal;
}

export interface ClientResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  /** `null`: there is none. */
  readonly body: { getReader(): BodyReader } | null;
}

export interface BodyReader {
  read(): Promise<
    | { readonly done: false; readonly value: Uint8Array }
    | { readonly done: true; readonly value?: Uint8Array | undefined }
  >;
  /** The rest is not wanted. */
  cancel(): Promise<void>;
}
