import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../tools/until.js";
import {
  type Cluster,
  type ClusterEvent,
  type ObjectKind,
  openCluster,
  type Watch,
  type WatchChange,
  type WatchOptions,
  type WatchPace,
} from "../src/index.js";
import { type Answer, objectOf, ScriptedApiServer, status } from "./scripted-api-server.js";

const configMaps: ObjectKind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
/** Patience that a test can wait for. */
const quick: Partial<WatchPace> = {
  firstDelayMs: 5,
  longestDelayMs: 20,
  lookAgainMs: 20,
  settledMs: 20,
  behindAfterMs: 60_000,
};

let server: ScriptedApiServer;
const clusters: Cluster[] = [];
let changes: WatchChange<string>[];
let states: string[];
let events: ClusterEvent[];

beforeEach(async () => {
  server = await ScriptedApiServer.start();
  changes = [];
  states = [];
  events = [];
});

afterEach(async () => {
  for (const cluster of clusters.splice(0)) cluster.close();
  await server.close();
});

async function follow(
  pace: Partial<WatchPace> = {},
  options: Partial<WatchOptions<string>> = {},
): Promise<Watch<string>> {
  const cluster = await openCluster({
    access: { kind: "kubeconfig", file: server.kubeconfig },
    pace: { ...quick, ...pace },
    observe: (event) => events.push(event),
  });
  clusters.push(cluster);
  const watch: Watch<string> = cluster.watch<string>(configMaps, {
    namespace: "here",
    keep: ({ data }) => (data as { readonly value: string }).value,
    changed: (change) => (change === undefined ? states.push(watch.state) : changes.push(change)),
    ...options,
  });
  return watch;
}

const value = (watch: Watch<string>, name: string) => watch.get({ namespace: "here", name });
const eventually = (what: string, isSo: () => boolean) => until(what, async () => isSo());

/** It is not only listed, but connected. */
async function settled(watch: Watch<string>): Promise<void> {
  await watch.started;
  await eventually("a watch to be open", () => server.openWatches === 1);
}

