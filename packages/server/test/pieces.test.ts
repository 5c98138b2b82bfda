import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { Pieces } from "../src/http/pieces.js";

const encoder = new TextEncoder();

test("a body in pieces is the same as a whole, as a stream of Node and as one of the web", async () => {
  // More than is given to a connection at a time.
  const texts = Array.from({ length: 300 }, (_, index) => `${index}:${"ü".repeat(10_000)};`);
  const pieces = new Pieces(texts.map((each) => encoder.encode(each)));
  const whole = texts.join("");
  expect(pieces.byteLength).toBe(Buffer.byteLength(whole));
  expect(Buffer.from(pieces.whole()).toString() === whole).toBe(true);
  expect((await text(pieces.toReadable())) === whole).toBe(true);
  expect((await new Response(pieces.toStream()).text()) === whole).toBe(true);
});

test("a body of no pieces is empty", async () => {
  const pieces = new Pieces([]);
  expect([pieces.byteLength, pieces.whole().length, await text(pieces.toReadable())]).toEqual([0, 0, ""]);
});

test("a small body is put together once, and goes out as one; a large one stays in pieces", () => {
  const small = new Pieces([new Uint8Array([1]), new Uint8Array([2, 3])]);
  expect(small.small()).toEqual(new Uint8Array([1, 2, 3]));
  expect(small.small()).toBe(small.small());
  expect(new Pieces([new Uint8Array(300_000)]).small()).toBeUndefined();
});
