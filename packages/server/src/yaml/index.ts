export { byPlace, type Fault, faultLine } from "./fault.js";
export {
  largestYamlBytes,
  mostDocuments,
  type Parsed,
  type ParsedDocuments,
  parseYaml,
  parseYamlDocuments,
  type YamlLimits,
} from "./parse-yaml.js";
export { mask, Secret } from "./secret.js";
export { didYouMean, suggest } from "./suggest.js";
export {
  type ListNode,
  type MapNode,
  type Place,
  placeName,
  type ScalarNode,
  toValueNode,
  type ValueNode,
} from "./value-node.js";