describe("a watch", () => {
  test("lists, then follows, and tells what came, changed and went", async () => {
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    expect([...watch.values()]).toEqual(["1"]);
    server.put("b", "2");
    server.put("a", "3");
    server.remove("b");
    await eventually("all to be told", () => changes.length === 4);
    expect(changes.map(({ place, before, after }) => [place.name, before, after])).toEqual([
      ["a", undefined, "1"],
      ["b", undefined, "2"],
      ["a", "1", "3"],
      ["b", "2", undefined],
    ]);
    expect(states).toEqual(["current"]);
  });

  test("tells nothing of changes in what is not kept", async () => {
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    server.put("a", "1");
    server.put("b", "2");
    await eventually("the later one", () => value(watch, "b") === "2");
    expect(changes.length).toBe(2);
  });

  test("takes an object that is not kept any more for gone", async () => {
    server.put("a", "1");
    const watch = await follow(
      {},
      { keep: ({ data }) => ((data as { value: string }).value === "1" ? "1" : undefined) },
    );
    await settled(watch);
    server.put("a", "2");
    await eventually("it to go", () => watch.size === 0);
    expect(changes.at(-1)).toEqual({ place: { namespace: "here", name: "a" }, before: "1", after: undefined });
  });

  test("goes on where it was after its connection broke, without a list", async () => {
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    server.next("watch", (request) => request.socket.destroy());
    server.cut();
    server.put("b", "2");
    await eventually("what came meanwhile", () => value(watch, "b") === "2");
    expect(server.count("list")).toBe(1);
    expect(watch.state).toBe("current");
  });

  test("lists anew when the server has forgotten where it was (410), and tells what is different, removals too", async () => {
    server.put("a", "1");
    server.put("b", "1");
    const watch = await follow();
    await settled(watch);
    changes.length = 0;
    server.forget(() => {
      server.remove("a");
      server.put("b", "2");
      server.put("c", "3");
    });
    await eventually("the new list", () => value(watch, "c") === "3");
    expect(changes.map(({ place, before, after }) => [place.name, before, after])).toEqual([
      ["a", "1", undefined],
      ["b", "1", "2"],
      ["c", undefined, "3"],
    ]);
  });

  test("does so too when 410 comes as an event", async () => {
    const watch = await follow();
    await settled(watch);
    server.forget(() => server.put("a", "1"));
    await eventually("the new list", () => value(watch, "a") === "1");
    await settled(watch);
    const lists = server.count("list");
    server.write(`${JSON.stringify({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } })}\n`);
    await eventually("another list", () => server.count("list") === lists + 1);
    server.put("b", "2");
    await eventually("what comes after", () => value(watch, "b") === "2");
  });

  test("keeps what it has until a new list is complete", async () => {
    for (let n = 0; n < 501; n += 1) server.put(`o${n}`, "1");
    const watch = await follow();
    await settled(watch);
    // The first page comes, the second does not.
    const hangUp: Answer = (request) => request.socket.destroy();
    const firstPage: Answer = (_request, response) => {
      const list = { metadata: { resourceVersion: "9999", continue: "500" }, items: [objectOf("o1", 2, "1")] };
      response.end(JSON.stringify(list));
    };
    server.next("list", firstPage);
    server.next("list", hangUp);
    server.next("list", firstPage);
    server.next("list", status(410, "Expired", "too old"));
    let fewest = watch.size;
    const looking = setInterval(() => {
      fewest = Math.min(fewest, watch.size);
    }, 1);
    server.forget(() => server.put("new", "1"));
    await eventually("the new list", () => value(watch, "new") === "1");
    clearInterval(looking);
    expect(fewest).toBe(501);
    expect(changes.filter(({ after }) => after === undefined)).toEqual([]);
  });

  test("waits while storage is initializing (429), then goes on", async () => {
    const busy = status(429, "TooManyRequests", "storage is (re)initializing");
    for (let n = 0; n < 5; n += 1) server.next("list", busy);
    for (let n = 0; n < 5; n += 1) server.next("watch", busy);
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    expect(server.count("list")).toBe(6);
    expect(server.count("watch")).toBe(6);
    expect(value(watch, "a")).toBe("1");
  });

  test("notices that its connection is dead, though nobody has closed it", async () => {
    server.next("watch", (_request, response) => response.flushHeaders());
    const watch = await follow({ quietMs: 50 });
    await eventually("another connection", () => server.count("watch") > 1);
    server.put("a", "1");
    await eventually("what came meanwhile", () => value(watch, "a") === "1");
  });

  test("notices a server that was restored from a backup", async () => {
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    server.write(`${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "1" } } })}\n`);
    await eventually("another list", () => server.count("list") === 2);
    expect(value(watch, "a")).toBe("1");
  });

  test("remembers bookmarks, to go on from there", async () => {
    const watch = await follow();
    await settled(watch);
    const event = JSON.stringify({ type: "ADDED", object: objectOf("a", 77, "1") });
    const bookmark = JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "78" } } });
    server.write(`${event}\n${bookmark}\n`);
    await eventually("both to be read", () => value(watch, "a") === "1");
    server.cut();
    await eventually("another connection", () => server.count("watch") === 2);
    expect(server.requests.at(-1)?.url).toContain("resourceVersion=78");
  });

  test("reads events that come in pieces, and many in one", async () => {
    const watch = await follow();
    await settled(watch);
    const line = Buffer.from(`${JSON.stringify({ type: "ADDED", object: objectOf("a", 5, "größer") })}\n`);
    for (const byte of line) server.write(Buffer.from([byte]));
    await eventually("the event", () => value(watch, "a") === "größer");
    const many = Array.from({ length: 1_000 }, (_one, n) =>
      JSON.stringify({ type: "ADDED", object: objectOf(`m${n}`, 10 + n, "x") }),
    );
    server.write(`${many.join("\n")}\n\n`);
    await eventually("all of them", () => watch.size === 1_001);
  });

  test("is not misled by half an event, by text, or by an event that nobody knows", async () => {
    server.put("a", "1");
    const watch = await follow();
    for (const text of [
      '{"type":"DELETED","object":',
      "garbage\n",
      "[]\n",
      '{"type":"UNHEARD","object":{}}\n',
      '{"type":"DELETED","object":{"metadata":{}}}\n',
      '{"type":"DELETED"}\n',
    ]) {
      await settled(watch);
      const before = server.count("watch");
      server.write(text);
      if (!text.endsWith("\n")) server.cut();
      await eventually("another connection", () => server.count("watch") > before);
      expect(value(watch, "a")).toBe("1");
    }
    expect(changes.length).toBe(1);
  });

  test("gives up an event without an end, and takes it from a list", async () => {
    const watch = await follow();
    await settled(watch);
    server.put("a", "1");
    const chunk = "x".repeat(1_048_576);
    for (let n = 0; n < 18; n += 1) server.write(chunk);
    await eventually("another list", () => server.count("list") > 1);
    expect(value(watch, "a")).toBe("1");
  });

  test("does not fall over a listener that throws, and lets it be known", async () => {
    server.put("a", "1");
    const watch = await follow(
      {},
      {
        changed: () => {
          throw new Error("a mistake");
        },
      },
    );
    await settled(watch);
    server.put("b", "2");
    await eventually("the second", () => value(watch, "b") === "2");
    expect(events.filter(({ kind }) => kind === "watch listener failed").length).toBe(3);
    expect(watch.state).toBe("current");
  });

  test("removes nothing because `keep` throws", async () => {
    server.put("a", "1");
    const watch = await follow(
      {},
      {
        keep: ({ data }) => {
          const { value: told } = data as { readonly value: string };
          if (told === "2") throw new Error("a mistake");
          return told;
        },
      },
    );
    await settled(watch);
    server.put("a", "2");
    server.put("b", "3");
    await eventually("the later one", () => value(watch, "b") === "3");
    expect(value(watch, "a")).toBe("1");
  });
});

