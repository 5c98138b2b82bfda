import { expect, test } from "vitest";
import { TextShelf } from "../src/observe/text-shelf.js";

test("each text that is put on a shelf stays what it was, however many and however large those after it are", () => {
  const shelf = new TextShelf();
  const values = [...Array.from({ length: 3_000 }, (_, index) => ({ index, text: "ü".repeat(index % 700) }))];
  const large = { text: "x".repeat(3_000_000) };
  const kept = [...values, large, { after: "it" }].map((value) => ({ value, bytes: shelf.put(value) }));
  for (const { value, bytes } of kept) expect(JSON.parse(bytes.toString())).toEqual(value);
});
