import type { Logger } from "pino";
import type { Changes } from "../settings/changes.js";
import type { LoadedSettings } from "../settings/read-settings-file.js";
import { SettingsError } from "../settings/settings-error.js";

export interface ReloadOptions<Values> {
  /** What the server was started with. */
  readonly started: LoadedSettings<Values>;
  /** Reads the settings anew; throws if they are not valid. */
  readonly load: () => LoadedSettings<Values>;
  /** What another reading would change. */
  readonly changes: (before: LoadedSettings<Values>, after: LoadedSettings<Values>) => Changes;
  /** Applies what can be; throws, having changed nothing, if it is refused. */
  readonly apply: (loaded: LoadedSettings<Values>) => Promise<void>;
  readonly log: Logger;
}

export interface Reloader {
  /** Reloads now, or once more after the reload that is under way. Never throws: what is refused is logged. */
  request(cause: string): Promise<void>;
  /** What the last reload has read, also if it was refused: it will be mended there. */
  readonly files: ReadonlyMap<string, string>;
}

/** Reloads one at a time. Settings are checked first; what is invalid or refused changes nothing, and the reason is logged. */
export function reloader<Values>({ started, load, changes, apply, log }: ReloadOptions<Values>): Reloader {
  let current = started;
  let files = started.files;
  let underWay: Promise<void> | undefined;
  let again: string | undefined;

  const once = async (cause: string) => {
    try {
      const next = load();
      files = next.files;
      const { needRestart } = changes(started, next);
      const live = changes(current, next).live.filter((key) => !needRestart.includes(key));
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
