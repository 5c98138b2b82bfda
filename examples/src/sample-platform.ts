import { join } from "node:path";
import type { Served } from "@osbert/broker/http";
import { sqliteStore } from "@osbert/journal/sqlite";
import { openPlatform } from "@osbert/platform";
import { callersOf, type ServedPlatform, servePlatform } from "@osbert/platform/api";

/** What it calls the broker. */
const name = "sample";

export interface SamplePlatformOptions {
  /** Where its journal is. */
  readonly folder: string;
  readonly port: number;
  /** Of the broker; who may come in there may do everything here. */
  readonly credential: { readonly username: string; readonly password: string };
  readonly broker: Pick<Served, "url">;
}

/** A platform that has a broker registered: where that is now, and with the credential that it has now. */
export async function samplePlatform(options: SamplePlatformOptions): Promise<ServedPlatform> {
  const { folder, port, credential, broker } = options;
  const platform = await openPlatform({ store: sqliteStore(join(folder, "platform.db")) });
  const served = await servePlatform(platform, {
    port,
    callers: callersOf([{ credential, access: { role: "operate" } }]),
  });
  const asking = { by: { actor: { type: "operator", subject: credential.username } } } as const;
  const wanted = { url: broker.url, authentication: { kind: "basic", ...credential } } as const;
  try {
    // A second start may have the broker on another port, and a new credential for it.
    const known = await platform.brokers.read(name);
    if (known === undefined) await platform.brokers.register(name, wanted, asking);
    else await platform.brokers.change(name, wanted, asking);
  } catch (error) {
    await served.close();
    throw error;
  }
  return served;
}
