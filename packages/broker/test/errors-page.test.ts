import { expect, test } from "vitest";
import { errorsPage } from "./errors-page.js";

test("the reference page of the errors is what the tables say (write it anew with vitest -u)", async () => {
  await expect(errorsPage()).toMatchFileSnapshot("../../../docs/reference/errors.md");
});
