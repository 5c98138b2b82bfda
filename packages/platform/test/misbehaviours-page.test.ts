import { checkCatalog } from "@osbert/protocol";
import { expect, test } from "vitest";
import { type MisbehavingCatalog, misbehavingCatalogs } from "../src/testing/index.js";
import { misbehavioursPage } from "./misbehaviours-page.js";

test("the page of the misbehaviours is what the tables say", async () => {
  await expect(misbehavioursPage()).toMatchFileSnapshot("../../../docs/reference/misbehaviours.md");
});

test("the catalogs that are said to be without a fault have none", () => {
  for (const name of ["usual", "plans-15000"] satisfies MisbehavingCatalog[])
    expect(checkCatalog(misbehavingCatalogs[name]()).filter(({ level }) => level === "error")).toEqual([]);
});
