import { expect, test } from "vitest";
import { lab } from "../lab.js";
import { watchedBroker } from "./watched-broker.js";

test("an observer that fails to say what it needs is told of everything, and harms no answer", async () => {
  const [told, toldToo]: [string[], string[]] = [[], []];
  const needs = () => {
    throw new Error("a bug of the observer");
  };
  const broken = Object.assign(({ kind }: { readonly kind: string }) => void told.push(kind), { needs });
  const picky = Object.assign(({ kind }: { readonly kind: string }) => void toldToo.push(kind), { needs: () => false });
  const { ask } = await watchedBroker({ services: [lab().service], observe: [picky, broken] });
  expect((await ask("GET", "/v2/catalog")).status).toBe(200);
  expect((await ask("GET", "/v2/nothing")).status).toBe(404);
  expect(told.filter((kind) => kind === "request answered")).toHaveLength(2);
});
