import { defaultFlowSettings, type FlowSettings } from "@osbert/kubernetes/settings";
import type { Settings } from "./table.js";

/** How flows are wired, as the settings say. */
export function flowSettings(events: Settings["events"]): FlowSettings {
  const { integrationNamespace, channelLabel, channelKind, brokerName, brokerClass, deleteBroker } = events;
  const { brokerSpec = {}, policies, deliverers, systemNamespace, mirror, readiness } = events;
  return {
    ...defaultFlowSettings,
    ...{ integrationNamespace, channelLabel, brokerName, brokerClass, brokerSpec, deleteBroker },
    ...{ policies, deliverers, systemNamespace, mirror, readiness },
    channelKind: { ...channelKind, namespaced: true },
    lingerMs: events.linger,
    softDeadlineMs: events.softDeadline,
    debounceMs: events.debounce,
    hysteresisMs: events.hysteresis,
    resyncMs: events.resync,
  };
}
