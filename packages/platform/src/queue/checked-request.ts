import { JsonTextError, parseJsonText } from "../decisions/json-text.js";
import { PlatformError } from "../errors.js";
import { type InstanceRef, keys } from "../records/keys.js";
import { isName, nameRule } from "../records/name.js";

// What users name and say, looked at before anything is decided: whatever cannot be is refused as `invalid`.

/** The key of an instance that users name. */
export function keyOf({ space, name }: InstanceRef): string {
  if (!isName(space)) throw new PlatformError("invalid", `the name of a space ${nameRule}`);
  if (!isName(name)) throw new PlatformError("invalid", `the name of an instance ${nameRule}`);
  return keys.instance(space, name);
}

/** Nothing but the reference: whoever gives one may give more. */
export function pickRef({ space, name }: InstanceRef): InstanceRef {
  return { space, name };
}

/** In addresses of the broker and in keys: what is not plain is no id that a broker could have been given. */
export function isOsbId(id: string): boolean {
  return /^[\x21-\x2e\x30-\x7e]{1,200}$/.test(id) && !/^\.+$/.test(id);
}

export const osbIdRule = "has 1 to 200 characters of ASCII, without spaces and slashes";

/** Also before it becomes part of the id of a part. */
export function checkBindingName(name: string): void {
  if (!isName(name)) throw new PlatformError("invalid", `the name of a binding ${nameRule}`);
}

/** They are a text that is sent as it is: it has to be a JSON object, in bounds. */
export function checkParameters(text: string | undefined): void {
  if (text === undefined || isPlainObject(text)) return;
  try {
    if (parseJsonText(text).kind === "object") return;
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    throw new PlatformError("invalid", `the parameters cannot be taken: ${error.message}`);
  }
  throw new PlatformError("invalid", "parameters are a JSON object");
}

/** In less there are neither too many values nor too many levels. */
const plainLength = 200;

/** Most are short and stand as JSON is written, so that no name comes twice in them: these need not be gone through. */
function isPlainObject(text: string): boolean {
  if (text.length > plainLength || !text.startsWith("{")) return false;
  try {
    return JSON.stringify(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

/** A reason for whoever reads the journal later. */
export function shortReason(reason: string): string {
  if (reason.trim() === "") throw new PlatformError("invalid", "a reason is needed");
  if (reason.length > 500) throw new PlatformError("invalid", "a reason has at most 500 characters");
  return reason;
}
