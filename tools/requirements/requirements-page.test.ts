import { expect, test } from "vitest";
import { bundleCasesPage, platformCasesPage, promisesPage, requirementsPage } from "./requirements-page.js";

test("the page of the requirements says what the table and the tests say", async () => {
  await expect(requirementsPage()).toMatchFileSnapshot("../../docs/reference/requirements.md");
});

test("the page of the promises says what the table and the tests say", async () => {
  await expect(promisesPage()).toMatchFileSnapshot("../../docs/reference/promises.md");
});

test("the page of the cases of bundles says what the table and the tests say", async () => {
  await expect(bundleCasesPage()).toMatchFileSnapshot("../../docs/reference/bundle-cases.md");
});

test("the page of the cases of a platform says what the table and the tests say", async () => {
  await expect(platformCasesPage()).toMatchFileSnapshot("../../docs/reference/platform-cases.md");
});
