import { parseBundle, parserVersion } from "../formats/parse-bundle.js";
import { fingerprint } from "../identity/service-id.js";
import { observePushed } from "../observe/observe-pushed.js";
import { observeSource } from "../observe/observe-source.js";
import { knownRefs } from "../reconcile/known-digests.js";
import { defaultRules } from "../reconcile/rules.js";
import { compileSelection } from "../selection/compile-selection.js";
import type { SourceConfig } from "../selection/source-config.js";
import { openSource, type SourcePorts } from "../sources/open-source.js";
import type { BundleSource } from "./bundle-source.js";

export interface OpenBundleSourceOptions {
  /**
   * Classic bundles of runtime 2 are offered: what runs bundles can run them, as Jobs of a cluster. Default false: they are refused when they
   * are read and when they are pushed, and those that were refused are read again by whoever can run them.
   */
  readonly runsRuntime2?: boolean;
}

/** A source for `bundleServices`, as the settings have it. Nothing is asked of it yet. */
export async function openBundleSource(
  config: SourceConfig,
  ports: SourcePorts,
  { runsRuntime2 = false }: OpenBundleSourceOptions = {},
): Promise<BundleSource> {
  const { name, previousNames, enabled, connection, intervalMs, priority, failover } = config;
  const { onUnreachable, deleteAfterFailures, autoConfirm } = config;
  const source = await openSource(connection, ports);
  const selection = compileSelection(config.selection);
  // The same on every replica with the same settings; secrets are not in it, and may be changed without a word.
  const generation = fingerprint(JSON.parse(JSON.stringify(config)));
  return {
    ...{ name, previousNames, enabled, source, generation, intervalMs, priority, failover, runsRuntime2 },
    listing: connection.kind !== "push",
    rules: {
      ...defaultRules,
      ...{ onUnreachable, deleteAfterFailures },
      guard: { ...defaultRules.guard, autoConfirm },
      identity: { ...defaultRules.identity, scheme: config.identity },
    },
    observe: (stored, { id, signal, onProgress }) => {
      const known = knownRefs(stored, { parserVersion, runsRuntime2 });
      const reading = { id, generation, known, parserVersion, runsRuntime2, signal, parse: parseBundle };
      return connection.kind === "push"
        ? observePushed({ ...reading, pushed: ports.pushed })
        : observeSource({ ...reading, source, selection, onProgress });
    },
  };
}
