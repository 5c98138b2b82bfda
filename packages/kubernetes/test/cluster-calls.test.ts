import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../../tools/until.js";
import { CredentialReader } from "../src/cluster/credentials.js";
import { type Cluster, type ObjectKind, openCluster } from "../src/index.js";
import { failureOf } from "./failure-of.js";
import { type Answer, objectOf, ScriptedApiServer, status } from "./scripted-api-server.js";

const configMaps: ObjectKind = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const place = { namespace: "here", name: "a" };
const json: Answer = (_request, response) => void response.end(JSON.stringify(objectOf("a", 2, "x")));

let server: ScriptedApiServer;
let cluster: Cluster;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
  cluster = await openCluster({ access: { kind: "kubeconfig", file: server.kubeconfig } });
});

afterEach(async () => {
  cluster.close();
  await server.close();
});

describe("a server that misbehaves does not hold a call", () => {
  test("one that accepts and never answers", async () => {
    server.instead = () => undefined;
    const error = await failureOf(cluster.read(configMaps, place, { timeoutMs: 50 }));
    expect(error).toMatchObject({ failure: "unavailable", status: null });
    expect(error.message).toContain("no answer within 50 ms");
  });

  test("one that sends a byte now and then", async () => {
    server.instead = (_request, response) => {
      const timer = setInterval(() => response.write(" "), 5);
      response.on("close", () => clearInterval(timer));
    };
    expect((await failureOf(cluster.read(configMaps, place, { timeoutMs: 100 }))).failure).toBe("unavailable");
  });

  test("one that hangs up in the middle of its answer", async () => {
    server.instead = (_request, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write('{"kind":', () => response.destroy());
    };
    expect((await failureOf(cluster.read(configMaps, place))).failure).toBe("unavailable");
  });

  test("one that hangs up in the middle of an answer without a length", async () => {
    server.instead = (_request, response) => void response.write('{"kind":', () => response.destroy());
    expect((await failureOf(cluster.read(configMaps, place))).failure).toBe("unavailable");
  });

  test("one that never stops sending", async () => {
    const chunk = Buffer.alloc(1_048_576, " ");
    let sent = 0;
    server.instead = (_request, response) => {
      const more = () => {
        while (!response.destroyed && sent < 1_024) {
          sent += 1;
          if (!response.write(chunk)) return void response.once("drain", more);
        }
      };
      more();
    };
    const error = await failureOf(cluster.read(configMaps, place));
    expect(error.message).toContain("more than 33554432 bytes");
    expect(sent).toBeLessThan(200);
  });

  test("one whose failures are endless", async () => {
    const chunk = Buffer.alloc(1_048_576, " ");
    server.instead = (_request, response) => {
      response.writeHead(500);
      for (let sent = 0; sent < 8; sent += 1) response.write(chunk);
    };
    expect((await failureOf(cluster.read(configMaps, place))).message).toContain("more than 1048576 bytes");
  });

  test("one that sends another thing than JSON, or other JSON", async () => {
    for (const text of ["<html>", "[]", "null", "{}", '{"metadata":{}}']) {
      server.next("other", (_request, response) => void response.end(text));
      expect((await failureOf(cluster.read(configMaps, place))).failure).toBe("unavailable");
    }
  });

  test("one that packs its answers though it was asked not to", async () => {
    server.instead = (_request, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("x");
    expect((await failureOf(cluster.read(configMaps, place))).failure).toBe("unavailable");
  });

  test("nor one that is not there", async () => {
    await server.close();
    const error = await failureOf(cluster.read(configMaps, place));
    expect(error.failure).toBe("unavailable");
    expect(error.message).toContain("ECONNREFUSED");
  });
});

describe("a call", () => {
  test("does not follow a redirect: credentials go to the configured server alone", async () => {
    const other = await ScriptedApiServer.start();
    for (const code of [301, 302, 307, 308]) {
      server.next("other", (_request, response) => void response.writeHead(code, { location: `${other.url}/x` }).end());
      expect((await failureOf(cluster.read(configMaps, place))).failure).toBe("unavailable");
    }
    expect(other.requests).toEqual([]);
    await other.close();
  });

  test("ends when it is given up, also one that has not begun", async () => {
    server.instead = () => undefined;
    const gaveUp = new AbortController();
    const call = failureOf(cluster.read(configMaps, place, { signal: gaveUp.signal }));
    await until("the request to be there", async () => server.requests.length === 1);
    gaveUp.abort(new Error("no more"));
    expect((await call).cause).toEqual(new Error("no more"));
    expect((await failureOf(cluster.read(configMaps, place, { signal: gaveUp.signal }))).failure).toBe("unavailable");
    expect(server.requests.length).toBe(1);
  });

  test("ends when the edge is closed, and none begins after that", async () => {
    server.instead = () => undefined;
    const call = failureOf(cluster.read(configMaps, place));
    await until("the request to be there", async () => server.requests.length === 1);
    cluster.close();
    expect((await call).message).toContain("closed");
    expect((await failureOf(cluster.read(configMaps, place))).message).toContain("closed");
  });

  test("is made again when its kept connection was closed in that moment", async () => {
    server.next("other", json);
    await cluster.read(configMaps, place);
    server.next("other", (request) => request.socket.resetAndDestroy());
    server.next("other", json);
    expect(await cluster.read(configMaps, place)).toMatchObject({ data: { value: "x" } });
    expect(server.requests.length).toBe(3);
  });

  test("that creates is not made again, because the server may have done it", async () => {
    server.next("other", json);
    await cluster.read(configMaps, place);
    server.next("other", (request) => request.socket.resetAndDestroy());
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: place };
    expect((await failureOf(cluster.create(configMaps, object))).failure).toBe("unavailable");
    expect(server.requests.length).toBe(2);
  });

  test("for an object without a name is refused before it reaches a collection", async () => {
    for (const name of ["", ".", ".."]) {
      const nowhere = { namespace: "here", name };
      expect((await failureOf(cluster.remove(configMaps, nowhere, { uid: "u" }))).failure).toBe("invalid");
      expect((await failureOf(cluster.read(configMaps, nowhere))).failure).toBe("invalid");
    }
    expect((await failureOf(cluster.read(configMaps, { namespace: "", name: "a" }))).failure).toBe("invalid");
    expect(server.requests).toEqual([]);
  });

  test("cannot leave its path by a name", async () => {
    await failureOf(cluster.read(configMaps, { namespace: "here", name: "../../secrets/a?x=1#" }));
    expect(server.requests[0]?.url).toBe("/api/v1/namespaces/here/configmaps/..%2F..%2Fsecrets%2Fa%3Fx%3D1%23");
  });

  test("of a webhook that does not answer, or of a server that is busy, says so", async () => {
    server.next("other", status(500, "InternalError", 'failed calling webhook "w"'));
    expect((await failureOf(cluster.read(configMaps, place))).failure).toBe("webhook unavailable");
    server.next("other", status(429, "TooManyRequests", "too many", {}, { "retry-after": "7" }));
    expect(await failureOf(cluster.read(configMaps, place))).toMatchObject({
      failure: "too busy",
      retryAfterMs: 7_000,
    });
  });

  test("waits for a connection under its own deadline", async () => {
    server.instead = () => undefined;
    const calls = Array.from({ length: 40 }, () => failureOf(cluster.read(configMaps, place, { timeoutMs: 200 })));
    for (const error of await Promise.all(calls)) expect(error.failure).toBe("unavailable");
    expect(server.requests.length).toBeLessThanOrEqual(32);
  });
});

