import { compileSchema, type Schema, TooMuchWork, type Validate } from "@osbert/server/schemas";

/** A check that never throws: what cannot be checked in bounded time is refused, with a sentence as for all that is wrong. */
export function compileRefusing(schema: Schema, what: string): Validate {
  const validate = compileSchema(schema, what);
  return (value) => {
    try {
      return validate(value);
    } catch (error) {
      if (error instanceof TooMuchWork) return error.message;
      throw error;
    }
  };
}
