import { type StderrLogOptions, stderrLog } from "@osbert/server/observe";
import { bugOf } from "./bug.js";
import type { BrokerEvent, Observer } from "./event.js";
import { lineOf, mayBeLoud, varies } from "./log-to.js";

/** Lines for whoever started the broker in a terminal and set up nothing else: a step that fails must not do so in silence. */
export function brokerStderrLog(
  options: Pick<StderrLogOptions<BrokerEvent>, "level" | "write" | "now" | "clock">,
): Observer {
  return stderrLog({ ...options, lineOf, needs: mayBeLoud, bugOf, varies });
}
