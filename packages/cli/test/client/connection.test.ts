import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { describe, expect, onTestFinished, test } from "vitest";
import { osbert } from "./osbert-run.js";
import { realBroker, syncOnly } from "./real-broker.js";
import { plainCatalog, serverThat } from "./server-that.js";

const catalog = { "GET /v2/catalog": { status: 200, body: plainCatalog } };
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;

async function fileWith(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-client-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "file");
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

describe("credentials", () => {
  test("come from the environment or a file, as name and password or as a token", async () => {
    const { url, asked } = await serverThat(catalog);
    const run = (env: Record<string, string>, ...args: string[]) => osbert(["catalog", "--url", url, ...args], { env });
    await run({});
    await run({ OSBERT_LOGIN: "jo:a:b ü" });
    await run({ OSBERT_TOKEN: "t.o.k" });
    await run({ OSBERT_TOKEN: "", OSBERT_LOGIN: "jo:" });
    await run({ OSBERT_LOGIN: "not:used" }, "--credentials-file", await fileWith("file:secret\n"));
    await run({}, "--credentials-file", await fileWith("Bearer t.o.k\r\n"));
    expect(asked.map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      basic("jo:a:b ü"),
      "Bearer t.o.k",
      basic("jo:"),
      basic("file:secret"),
      "Bearer t.o.k",
    ]);
  });

  test("that cannot be right are refused without a word of them", async () => {
    const { url, asked } = await serverThat(catalog);
    for (const env of [
      { OSBERT_LOGIN: "hunter2" },
      { OSBERT_LOGIN: ":hunter2" },
      { OSBERT_TOKEN: "hunter2\nX-Evil: 1" },
      { OSBERT_TOKEN: "hunter2", OSBERT_LOGIN: "jo:hunter2" },
    ]) {
      const ran = await osbert(["catalog", "--url", url], { env });
      expect(ran.status).toBe(2);
      expect(ran.stderr).not.toContain("hunter2");
    }
    expect(await osbert(["catalog", "--url", url, "--credentials-file", await fileWith("hunter2")])).toMatchObject({
      status: 2,
    });
    expect(asked).toEqual([]);
  });

  test("of OSBERT_CREDENTIALS, which says who may come in, are taken where only one can be meant", async () => {
    const { url, asked } = await serverThat(catalog);
    const run = (env: Record<string, string>) => osbert(["catalog", "--url", url], { env });
    await run({ OSBERT_CREDENTIALS: "jo:secret\n" });
    await run({ OSBERT_CREDENTIALS: "platform:not-mine\nother:not-mine", OSBERT_LOGIN: "jo:mine" });
    await run({ OSBERT_CREDENTIALS: "platform:not-mine", OSBERT_TOKEN: "t.o.k" });
    const sent = [basic("jo:secret"), basic("jo:mine"), "Bearer t.o.k"];
    expect(asked.map(({ headers }) => headers.authorization)).toEqual(sent);
    const ambiguous = await run({ OSBERT_CREDENTIALS: "platform:hunter2\nother:hunter2" });
    expect(ambiguous.status).toBe(2);
    expect(ambiguous.stderr).toMatch(/OSBERT_CREDENTIALS has several lines.*OSBERT_LOGIN=name:password/);
    expect(ambiguous.stderr).not.toContain("hunter2");
    expect(asked).toHaveLength(3);
  });

  test("in a URL are refused, with what to do instead", async () => {
    for (const ran of [
      await osbert(["catalog", "--url", "http://jo:hunter2@127.0.0.1:1"]),
      await osbert(["catalog"], { env: { OSBERT_URL: "http://hunter2@127.0.0.1:1" } }),
    ]) {
      expect(ran.status).toBe(2);
      expect(ran.stderr).toContain("OSBERT_LOGIN=name:password");
      expect(ran.stderr).not.toContain("hunter2");
    }
  });

  test("that are wrong are told as wrong, with the place where they stand, and are not shown", async () => {
    const { url } = await realBroker([syncOnly]);
    const file = await fileWith("jo:hunter2");
    const run = (env: Record<string, string>, ...args: string[]) =>
      osbert(["deprovision", "i", "--url", url, ...args], { env });
    for (const [ran, reason] of [
      [await run({ OSBERT_LOGIN: "jo:hunter2" }), "what stands in OSBERT_LOGIN is wrong"],
      [await run({ OSBERT_CREDENTIALS: "jo:hunter2" }), "what stands in OSBERT_CREDENTIALS is wrong"],
      [await run({ OSBERT_TOKEN: "hunter2" }), "what stands in OSBERT_TOKEN is wrong"],
      [await run({}, "--credentials-file", file), `what stands in ${file} is wrong`],
      [await run({}), "you gave no name and password"],
    ] as const) {
      expect(ran.status).toBe(1);
      expect(ran.stderr).toContain("could not deprovision i: the broker does not know you\n");
      expect(ran.stderr).toMatch(/status +401[\s\S]*hint +set OSBERT_LOGIN/);
      expect(ran.stderr).toContain(reason);
      expect(ran.stderr).not.toContain("hunter2");
    }
  });

  test("that would go over the network unencrypted are warned of", async () => {
    const args = ["catalog", "--request-timeout", "0.05s", "--url", "http://0.0.0.0:9"];
    expect((await osbert(args, { env: { OSBERT_TOKEN: "t" } })).stderr).toContain(
      "warning: the credentials go over the network unencrypted",
    );
    expect((await osbert(args)).stderr).not.toContain("warning");
  });
});

