import { type Fault, faultLine } from "@osbert/server/yaml";

/** All that is wrong with the settings, at once. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly faults: readonly Fault[];
  /** The files that were read until then, with a digest of each: a change of one may mend it. */
  readonly files: ReadonlyMap<string, string>;

  constructor(faults: readonly Fault[], files: ReadonlyMap<string, string> = new Map()) {
    super(faults.map(faultLine).join("\n"));
    this.faults = faults;
    this.files = files;
  }
}
