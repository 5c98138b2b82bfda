import { expect, test } from "vitest";
import { promisesPage, requirementsPage } from "./requirements-page.js";

test("the page of the requirements says what the table and the tests say", async () => {
  await expect(requirementsPage()).toMatchFileSnapshot("../../docs/reference/requirements.md");
});

test("the page of the promises says what the table and the tests say", async () => {
  await expect(promisesPage()).toMatchFileSnapshot("../../docs/reference/promises.md");
});
