import "vitest";

declare module "vitest" {
  /** What a test gets with `inject(…)`. `null` means that the server was left out of this run. */
  export interface ProvidedContext {
    readonly postgresUrl: string | null;
    readonly mysqlUrl: string | null;
    /** Where `sharedCluster` of tools/cluster asks. */
    readonly clusterUrl: string | null;
  }
}
