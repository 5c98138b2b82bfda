// What a bundle's author does with a folder, in the order of the work. `osbert bundle` is made of it.
export { AuthorError } from "./author-error.js";
export { type BuiltBundle, buildBundle, folderArchive } from "./build-bundle.js";
export { type BundleFolder, type FolderLint, lintFolder, openBundleFolder } from "./bundle-folder.js";
export { lintBundle } from "./lint-bundle.js";
export { type LocalRequest, localInput, planNamed } from "./local-input.js";
export { isBundleName, type Language, languages, type NewFile, newBundle } from "./new-bundle.js";
export { ociArchive, ociLayout } from "./oci-layout.js";
export { type PushOptions, type PushTarget, parsePushTarget, pushBundle } from "./push-bundle.js";
export { type ArchivedBundle, readOciArchive } from "./read-oci-archive.js";
export { type ActionReport, describeEnd, type LifeCycle, testBundle } from "./test-bundle.js";
export {
  type TriedAction,
  type TryAction,
  type TryOptions,
  type TryRunner,
  withLocalActions,
} from "./try-action.js";
