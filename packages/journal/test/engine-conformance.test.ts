import type { EngineUnderTest, TestRunner } from "@osbert/journal-suites/conformance";
import { engineSuite } from "@osbert/journal-suites/conformance";
import { describe, expect, inject, test } from "vitest";
import { encrypted, mariadb, memory, postgres, sqlite } from "./stores-under-test.js";

const [postgresUrl, mysqlUrl] = [inject("postgresUrl"), inject("mysqlUrl")];

const oneProcess = "what is in memory is gone with its process, so no process outlives another";
const noGrouping = "nothing is durable in memory, so there is nothing to share";
const memoryEngine: EngineUnderTest = {
  ...memory,
  except: {
    "J11: what a killed process ran goes on in the next one without waiting for its lease": oneProcess,
    "J11: an engine that runs already goes on with what a killed one ran, without waiting for its lease": oneProcess,
    "J3: an engine makes sure before a step, and runs none where another has taken over that it has not heard of":
      oneProcess,
    "J11: a commit that lands under the name of an engine that was taken for dead meanwhile is not waited for":
      oneProcess,
    "J11: the places of a killed process are free long before its lease would be over, also if it waited for more":
      oneProcess,
    "J11: the places of a process that is killed while it runs nothing are free long before its lease would be over":
      oneProcess,
    "J12: 200 operations accepted at once need far fewer than 200 durable commits": noGrouping,
    "J12: operations that run at once share the commits of their steps and ends": noGrouping,
  },
};

const subjects: readonly (EngineUnderTest | { readonly name: string; readonly leftOut: string })[] = [
  memoryEngine,
  sqlite,
  encrypted(memoryEngine),
  encrypted(sqlite),
  postgresUrl ? postgres(postgresUrl) : { name: "postgres", leftOut: "this machine has no PostgreSQL server to start" },
  mysqlUrl ? mariadb(mysqlUrl) : { name: "mysql", leftOut: "this machine has no MariaDB server to start" },
];

const runner: TestRunner = {
  test: (name, body) => test(name, body),
  skip: (name, reason) => test.skip(`${name} — ${reason}`),
};

for (const subject of subjects) {
  describe(subject.name, () => {
    if ("leftOut" in subject) test.skip(`left out: ${subject.leftOut}`);
    else engineSuite(runner, subject);
  });
}

describe("the engine suite", () => {
  const names = (subject: EngineUnderTest) => {
    const [run, skipped]: [string[], Map<string, string>] = [[], new Map()];
    engineSuite({ test: (name) => run.push(name), skip: (name, reason) => skipped.set(name, reason) }, subject);
    return { run, skipped };
  };

  test("every promise J1 to J12 is at least one test", () => {
    const { run } = names({ ...memory, except: {} });
    const promises = Array.from({ length: 12 }, (_, index) => `J${index + 1}: `);
    expect(promises.filter((promise) => !run.some((name) => name.startsWith(promise)))).toEqual([]);
  });

  test("an exception that names no test is an error", () => {
    expect(() => names({ ...memory, except: { "J2: no such test": "why" } })).toThrow("J2: no such test");
  });

  test("tests of several processes are skipped where a store has one owner", () => {
    const all = names({ ...memory, except: {} });
    const { run, skipped } = names({ ...memory, except: {}, oneOwner: "one file" });
    expect([...skipped.values()]).toEqual([...skipped].map(() => "one file"));
    expect([...run, ...skipped.keys()].sort()).toEqual([...all.run].sort());
  });
});
