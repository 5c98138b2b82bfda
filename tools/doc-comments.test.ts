import { describe, expect, test } from "vitest";
import { authorEntries, publicNames } from "./public-names.js";

// What an author's editor shows when the mouse rests on a name.

describe.each(authorEntries)("%s", (entry) => {
  const names = publicNames(entry);

  test("every export, and every member of one, has a doc comment", () => {
    expect(names.length).toBeGreaterThan(4);
    expect(names.filter(({ doc }) => doc === null).map(({ name, file }) => `${name} in ${file}`)).toEqual([]);
  });
});

test("what an author uses first has an example", () => {
  const names = authorEntries.flatMap(publicNames);
  const withoutExample = ["Work.step", "Work.sleep", "Work.saveState", "defineService", "serve"].filter(
    (wanted) => !names.find(({ name }) => name === wanted)?.doc?.includes("@example"),
  );
  expect(withoutExample).toEqual([]);
});

test("the members of classes, unions and inherited interfaces are among the names, and a comment of another kind is none", () => {
  const names = publicNames("tools/public-names.fixture.ts");
  expect(names.map(({ name, doc }) => [name, doc !== null])).toEqual([
    ["bare", false],
    ["Documented", true],
    ["Documented.member", true],
    ["Documented.plain", false],
    ["Base.inherited", false],
    ["Either", true],
    ["Either.one", false],
    ["Either.other", true],
    ["Thing", true],
    ["Thing.method", false],
  ]);
});
