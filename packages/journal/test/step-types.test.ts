import { expectTypeOf, test } from "vitest";
import type { Json, Operation } from "../src/index.js";

// What must compile, and what must not: `tsc -b` checks the expectations, a `@ts-expect-error` that is not needed is an error itself. None
// of the functions is called.

declare const operation: Operation;

/** Refers to itself, as real types do. */
interface Tree {
  readonly at: Date;
  readonly name?: string;
  readonly children: readonly Tree[];
}

interface LiveTree {
  readonly open: Map<string, string>;
  readonly children: readonly LiveTree[];
}

class Point {
  readonly x: number = 1;
  readonly y: number = 2;
}

class Cursor {
  at = 1;
  next() {
    this.at += 1;
  }
}

class Money {
  readonly #cents = 199;
  toJSON() {
    return { cents: this.#cents };
  }
}

test("a step gives what JSON makes of its result", () => {
  void (async () => {
    expectTypeOf(await operation.step("text", () => "a")).toEqualTypeOf<string>();
    expectTypeOf(await operation.step("later", async () => 7)).toEqualTypeOf<number>();
    expectTypeOf(await operation.step("date", () => new Date())).toEqualTypeOf<string>();
    expectTypeOf(await operation.step("own words", async () => new Money())).toEqualTypeOf<{ cents: number }>();
    expectTypeOf(await operation.step("point", () => new Point())).toEqualTypeOf<{
      readonly x: number;
      readonly y: number;
    }>();
    expectTypeOf(await operation.step("pair", () => ["a", new Date(), undefined] as const)).toEqualTypeOf<
      readonly ["a", string, null]
    >();
    const deep = await operation.step("deep", async () => ({
      at: new Date(),
      list: [new Date()],
      place: new URL("a:b"),
    }));
    expectTypeOf(deep).toEqualTypeOf<{ at: string; list: string[]; place: string }>();
    const tree = await operation.step("tree", (): Tree => ({ at: new Date(), children: [] }));
    expectTypeOf(tree.children[0]?.children[0]?.at).toEqualTypeOf<string | undefined>();
    expectTypeOf(tree.name).toEqualTypeOf<string | undefined>();
    expectTypeOf(await operation.step("json", (): Json => null)).toEqualTypeOf<Json>();
    expectTypeOf(await operation.step("who knows", (): unknown => null)).toEqualTypeOf<Json>();
    expectTypeOf(await operation.step("anything", () => JSON.parse("1"))).toBeAny();
    // @ts-expect-error it comes back as a text
    const date: Date = await operation.step("no date", () => new Date());
    return date;
  });
});

test("a step may give nothing", () => {
  void (async () => {
    expectTypeOf(await operation.step("nothing", () => {})).toEqualTypeOf<void>();
    expectTypeOf(await operation.step("nothing later", async () => {})).toEqualTypeOf<void>();
    const perhaps = await operation.step("perhaps", () => ["a"].find((text) => text.length > 1));
    expectTypeOf(perhaps).toEqualTypeOf<string | null>();
    expectTypeOf(await operation.step("undefined", () => undefined)).toEqualTypeOf<null>();
  });
});

test("what JSON cannot keep does not compile", () => {
  void (async () => {
    // @ts-expect-error
    await operation.step("bigint", () => 1n);
    // @ts-expect-error
    await operation.step("deep bigint", async () => ({ size: { bytes: 1n } }));
    // @ts-expect-error
    await operation.step("symbol", () => Symbol("a"));
    // @ts-expect-error
    await operation.step("function", () => () => 1);
    // @ts-expect-error
    await operation.step("with a function", async () => ({ close: () => {} }));
    // @ts-expect-error
    await operation.step("map", () => new Map([["a", "b"]]));
    // @ts-expect-error
    await operation.step("list of sets", async () => [new Set(["a"])]);
    // @ts-expect-error
    await operation.step("bytes", () => new Uint8Array(1));
    // @ts-expect-error
    await operation.step("instance of a class with methods", () => new Cursor());
    // @ts-expect-error
    await operation.step("deep map", (): LiveTree => ({ open: new Map(), children: [] }));
    // @ts-expect-error
    await operation.step("error", () => new Error("a"));
    // @ts-expect-error
    await operation.step("answer", () => fetch("http://localhost"));
    // @ts-expect-error
    await operation.step("own words that are none", () => ({ toJSON: () => 1n }));
    // @ts-expect-error
    await operation.step("perhaps", () => [1, 1n][0]);
  });
});
