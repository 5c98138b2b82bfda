import { expect, test } from "vitest";
import { PlatformError, platformErrors } from "../src/index.js";

test("each way of saying no has a status of its own kind and a sentence", () => {
  for (const { status, title } of Object.values(platformErrors)) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(title).not.toBe("");
  }
  expect(new PlatformError("locked", "the instance is locked by anna", { details: { by: "anna" } })).toMatchObject({
    code: "locked",
    details: { by: "anna" },
  });
});
