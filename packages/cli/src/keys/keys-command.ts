import { newKey } from "@osbert/journal/encryption";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { operatorGroup } from "../operator-group.js";
import { chooseStore, storeTrouble } from "../serve/open-store.js";
import { loadSettings, usualFile } from "../settings/load.js";
import { realSystem } from "../settings/system.js";
import { reportErrors, UserError } from "../user-error.js";
import { formatRotationProgress, formatRotationResult, type RotationCounts } from "./format-rotation.js";

/** `osbert keys`: the keys that encrypt what is in the store. */
export function registerKeys(program: Command): void {
  const keys = program
    .command("keys")
    .helpGroup(operatorGroup)
    .summary("make keys for the store, and encrypt it anew")
    .description(
      "Keys that encrypt credentials, parameters, state and results of steps in the store (the setting `keys`).",
    );
  const made = keys
    .command("new")
    .summary("make a key")
    .description("Prints a new key as a line for the setting `keys`. Put it into a file that only the broker may read.")
    .argument("[id]", "its id, by which texts tell which key they need (default: a random one)")
    .action((id: string | undefined) => reportErrors(async () => void process.stdout.write(`${makeKey(id)}\n`)));
  withExamples(made, [{ does: "a first key", command: "(umask 077; osbert keys new > keys.txt)" }]);
  const rotate = keys
    .command("rotate")
    .summary("encrypt everything under the first key")
    .description(
      "Encrypts everything in the store that is not yet under the first key of the setting `keys`, while brokers work on it. It can be stopped and run again. A SQLite store belongs to its broker: while that runs, ask it with `osbert admin rotate-keys`.",
    )
    .argument("[file]", `the settings (default: ${usualFile}, if it is there)`)
    .action((file: string | undefined) => reportErrors(() => rotateKeys(file)));
  withExamples(rotate, [
    { does: "after a new key was put first, and all brokers were given it", command: "osbert keys rotate" },
  ]);
}

function makeKey(id: string | undefined): string {
  try {
    return newKey(id);
  } catch (error) {
    throw new UserError(error instanceof Error ? error.message : String(error));
  }
}

async function rotateKeys(file: string | undefined): Promise<void> {
  const { settings } = loadSettings(file, realSystem());
  const { encrypted, address, release } = await chooseStore(settings, { migrate: settings.database.migrate });
  if (encrypted === null)
    throw new UserError("no keys are set; write keys: { file: path }, with a key from `osbert keys new`");
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    await encrypted.open();
    const onProgress = (progress: RotationCounts) => void process.stderr.write(`${formatRotationProgress(progress)}\n`);
    const rotation = await encrypted.rotate({ onProgress, signal: stopping.signal });
    await encrypted.close();
    if (stopping.signal.aborted) throw new UserError("stopped before the end; run it again to go on");
    process.stdout.write(`${formatRotationResult(rotation, address)}\n`);
    if (rotation.left > 0) process.exitCode = 1;
  } catch (error) {
    throw storeTrouble(error, address);
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
    await release();
  }
}
