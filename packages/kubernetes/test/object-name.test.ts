import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { labelValue, objectName } from "../src/cluster/object-name.js";

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const value = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

describe("names of objects", () => {
  test("are the same for the same parts, in every version of this program", () => {
    expect(objectName("osb", "application", "orders")).toBe("osb-zsm5imbfilkexzflysijr6b4");
  });

  test("are labels of DNS, whatever the parts are", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (parts) => {
        const name = objectName("event-flow-of-applications-to-ns", ...parts);
        expect(name).toMatch(label);
        expect(name.length).toBeLessThanOrEqual(63);
      }),
    );
  });

  test("differ where the parts differ, also where they are joined to the same text", () => {
    expect(objectName("a", "a", "bc")).not.toBe(objectName("a", "ab", "c"));
    expect(objectName("a", "a")).not.toBe(objectName("a", "a", ""));
    expect(objectName("a", "1:a")).not.toBe(objectName("a", "", "a"));
  });

  test("are not made with a prefix that would not fit", () => {
    for (const prefix of ["", "A", "a_b", "-a", "a-", "a".repeat(39)]) {
      expect(() => objectName(prefix, "x")).toThrow("no prefix");
    }
  });
});

describe("values of labels", () => {
  test("are the text itself where that is one", () => {
    for (const text of ["", "a", "orders", "Orders_1.2-b", "a".repeat(63)]) expect(labelValue(text)).toBe(text);
  });

  test("are recognisable where the text is none", () => {
    expect(labelValue("Größe der Bestellung")).toMatch(/^Gr-e-der-Bestellung_h\.[a-z2-7]{24}$/);
    expect(labelValue("…")).toMatch(/^x_h\.[a-z2-7]{24}$/);
  });

  test("can be a label's, and differ for different texts, whatever these are", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 90 }), fc.string({ maxLength: 90 }), (a, b) => {
        const [of, other] = [labelValue(a), labelValue(b)];
        expect(a === "" ? "x" : of).toMatch(value);
        expect(of.length).toBeLessThanOrEqual(63);
        expect(of === other).toBe(a === b);
      }),
    );
  });

  test("of a text that looks like the value of another are not that value", () => {
    const made = labelValue("a b");
    expect(labelValue(made)).not.toBe(made);
  });
});
