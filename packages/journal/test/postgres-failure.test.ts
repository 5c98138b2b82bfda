import { describe, expect, test } from "vitest";
import { JournalError } from "../src/errors.js";
import { asStoreError, endsSession, lostToOthers } from "../src/stores/postgres/failure.js";

const withCode = (code: string) => Object.assign(new Error("postgres://user:secret@host/db"), { code });

describe("an error of the driver", () => {
  test.each([
    ["ECONNREFUSED", "PostgreSQL refused the connection"],
    ["ECONNRESET", "the connection to PostgreSQL broke"],
    ["EPIPE", "the connection to PostgreSQL broke"],
    ["ETIMEDOUT", "PostgreSQL did not answer in time"],
    ["08006", "the connection to PostgreSQL broke"],
    ["57P01", "PostgreSQL is shutting down or starting up"],
    ["57P03", "PostgreSQL is shutting down or starting up"],
    ["57014", "PostgreSQL cancelled the statement"],
    ["53300", "PostgreSQL has no connection left to give"],
    ["53100", "the disk of PostgreSQL is full"],
    ["53400", "PostgreSQL has run out of something it needs"],
    ["25006", "PostgreSQL takes no writes here, as a standby does"],
    ["28P01", "PostgreSQL refused the credentials"],
    ["40P01", "others kept changing the same resources"],
  ])("%s is store-unavailable: %s", (code, sentence) => {
    const cause = withCode(code);
    const error = asStoreError(cause);
    expect(error).toBeInstanceOf(JournalError);
    expect(error).toMatchObject({
      code: "store-unavailable",
      message: `${sentence}; what was asked may be repeated`,
      cause,
    });
  });

  test("without a code comes from a connection", () => {
    const error = new Error("Connection terminated unexpectedly");
    expect(asStoreError(error)).toMatchObject({ code: "store-unavailable", cause: error });
    expect(endsSession(error)).toBe(true);
  });

  test.each(["22021", "23505", "42601", "42P01", "XX000"])("%s is a mistake, and stays as it is", (code) => {
    const error = withCode(code);
    expect(asStoreError(error)).toBe(error);
    expect(endsSession(error)).toBe(false);
  });

  test("of the JavaScript engine stays as it is", () => {
    const error = new TypeError("x is not a function");
    expect(asStoreError(error)).toBe(error);
  });

  test("says whether the session goes on, and whether to run the statement again", () => {
    expect(["57P01", "08006", "25006", "ECONNRESET"].map((code) => endsSession(withCode(code)))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(["40P01", "53100", "57014"].map((code) => endsSession(withCode(code)))).toEqual([false, false, false]);
    expect(["40P01", "40001", "23505"].map((code) => lostToOthers(asStoreError(withCode(code))))).toEqual([
      true,
      true,
      false,
    ]);
  });
});
