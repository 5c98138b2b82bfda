/** Which kind of resource describes an application: Kyma's, or the small one of Osbert's own. */
export type ApplicationKind = "kyma" | "osbert";

/** An application outside of the cluster, connected to it: what it offers, read from whichever kind of resource describes it. */
export interface Application {
  /** Of the resource; cluster-wide. */
  readonly name: string;
  readonly uid: string;
  readonly kind: ApplicationKind;
  readonly displayName: string;
  readonly provider: string;
  readonly description: string;
  readonly longDescription: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  /** The id that another system gave it (Compass), which is its service's id where services are made of applications. */
  readonly externalId: string | null;
  readonly services: readonly ApplicationService[];
}

/** Something that an application offers: APIs, events, or both. */
export interface ApplicationService {
  /** Of the application's own making; unique in the cluster, or it is a finding. */
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  /** `null`: as the application says. */
  readonly provider: string | null;
  readonly longDescription: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  /** It sends events. */
  readonly events: boolean;
  readonly apis: readonly ApiEntry[];
  /** Whether an instance is there only when its events flow (`required`), or as soon as all that it takes was accepted. Missing: as it is configured. */
  readonly readiness?: "required" | "eventual";
  /** What a user has to give when an instance is made: a JSON Schema. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
}

export interface ApiEntry {
  readonly id: string;
  readonly name: string;
  readonly targetUrl: string | null;
  /** Where the cluster's gateway to it is. */
  readonly gatewayUrl: string | null;
  /** The label that opens the gateway to a pod, in clusters of long ago. */
  readonly accessLabel: string | null;
  /** Where what it wants of callers is kept. `null`: it asks for nothing. */
  readonly credentials: {
    readonly type: CredentialsType;
    readonly secret: SecretPlace;
    /** Where tokens are had (OAuth). */
    readonly tokenUrl: string | null;
    /** Where a token against forged requests is had. */
    readonly csrfTokenUrl: string | null;
  } | null;
  /** Where headers and parameters are kept that every request has to carry. */
  readonly requestParameters: SecretPlace | null;
}

export const credentialsTypes = ["basic", "oauth", "certificate"] as const;
export type CredentialsType = (typeof credentialsTypes)[number];

export interface SecretPlace {
  readonly namespace: string;
  readonly name: string;
}
