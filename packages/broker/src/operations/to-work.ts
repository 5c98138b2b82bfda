import type { Look, PollOptions, ReturnsJson, Step, StepOptions } from "@osbert/journal";
import { noting } from "../observe/failed-step.js";
import type { InstanceOperation } from "../records/instance-resource.js";
import type { Work } from "../service/service.js";

/**
 * The work as an author sees it: the journal's operation, less what is the broker's business. `prefix` keeps the names of steps
 * apart where one operation runs several functions.
 */
export function toWork(operation: InstanceOperation, save: (state: object) => Promise<void>, prefix = ""): Work {
  return {
    id: operation.id,
    attempt: operation.attempt,
    // Made when it is asked for.
    get signal() {
      return operation.signal;
    },
    requestId: operation.requestId,
    step: <T>(name: string, work: ((step: Step) => Promise<T> | T) & ReturnsJson<T>, options?: StepOptions) =>
      operation.step<T>(prefix + name, noting(name, work) as typeof work, options),
    sleep: (name, ms) => operation.sleep(prefix + name, ms),
    poll: <T>(
      name: string,
      look: ((look: Look) => Promise<T | undefined> | T | undefined) & ReturnsJson<T>,
      options: PollOptions,
    ) => operation.poll<T>(prefix + name, noting(name, look) as typeof look, options),
    describe: (description) => operation.describe(description),
    saveState: (state) => operation.awaited("saving the state", "operation.saveState(…)", save(state)),
  };
}
