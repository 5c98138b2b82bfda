/** The options that say which broker is meant, and for whom. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly platform?: string;
  readonly credentialsFile?: string;
  readonly ca?: string;
}

/** The same options once more, for a command line that is printed for people to run next. */
export function connectionOf(options: ConnectionOptions): string[] {
  const given = {
    "--url": options.url,
    "--platform": options.platform,
    "--credentials-file": options.credentialsFile,
    "--ca": options.ca,
  };
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
}