describe("a list", () => {
  async function names(): Promise<string[]> {
    const found: string[] = [];
    for await (const { metadata } of cluster.list(configMaps, { namespace: "here" })) found.push(metadata.name);
    return found;
  }

  test("comes page by page, and is complete", async () => {
    for (let n = 0; n < 1_201; n += 1) server.put(`o${n}`, "x");
    expect(new Set(await names()).size).toBe(1_201);
    expect(server.count("list")).toBe(3);
  });

  test("that grew too old while it was read begins anew", async () => {
    for (let n = 0; n < 501; n += 1) server.put(`o${n}`, "x");
    const pages = cluster.list(configMaps, { namespace: "here" });
    expect((await pages.next()).done).toBe(false);
    server.next("list", status(410, "Expired", "The provided continue parameter is too old"));
    const rest = new Set<string>();
    for await (const { metadata } of pages) rest.add(metadata.name);
    expect(rest.size).toBe(501);
  });

  test("that is always too old is given up", async () => {
    server.instead = status(410, "Expired", "too old");
    expect(await failureOf(names())).toMatchObject({ status: 410 });
  });

  test("of huge objects comes in smaller pages", async () => {
    const huge = "x".repeat(1_048_576);
    for (let n = 0; n < 40; n += 1) server.put(`o${n}`, huge);
    for await (const { metadata } of cluster.list(configMaps, { namespace: "here", timeoutMs: 60_000 })) {
      expect(metadata).not.toHaveProperty("managedFields");
    }
    expect(server.requests.map(({ url }) => new URL(url, "http://s").searchParams.get("limit"))).toEqual([
      "500",
      "50",
      "5",
      "5",
      "5",
      "5",
      "5",
      "5",
      "5",
      "5",
    ]);
  });

  test("that is none is an error, and no empty list", async () => {
    for (const text of ["{}", '{"items":[]}', '{"metadata":{"resourceVersion":"1"}}']) {
      server.next("list", (_request, response) => void response.end(text));
      expect((await failureOf(names())).failure).toBe("unavailable");
    }
  });
});

