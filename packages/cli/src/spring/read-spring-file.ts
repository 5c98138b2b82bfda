import { resolve } from "node:path";
import { type Fault, largestYamlBytes, mostDocuments, parseYamlDocuments, type ValueNode } from "@osbert/server/yaml";
import { SettingsError } from "../settings/settings-error.js";
import { type System, whyUnreadable } from "../settings/system.js";
import { parseProperties } from "./parse-properties.js";
import { childOf, mergeTrees, type PropertyTree, propertyTree, TooLarge } from "./property-tree.js";

export interface SpringFile {
  /** Of all documents that hold without a profile; `undefined`: there is nothing in it. */
  readonly properties: PropertyTree | undefined;
  /** What was left out. */
  readonly notes: readonly Fault[];
}

/** Reads `application.yml` or `application.properties`. Throws a SettingsError if it cannot be read. */
export function readSpringFile(file: string, system: System): SpringFile {
  const isProperties = /\.properties$/i.test(file);
  const text = readText(file, isProperties, system);
  const { documents, faults } = isProperties
    ? { documents: parseProperties(text, file), faults: [] }
    : parseYamlDocuments(text, file);
  if (faults.length > 0) throw new SettingsError(faults);
  if (documents.length > mostDocuments) throw refused(`${file} has more than ${mostDocuments} documents`);
  const trees = documents.map(treeOf);
  const isForAll = (tree: PropertyTree) => profileOf(tree) === undefined;
  const notes = trees.flatMap((tree) => {
    const profile = profileOf(tree);
    if (profile === undefined) return [];
    const message = "this document is for a profile and was left out; make a file of settings of its own for that";
    return [{ place: profile.place, key: "", message }];
  });
  const merged = trees.filter(isForAll);
  return { properties: merged.length === 0 ? undefined : merged.reduce(mergeTrees), notes };
}

function readText(file: string, isProperties: boolean, system: System): string {
  let bytes: Buffer;
  try {
    bytes = system.readFile(resolve(system.folder, file), largestYamlBytes);
  } catch (error) {
    throw refused(`${file} ${whyUnreadable(error)}`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // Java reads these as Latin-1.
    if (isProperties) return bytes.toString("latin1");
    throw refused(`${file} is not UTF-8; save it as UTF-8`);
  }
}

function refused(message: string): SettingsError {
  return new SettingsError([{ place: { kind: "default" }, key: "", message }]);
}

function treeOf(document: ValueNode): PropertyTree {
  if (document.kind !== "map")
    throw new SettingsError([{ place: document.place, key: "", message: "must be properties: lines of key: value" }]);
  try {
    return propertyTree(document);
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    throw new SettingsError([{ place: error.place, key: "", message: error.message }]);
  }
}

function profileOf(tree: PropertyTree): PropertyTree | undefined {
  return childOf(tree, "spring", "config", "activate", "on-profile") ?? childOf(tree, "spring", "profiles");
}
