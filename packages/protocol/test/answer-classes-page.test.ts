import { expect, test } from "vitest";
import { answerClassesPage } from "./answer-classes-page.js";

test("the page of the classes of answers says what the table says; `npx vitest run page -u` writes it anew", async () => {
  await expect(answerClassesPage()).toMatchFileSnapshot("../../../docs/reference/answer-classes.md");
});
