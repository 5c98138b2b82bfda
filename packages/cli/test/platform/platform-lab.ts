import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "@osbert/journal/memory";
import { type OpenedPlatform, openPlatform, type PlatformOptions } from "@osbert/platform";
import { callersOf, servePlatform } from "@osbert/platform/api";
import { type MisbehavingBroker, type MisbehavingOptions, startMisbehaving } from "@osbert/platform/testing";
import { onTestFinished } from "vitest";
import { registerPlatformCommands } from "../../src/platform/register-platform-commands.js";
import { commandOf, type Ran } from "../admin/admin-run.js";

/** A real platform with a real broker behind it, and the commands as root (who operates) or as anna (who may change what is in "team"). */
export interface PlatformLab {
  readonly broker: MisbehavingBroker;
  /** What the commands talk to, for whatever somebody else does meanwhile. */
  readonly platform: OpenedPlatform;
  readonly url: string;
  /** A folder of its own, for files and targets. */
  readonly folder: string;
  readonly root: (...args: readonly string[]) => Promise<Ran>;
  readonly anna: (...args: readonly string[]) => Promise<Ran>;
  readonly run: (args: readonly string[], env: Readonly<Record<string, string>>) => Promise<Ran>;
}

export async function platformLab(
  options: Partial<MisbehavingOptions> = {},
  platformOptions: Partial<PlatformOptions> = {},
): Promise<PlatformLab> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-platform-cli-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const credentials = { username: "platform", password: "secret-of-the-broker" };
  const broker = await startMisbehaving({ credentials, ...options });
  onTestFinished(() => broker.stop());
  const platform = await openPlatform({ store: memoryStore(), ...platformOptions });
  const served = await servePlatform(platform, {
    port: 0,
    callers: callersOf([
      { credential: { username: "root", password: "secret-of-root" }, access: { role: "operate" } },
      { credential: { username: "anna", password: "secret-of-anna" }, access: { role: "change", spaces: ["team"] } },
    ]),
  });
  onTestFinished(() => served.close());
  const run = (args: readonly string[], env: Readonly<Record<string, string>>) =>
    commandOf(registerPlatformCommands, ["platform", ...args], { OSBERT_CONFIG_HOME: join(folder, "config"), ...env });
  const as =
    (name: string) =>
    (...args: readonly string[]) =>
      run(args, {
        OSBERT_PLATFORM_URL: served.url,
        OSBERT_PLATFORM_LOGIN: `${name}:secret-of-${name}`,
        OSBERT_PLATFORM_SPACE: "team",
        OSBERT_LOGIN: "platform:secret-of-the-broker",
      });
  return { broker, platform, url: served.url, folder, root: as("root"), anna: as("anna"), run };
}
