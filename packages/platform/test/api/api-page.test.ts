import { expect, test } from "vitest";
import { apiPage } from "./api-page.js";

test("the reference page of the API is what its routes say; `npx vitest run page -u` writes it", async () => {
  await expect(apiPage()).toMatchFileSnapshot("../../../../docs/reference/platform-api.md");
});
