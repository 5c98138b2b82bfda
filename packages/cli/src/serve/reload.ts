import type { Logger } from "pino";
import { changesBetween } from "../settings/changes.js";
import { SettingsError } from "../settings/fault.js";
import type { Loaded } from "../settings/load.js";

export interface ReloadOptions {
  /** What the broker was started with. */
  readonly started: Loaded;
  /** Reads the settings anew; throws if they are not valid. */
  readonly load: () => Loaded;
  /** Applies what can be; throws, having changed nothing, if it is refused. */
  readonly apply: (loaded: Loaded) => Promise<void>;
  readonly log: Logger;
}

export interface Reloader {
  /** Reloads now, or once more after the reload that is under way. Never throws: what is refused is logged. */
  request(cause: string): Promise<void>;
  /** What the last reload has read, also if it was refused: it will be mended there. */
  readonly files: ReadonlyMap<string, string>;
}

/** Reloads one at a time. Settings are checked first; what is invalid or refused changes nothing, and the reason is logged. */
export function reloader({ started, load, apply, log }: ReloadOptions): Reloader {
  let current = started;
  let files = started.files;
  let underWay: Promise<void> | undefined;
  let again: string | undefined;

  const once = async (cause: string) => {
    try {
      const next = load();
      files = next.files;
      const { live } = changesBetween(current, next);
      const { needRestart } = changesBetween(started, next);
      if (live.length > 0) await apply(next);
      current = next;
      const told = live.length === 0 ? "nothing to change" : `changed ${few(live)}`;
      log.info(`reloaded (${cause}): ${told}`);
      if (needRestart.length > 0)
        log.warn(`only a restart changes ${few(needRestart)}; until then the old values hold`);
    } catch (error) {
      if (error instanceof SettingsError && error.files.size > 0) files = error.files;
      const reason = error instanceof Error ? error.message : String(error);
      log.error(`not reloaded (${cause}), everything stays as it was: ${reason}`);
    }
  };
  const all = async (cause: string) => {
    await once(cause);
    while (again !== undefined) {
      const next = again;
      again = undefined;
      await once(next);
    }
    underWay = undefined;
  };
  return {
    request(cause) {
      if (underWay === undefined) underWay = all(cause);
      else again = cause;
      return underWay;
    },
    get files() {
      return files;
    },
  };
}

/** A changed catalog can have hundreds of keys. */
function few(keys: readonly string[]): string {
  const most = 8;
  return keys.length <= most ? keys.join(", ") : `${keys.slice(0, most).join(", ")} and ${keys.length - most} more`;
}