describe("the state of a watch", () => {
  test("is `behind` when the server was not heard of for a while, `current` when it is there again", async () => {
    server.put("a", "1");
    const watch = await follow({ behindAfterMs: 50 });
    await settled(watch);
    server.instead = (request) => request.socket.destroy();
    server.cut();
    await eventually("it to be known", () => watch.state === "behind");
    expect(watch.why).not.toBeNull();
    expect(value(watch, "a")).toBe("1");
    server.instead = undefined;
    await eventually("it to be current", () => watch.state === "current");
    expect(watch.why).toBeNull();
    expect(states).toEqual(["current", "behind", "current"]);
  });

  test("is not `current` by a server that accepts watches and hangs up", async () => {
    const watch = await follow({ behindAfterMs: 50 });
    await settled(watch);
    server.instead = (_request, response) => void response.end();
    server.cut();
    await eventually("it to be known", () => watch.state === "behind");
    const before = server.count("watch");
    await eventually("more tries", () => server.count("watch") > before + 3);
    expect(states).toEqual(["current", "behind"]);
  });

  test("is `starting`, with the reason, as long as nothing was listed", async () => {
    server.instead = status(500, "InternalError", "etcdserver: no leader");
    const watch = await follow({ behindAfterMs: 10 });
    await eventually("a few tries", () => server.count("list") > 3);
    expect(watch.state).toBe("starting");
    expect(watch.why).toContain("no leader");
    server.instead = undefined;
    await watch.started;
    expect(watch.state).toBe("current");
  });

  test("is `forbidden` while the server does not allow it, and what was held stays", async () => {
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    server.instead = status(403, "Forbidden", 'configmaps is forbidden: User "me" cannot list');
    server.cut();
    await eventually("it to be known", () => watch.state === "forbidden");
    expect(watch.why).toContain("cannot list");
    expect(value(watch, "a")).toBe("1");
    server.instead = undefined;
    await eventually("it to be allowed", () => watch.state === "current");
  });

  test("is `too many` where there are more objects than are held, and `current` when there are fewer", async () => {
    for (const name of ["a", "b", "c"]) server.put(name, "1");
    const watch = await follow({}, { most: 2 });
    await eventually("it to be known", () => watch.state === "too many");
    expect(watch.size).toBe(0);
    server.remove("c");
    await eventually("it to fit", () => watch.state === "current");
    server.put("d", "1");
    await eventually("it to be known again", () => watch.state === "too many");
    expect(watch.size).toBe(2);
  });

  test("is not `no such kind` because somebody answers 404 who is no API server", async () => {
    server.put("a", "1");
    const watch = await follow();
    await settled(watch);
    server.instead = (_request, response) => void response.writeHead(404).end("404 page not found\n");
    server.cut();
    const before = server.count("list");
    await eventually("a few tries", () => server.count("list") > before + 3);
    expect(watch.state).not.toBe("no such kind");
    expect(value(watch, "a")).toBe("1");
  });
});

