export type { Chaos } from "./chaos.js";
export type { KeptBinding, KeptInstance, KeptState } from "./kept-services.js";
export {
  type MisbehavingBroker,
  type MisbehavingOptions,
  type MisbehavingState,
  type SeenRequest,
  startMisbehaving,
} from "./misbehaving-broker.js";
export { type MisbehavingCatalog, misbehavingCatalogs } from "./misbehaving-catalogs.js";
export {
  calls,
  type MisbehavingCall,
  type Misbehaviour,
  MisbehaviourError,
  type SlowOperation,
} from "./misbehaviour.js";
export { type MisbehaviourName, type NamedMisbehaviour, namedMisbehaviours } from "./named-misbehaviours.js";
export { parseRules, type Rule, type Script, type Step } from "./script.js";
