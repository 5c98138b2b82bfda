export { type ChaosSuiteOptions, chaosSuite } from "./chaos-suite.js";
export type { Run } from "./checks/evidence.js";
export { type Violation, violations } from "./checks/violation.js";
export { violationsOf } from "./checks/violations-of.js";
export type { StoreAddress, StoreModule } from "./child-config.js";
export type { CrashResult } from "./crash-result.js";
export { type CrashSuiteOptions, crashSuite } from "./crash-suite.js";
export { pointTable, report } from "./report.js";
export { type SeveralProcessesOptions, severalProcesses } from "./several-processes.js";
export {
  type StoreFile,
  type StoreServer,
  type TemporaryStore,
  temporaryMysql,
  temporaryPostgres,
  temporarySqlite,
} from "./store-addresses.js";
export type { TakeOver } from "./take-over.js";