describe("credentials", () => {
  test("are sent as the kubeconfig has them", async () => {
    server.instead = json;
    await cluster.read(configMaps, place);
    expect(server.requests[0]?.headers.authorization).toBe("Bearer first-token-of-all");
  });

  test("are read again when the server does not know them, and the call is made once more", async () => {
    server.instead = (request, response, body) =>
      (request.headers.authorization === "Bearer second-token" ? json : status(401, "Unauthorized", "Unauthorized"))(
        request,
        response,
        body,
      );
    await server.writeKubeconfig("token: second-token");
    server.next("other", status(401, "Unauthorized", "Unauthorized"));
    expect(await cluster.read(configMaps, place)).toMatchObject({ data: { value: "x" } });
    expect(server.requests.length).toBe(2);
  });

  test("that are refused for good are not read for each call", async () => {
    const log = server.file("plugin.log");
    const plugin = server.file("plugin");
    await writeFile(
      plugin,
      `#!/bin/sh\necho called >> ${log}\necho '{"kind":"ExecCredential","status":{"token":"of-the-plugin"}}'\n`,
    );
    await chmod(plugin, 0o755);
    await server.writeKubeconfig("exec:", "  apiVersion: client.authentication.k8s.io/v1", `  command: ${plugin}`);
    server.instead = status(401, "Unauthorized", "Unauthorized");
    const other = await openCluster({ access: { kind: "kubeconfig", file: server.kubeconfig } });
    for (let n = 0; n < 10; n += 1)
      expect((await failureOf(other.read(configMaps, place))).failure).toBe("unauthorized");
    expect((await readFile(log, "utf8")).trim().split("\n").length).toBe(2);
    other.close();
  });

  test("of a file are those that it has now, without the end of its line", async () => {
    await writeFile(server.file("token"), "rotated-one\n");
    await server.writeKubeconfig("tokenFile: token");
    const other = await openCluster({ access: { kind: "kubeconfig", file: server.kubeconfig } });
    server.instead = json;
    await other.read(configMaps, place);
    await writeFile(server.file("token"), "rotated-two\n");
    server.next("other", status(401, "Unauthorized", "Unauthorized"));
    await other.read(configMaps, place);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer rotated-one",
      "Bearer rotated-one",
      "Bearer rotated-two",
    ]);
    other.close();
  });

  test("that cannot be had are told without what a plugin has printed", async () => {
    const plugin = server.file("plugin");
    for (const script of ["echo s3cr3t-token", "echo s3cr3t-token >&2; exit 1", "cat; echo '{'"]) {
      await writeFile(plugin, `#!/bin/sh\n${script}\n`);
      await chmod(plugin, 0o755);
      await server.writeKubeconfig("exec:", "  apiVersion: client.authentication.k8s.io/v1", `  command: ${plugin}`);
      const other = await openCluster({ access: { kind: "kubeconfig", file: server.kubeconfig } });
      const error = await failureOf(other.read(configMaps, place));
      expect(error.failure).toBe("unauthorized");
      expect(inspect(error, { depth: 9 })).not.toContain("s3cr3t");
      other.close();
    }
  });

  test("of a plugin that hangs do not hold a call", async () => {
    const plugin = server.file("plugin");
    await writeFile(plugin, "#!/bin/sh\nexec sleep 5\n");
    await chmod(plugin, 0o755);
    await server.writeKubeconfig("exec:", "  apiVersion: client.authentication.k8s.io/v1", `  command: ${plugin}`);
    const other = await openCluster({ access: { kind: "kubeconfig", file: server.kubeconfig } });
    expect((await failureOf(other.read(configMaps, place, { timeoutMs: 50 }))).failure).toBe("unavailable");
    other.close();
  });

  test("are in no error, whatever the server answers", async () => {
    const echo: Answer = (request, response, body) =>
      status(400, "BadRequest", JSON.stringify(request.headers))(request, response, body);
    server.next("other", echo);
    server.next("other", (request) => request.socket.resetAndDestroy());
    server.next("other", (request, response) => void response.end(JSON.stringify(request.headers)));
    for (let n = 0; n < 3; n += 1) {
      const error = await failureOf(
        cluster.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: place }),
      );
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain("first-token");
    }
  });

  test("of a pod are its service account's", async () => {
    const folder = server.file("var/run/secrets/kubernetes.io/serviceaccount");
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/token`, "of-the-pod\n");
    await writeFile(`${folder}/ca.crt`, "");
    await writeFile(`${folder}/namespace`, "here");
    const { hostname, port } = new URL(server.url);
    const before = { ...process.env };
    Object.assign(process.env, { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port });
    try {
      const pod = await openCluster({ access: { kind: "in cluster", mount: server.file("") } });
      // This server has no certificate, and a service account's token goes nowhere else than to one.
      expect((await failureOf(pod.read(configMaps, place))).failure).toBe("unavailable");
      pod.close();
      expect(server.requests).toEqual([]);
    } finally {
      process.env = before;
    }
  });

  test("that cannot be read for a moment are used on, and read again soon", async () => {
    let now = 0;
    const reader = new CredentialReader({ kind: "kubeconfig", file: server.kubeconfig }, () => now);
    expect((await reader.get()).headers.authorization).toBe("Bearer first-token-of-all");
    await writeFile(server.kubeconfig, "half of a");
    now += 61_000;
    expect((await reader.get()).headers.authorization).toBe("Bearer first-token-of-all");
    await server.writeKubeconfig("token: second-token");
    now += 6_000;
    expect((await reader.get()).headers.authorization).toBe("Bearer second-token");
  });

  test("that lead nowhere are refused at the beginning", async () => {
    const open = (file: string, context?: string) =>
      openCluster({ access: { kind: "kubeconfig", file, ...(context === undefined ? {} : { context }) } });
    expect((await failureOf(open(server.file("none")))).message).toContain("ENOENT");
    expect((await failureOf(open(server.kubeconfig, "elsewhere"))).message).toContain('no context "elsewhere"');
    await writeFile(server.file("broken"), "users: [{ name: a, user: { token: s3cr3t-token\n");
    const error = await failureOf(open(server.file("broken")));
    expect(inspect(error, { depth: 9 })).not.toContain("s3cr3t");
  });
});

describe("the log of a container", () => {
  test("is its last bytes, in whole characters, however long it is", async () => {
    server.instead = (_request, response) => {
      for (let n = 0; n < 1_000; n += 1) response.write(`${"é".repeat(1_000)}\n`);
      response.end("end");
    };
    const log = await cluster.log(place, { lastBytes: 10 });
    expect(log).toBe("ééé\nend");
    expect(server.requests[0]?.url).toBe("/api/v1/namespaces/here/pods/a/log?tailLines=10");
  });

  test("is empty as long as there is none, and `undefined` without its pod", async () => {
    server.next("other", status(400, "BadRequest", 'container "a" in pod "b" is waiting to start: ContainerCreating'));
    expect(await cluster.log(place, { lastBytes: 10 })).toBe("");
    server.next("other", status(404, "NotFound", 'pods "a" not found', { name: "a", kind: "pods" }));
    expect(await cluster.log(place, { lastBytes: 10 })).toBeUndefined();
  });
});
