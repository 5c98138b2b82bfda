import { checkSchema, compileSchema, type Validate } from "./compile-schema.js";
import type { Schema } from "./schema.js";
import { TooMuchWork } from "./work-meter.js";

/**
 * A check that never throws: what cannot be told in bounded time is refused, with a sentence as for all that is wrong, unless it is asked to take that.
 */
export type ValidateOrRefuse = (value: unknown, ifTooMuch?: "refuse" | "take") => string | null;

/**
 * Compiles a schema as `compileSchema` does. One that would take too much work is compiled once, too: to what refuses everything, with the reason. What was
 * made under an earlier version, which took that schema, can go on for as long as nobody brings parameters. Told of at `tooMuch`, if somebody wants to know.
 */
export function compileOrRefuse(
  schema: Schema,
  what: string,
  tooMuch: (error: TooMuchWork) => void = () => undefined,
): ValidateOrRefuse {
  let validate: Validate;
  try {
    validate = compileSchema(schema, what);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    tooMuch(error);
    const { message } = error;
    return (_value, ifTooMuch = "refuse") => (ifTooMuch === "take" ? null : message);
  }
  return (value, ifTooMuch = "refuse") => {
    try {
      return validate(value);
    } catch (error) {
      if (!(error instanceof TooMuchWork)) throw error;
      return ifTooMuch === "take" ? null : error.message;
    }
  };
}

/** Whether `compileOrRefuse` would compile a schema, told in the same way: what it throws is thrown, and `tooMuch` is told. Nothing is made. */
export function checkOrRefuse(schema: Schema, what: string, tooMuch: (error: TooMuchWork) => void): void {
  try {
    checkSchema(schema, what);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    tooMuch(error);
  }
}