describe("a closed watch", () => {
  test("asks for nothing more and tells nothing more", async () => {
    const watch = await follow();
    await settled(watch);
    const told = changes.length + states.length;
    watch.close();
    await eventually("its connection to be closed", () => server.openWatches === 0);
    const asked = server.requests.length;
    server.put("a", "1");
    await follow();
    await eventually("the other one", () => server.openWatches === 1);
    expect(server.requests.length).toBe(asked + 2);
    expect(changes.length + states.length - told).toBe(2);
  });

  test("may be closed by its own listener, while it is told", async () => {
    for (const name of ["a", "b", "c"]) server.put(name, "1");
    let told = 0;
    const watch: Watch<string> = await follow(
      {},
      {
        changed: (change) => {
          if (change === undefined) return;
          told += 1;
          watch.close();
        },
      },
    );
    await watch.started;
    await eventually("it to be told", () => told > 0);
    expect(told).toBe(1);
  });

  test("that never began does not hold those who wait for it", async () => {
    server.instead = () => undefined;
    const watch = await follow();
    watch.close();
    await watch.started;
    expect(watch.state).toBe("starting");
  });
});

test("a storm of everything leaves a copy that is right", async () => {
  const watch = await follow({ quietMs: 200, firstDelayMs: 1, longestDelayMs: 5 });
  await settled(watch);
  const trouble: readonly (() => void)[] = [
    () => server.cut(),
    () => server.next("watch", status(410, "Expired", "too old")),
    () => server.next("list", status(429, "TooManyRequests", "busy")),
    () => server.next("watch", status(500, "InternalError", "no leader")),
    () => server.next("anything", (request) => request.socket.destroy()),
    () => server.write("{"),
    () => server.next("watch", (_request, response) => response.flushHeaders()),
    () => server.forget(() => server.put("forgotten", "1")),
  ];
  for (let round = 0; round < 200; round += 1) {
    server.put(`o${round % 17}`, String(round));
    if (round % 3 === 0) server.remove(`o${(round * 7) % 17}`);
    trouble[(round * 5) % trouble.length]?.();
    // The storm goes on while the watch is at work, wherever that is.
    for (let turn = 0; turn < round % 20; turn += 1) await new Promise(setImmediate);
  }
  server.put("last", "1");
  await eventually("the last one", () => value(watch, "last") === "1" && watch.state === "current");
  const truth: string[] = [];
  const [cluster] = clusters;
  for await (const { metadata, data } of cluster?.list(configMaps, { namespace: "here" }) ?? []) {
    truth.push(`${metadata.name}=${(data as { readonly value: string }).value}`);
  }
  const names = truth.map((text) => text.split("=")[0] ?? "");
  expect(names.map((name) => `${name}=${value(watch, name)}`)).toEqual(truth);
  expect(watch.size).toBe(truth.length);
  const replayed = new Map<string, string>();
  for (const { place, after } of changes) {
    if (after === undefined) replayed.delete(place.name);
    else replayed.set(place.name, after);
  }
  expect([...replayed].map(([name, told]) => `${name}=${told}`).sort()).toEqual([...truth].sort());
});
