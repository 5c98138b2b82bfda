export { type EncryptedStore, type EncryptionOptions, encryptedStore } from "./encrypted-store.js";
export { type KeyRing, newKey, parseKeyRing } from "./key-ring.js";
export type { Rotation, RotationOptions, RotationProgress } from "./rotation.js";