describe("where", () => {
  test.each(["127.0.0.1:8080", "ftp://x", "", "http://", "http://x/?a=b", "http://x/#y"])(
    "%j is no URL of a broker",
    async (url) => {
      const ran = await osbert(["catalog", `--url=${url}`]);
      expect(ran.status).toBe(2);
      expect(ran.stderr).toMatch(/^error: the broker's URL must/);
    },
  );

  test("a path before /v2 is kept, and /v2 itself may stand there or not", async () => {
    const { url, asked } = await serverThat({ "GET /broker/v2/catalog": { status: 200, body: plainCatalog } });
    for (const path of ["/broker", "/broker/", "/broker/v2", "/broker/v2/"])
      expect(await osbert(["catalog", "--url", url + path])).toMatchObject({ status: 0 });
    expect(asked).toHaveLength(4);
  });

  test("--platform leads to one of several platforms, whose ids are kept apart", async () => {
    const { env } = await realBroker([syncOnly], { platforms: ["cf", "k8s"] });
    const run = (platform: string, ...args: string[]) => osbert([...args, "--platform", platform], { env });
    expect(await run("cf", "provision", "i")).toMatchObject({ status: 0 });
    expect(await run("cf", "last-operation", "i")).toMatchObject({ status: 0 });
    expect(await run("k8s", "last-operation", "i")).toMatchObject({ status: 1 });
    for (const wrong of ["a/b", "..", ""]) expect(await run(wrong, "catalog")).toMatchObject({ status: 2 });
  });

  test("whose action it is reaches the broker", async () => {
    const { url, asked } = await serverThat(catalog);
    const run = (identity: string) => osbert(["catalog", "--url", url, "--originating-identity", identity]);
    expect(await run('kubernetes:{"username":"Zoë:x"}')).toMatchObject({ status: 0 });
    const [platform, value = ""] = String(asked[0]?.headers["x-broker-api-originating-identity"]).split(" ");
    expect(platform).toBe("kubernetes");
    expect(JSON.parse(Buffer.from(value, "base64").toString())).toEqual({ username: "Zoë:x" });
    for (const wrong of ["jo", "kubernetes:jo", 'two words:{"a":1}', "x:[1]", ':{"a":1}'])
      expect(await run(wrong)).toMatchObject({ status: 2 });
    expect(asked).toHaveLength(1);
  });
});

describe("TLS", () => {
  async function tlsServer() {
    const { private: key, cert } = await generate([{ name: "commonName", value: "127.0.0.1" }], {
      extensions: [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
    });
    const reactions = {
      ...catalog,
      "PUT /v2/service_instances/i": { status: 201, body: { dashboard_url: "https://d" } },
    };
    return { ...(await serverThat(reactions, { key, cert })), ca: await fileWith(cert) };
  }

  test("of an own authority works with --ca, and without it says so", async () => {
    const { url, asked, ca } = await tlsServer();
    const without = await osbert(["catalog", "--url", url]);
    expect(without.status).toBe(4);
    expect(without.stderr).toContain("--ca");
    expect(asked).toEqual([]);
    const ran = await osbert(["provision", "i", "--url", url, "--ca", ca, "-p", "name=Zoë"], {
      env: { OSBERT_LOGIN: "a:b" },
    });
    expect(ran).toMatchObject({ status: 0, stdout: "i is provisioned: db, small\ndashboard: https://d\n", stderr: "" });
    expect(JSON.parse(asked[1]?.body ?? "")).toMatchObject({ parameters: { name: "Zoë" } });
    expect(asked[1]?.headers.authorization).toBe(basic("a:b"));
  });

  test("--ca trusts that authority alone, and is refused where there is no TLS", async () => {
    const { url } = await tlsServer();
    const { ca: other } = await tlsServer();
    expect(await osbert(["catalog", "--url", url, "--ca", other])).toMatchObject({ status: 4 });
    expect(await osbert(["catalog", "--url", url.replace("https", "http"), "--ca", other])).toMatchObject({
      status: 2,
    });
  });
});
