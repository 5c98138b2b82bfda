import { expect, test } from "vitest";
import { findOffering, marketplace } from "../../src/api/marketplace.js";
import type { OfferedService, OfferingQuery } from "../../src/platform.js";

function offered(number: number): OfferedService {
  const id = String(number).padStart(5, "0");
  const offering = { id, name: `service-${id}`, description: "one of many", bindable: true, plans: [] };
  return { broker: "acme", offering, leftAt: null, plansLeft: [] };
}

/** So many offerings, and how many of them were looked at. */
function offersOf(count: number, isSeen: (number: number) => boolean = () => true) {
  const looked = { at: 0 };
  function* offeringsBehind({ after }: OfferingQuery): Generator<OfferedService> {
    for (let number = after === undefined ? 0 : Number(after.id) + 1; number < count; number++) {
      looked.at++;
      yield offered(number);
    }
  }
  const seen = (one: OfferedService) => (isSeen(Number(one.offering.id)) ? one : undefined);
  return { looked, offers: { offeringsBehind, seen } };
}

function pages(offers: Parameters<typeof marketplace>[0], limit: number) {
  const all: ReturnType<typeof marketplace>[] = [];
  for (let after: string | undefined; ; ) {
    const page = marketplace(offers, { limit, ...(after !== undefined && { after }) });
    all.push(page);
    if (page.next === null) return all;
    after = page.next;
  }
}

test("a page of the marketplace looks at no more offerings than it has, and whether there is one behind them", () => {
  const { looked, offers } = offersOf(20_000);
  const first = marketplace(offers, { limit: 10 });
  expect(looked.at).toBe(11);
  expect(first.items).toHaveLength(10);
  marketplace(offers, { limit: 10, after: first.next ?? "" });
  expect(looked.at).toBe(22);
});

test("where much is not seen, a page of the marketplace ends before all of it was looked at, and the next one goes on", () => {
  const { looked, offers } = offersOf(5_000, (number) => number === 17 || number === 4_999);
  const [first, ...others] = pages(offers, 10);
  expect(first?.items).toHaveLength(1);
  expect(others.length).toBeGreaterThan(0);
  expect(others.flatMap(({ items }) => items)).toMatchObject([{ name: "service-04999" }]);
  expect(looked.at).toBeLessThan(5_100);
});

test("all pages together have everything once", () => {
  const { offers } = offersOf(25);
  const lengths = pages(offers, 5).map(({ items }) => items.length);
  expect(lengths).toEqual([5, 5, 5, 5, 5]);
});

test.each(["", "x", "[]", "[1,2,3]", '["a","b"]', '["a","b","c","d"]'])("%j is behind no page", (after) => {
  const { offers } = offersOf(1);
  expect(() => marketplace(offers, { after })).toThrow(expect.objectContaining({ code: "invalid" }));
});

test("an offering is looked for by its name, and not among all others", () => {
  const { looked, offers } = offersOf(20_000);
  const called: [string, string | undefined][] = [];
  const offeringsCalled = (idOrName: string, broker?: string) => {
    called.push([idOrName, broker]);
    return [offered(17)];
  };
  expect(findOffering({ ...offers, offeringsCalled }, "service-00017", "acme")).toEqual(offered(17));
  expect(called).toEqual([["service-00017", "acme"]]);
  expect(looked.at).toBe(0);
});
