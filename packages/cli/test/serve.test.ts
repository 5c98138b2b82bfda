import { spawnSync } from "node:child_process";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Catalog } from "@osbert/protocol";
import { describe, expect, test, vi } from "vitest";
import { loadModule } from "../src/serve/load-module.js";
import { answersAt, ask, descriptions, folderWith, run, servicesModule, start } from "./program.js";

const settings = (more = "") =>
  `module: ${servicesModule}\nlisten: { port: 0 }\ncredentials: [{ username: a, password: b }]\n${more}`;
const described = (text: string) => settings(`catalog: { services: { database: { description: ${text} } } }\n`);

const provision = {
  service_id: "database-id",
  plan_id: "small-id",
  organization_guid: "o",
  space_guid: "s",
};

/** A busy machine takes its time; a quiet one does not wait. */
const patience = { timeout: 20_000 };

describe("serving", () => {
  test("a TypeScript module is served as the file says, and goes on in the same folder after a stop", async () => {
    const cwd = folderWith({ "osbert.yaml": described("Operated") });
    const first = start(["serve"], { cwd });
    const url = await answersAt(first);
    expect(await descriptions(url)).toEqual({ database: "Operated", queue: "A queue, says the code" });
    expect((await ask(url, "PUT", "/v2/service_instances/one", { body: provision })).status).toBe(201);
    const bind = { service_id: "queue-id", plan_id: "only-id" };
    await ask(url, "PUT", "/v2/service_instances/two", { body: { ...provision, ...bind } });
    const bound = await ask(url, "PUT", "/v2/service_instances/two/service_bindings/x", { body: bind });
    expect(bound.body.credentials).toEqual({ secret: "from a private field" });
    first.signal("SIGTERM");
    expect(await first.ended).toBe(0);

    const second = start(["serve", "osbert.yaml"], { cwd });
    const again = await answersAt(second);
    expect((await ask(again, "PUT", "/v2/service_instances/one", { body: provision })).status).toBe(200);
    second.signal("SIGINT");
    expect(await second.ended).toBe(0);
    expect(second.stderr()).not.toMatch(/ (warn|error) /);
  });

  test("the errors that a module throws are those that the engine knows", async () => {
    const cwd = folderWith({ "osbert.yaml": settings("store: 'memory:'\n") });
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    const body = { ...provision, plan_id: "large-id", parameters: { refuse: true } };
    const { status, body: answer } = await ask(url, "PUT", "/v2/service_instances/one", { body });
    // At once and for good: an error of a class that it does not know would be tried again for a day.
    expect([status, answer.description]).toEqual([500, "refused for good"]);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("the environment alone is enough, and a credential is made and shown once", async () => {
    const cwd = folderWith({});
    const env = { OSBERT_MODULE: servicesModule, PORT: "0", OSBERT_DATA: "kept", OSBERT_LOG_FORMAT: "json" };
    const broker = start(["serve"], { cwd, env });
    const url = await answersAt(broker);
    const [, credential = ""] = await broker.says(/shown only now: (osbert:\S+)/);
    expect((await ask(url, "GET", "/v2/catalog", { credential })).status).toBe(200);
    expect((await ask(url, "GET", "/v2/catalog", { credential: "osbert:wrong" })).status).toBe(401);
    expect(broker.stdout().split(credential)).toHaveLength(2);
    expect(broker.stdout()).toContain(`sqlite:${join(cwd, "kept", "broker.db")}`);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);

    const file = join(cwd, "kept", "credential.json");
    expect(readFileSync(file, "utf8")).not.toContain(credential.slice("osbert:".length));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const again = start(["serve"], { cwd, env });
    expect((await ask(await answersAt(again), "GET", "/v2/catalog", { credential })).status).toBe(200);
    expect(again.stdout()).toContain("the password of the first start");
    again.signal("SIGTERM");
    expect(await again.ended).toBe(0);
  });

  test("platforms and their credentials are kept apart", async () => {
    const more = "platforms: [east, west]\n";
    const yaml = settings(more).replace("password: b", "password: b, platform: east");
    const broker = start(["serve"], { cwd: folderWith({ "osbert.yaml": yaml }) });
    const url = await answersAt(broker);
    expect((await ask(url, "GET", "/east/v2/catalog")).status).toBe(200);
    expect((await ask(url, "GET", "/west/v2/catalog")).status).toBe(401);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("it goes on when nobody reads its output and log any more", async () => {
    const cwd = folderWith({
      "osbert.yaml": settings("store: 'memory:'\nauthentication: none\n").replace(/cred.*\n/, ""),
    });
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    await broker.says(/warn {2}authentication is none: anyone/);
    broker.child.stdout?.destroy();
    broker.child.stderr?.destroy();
    writeFileSync(join(cwd, "osbert.yaml"), described("two").replace(/cred.*\n/, "authentication: none\n"));
    broker.signal("SIGHUP");
    await vi.waitFor(async () => expect((await descriptions(url)).database).toBe("two"), patience);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("a second signal stops at once what will not stop", async () => {
    const module = `
      export const services = [{ id: "s", name: "s", description: "s", plans: { p: { id: "p", description: "p" } },
        async provision() { process.stdout.write("working\\n"); await new Promise((done) => setTimeout(done, 600_000)); } }];`;
    const yaml = settings("limits: { drain: 1h, grace: 10m }\n").replace(servicesModule, "hangs.mjs");
    const broker = start(["serve"], { cwd: folderWith({ "osbert.yaml": yaml, "hangs.mjs": module }) });
    const url = await answersAt(broker);
    const body = { ...provision, service_id: "s", plan_id: "p" };
    await ask(url, "PUT", "/v2/service_instances/one?accepts_incomplete=true", { body });
    await broker.says(/working/);
    broker.signal("SIGTERM");
    await broker.says(/stopping; once more stops at once/);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(143);
  });
});

describe("reloading", () => {
  test("SIGHUP reloads the catalog; what is refused changes nothing and says why", async () => {
    const cwd = folderWith({ "osbert.yaml": `${described("one")}reload: { watch: false }\n` });
    const file = join(cwd, "osbert.yaml");
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);

    writeFileSync(file, `${described("two")}reload: { watch: false }\n`);
    broker.signal("SIGHUP");
    await broker.says(/info {2}reloaded \(SIGHUP\): changed catalog.services.database.description/);
    expect((await descriptions(url)).database).toBe("two");

    const refused: readonly (readonly [string, RegExp])[] = [
      ["module: 'x", /osbert.yaml:1:9 this ' is not closed/],
      [
        described("three").replace("database", "databse"),
        /osbert.yaml:4:24 catalog.services.databse: the module has no serv/,
      ],
      [`${described("three")}lisen: 1\n`, /osbert.yaml:5:1 lisen: is not a setting; did you mean listen\?/],
      [
        described("three, plans: { small: { id: large-id } }"),
        /osbert.yaml:4:\d+ catalog.services.database.plans.large.id: /,
      ],
    ];
    for (const [index, [yaml, reason]] of refused.entries()) {
      writeFileSync(file, yaml);
      broker.signal("SIGHUP");
      await broker.says(new RegExp(`(?:[\\s\\S]*?not reloaded){${index + 1}}`));
      expect(broker.stderr()).toMatch(reason);
      expect((await descriptions(url)).database).toBe("two");
    }

    writeFileSync(file, `${described("four").replace("port: 0", "port: 1")}log: { level: warn }\n`);
    broker.signal("SIGHUP");
    await broker.says(/warn {2}only a restart changes listen.port, reload.watch; until then the old values hold/);
    expect((await descriptions(url)).database).toBe("four");
    // The level of the log has changed, too: only the first reload, before that, was worth a line.
    expect(broker.stderr().match(/info {2}reloaded/g)).toHaveLength(1);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("a plan that has instances is neither dropped nor given another id, unless that is confirmed", async () => {
    const plan = (text: string, more = "") =>
      settings(
        `reload: { watch: false }\ncatalog: { ${more} services: { database: { plans: { small: { ${text} } } } } }\n`,
      );
    const cwd = folderWith({ "osbert.yaml": plan("free: true") });
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    await ask(url, "PUT", "/v2/service_instances/one", { body: provision });
    const plans = async () => {
      const { body } = await ask(url, "GET", "/v2/catalog");
      const [first] = body.services as readonly { readonly plans: readonly { readonly id: string }[] }[];
      return first?.plans.map(({ id }) => id);
    };
    const reload = async (yaml: string, says: RegExp) => {
      writeFileSync(join(cwd, "osbert.yaml"), yaml);
      broker.signal("SIGHUP");
      await broker.says(says);
    };
    await reload(
      plan("offered: false"),
      /not reloaded [\s\S]*plan small of database \(small-id\) is gone\nWith catalog.retire/,
    );
    expect(await plans()).toEqual(["small-id", "large-id"]);
    await reload(plan("id: other"), /not reloaded [\s\S]*plan small of database \(small-id\) has another id, other/);
    expect(await plans()).toEqual(["small-id", "large-id"]);
    await reload(plan("offered: false", "retirePlansInUse: true,"), /info {2}reloaded/);
    expect(await plans()).toEqual(["large-id"]);
    const gone = await ask(url, "DELETE", "/v2/service_instances/one?service_id=database-id&plan_id=small-id");
    expect(gone.status).toBe(200);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("schemas are published in draft-04 with a warning of what that leaves out, or as written; a reload changes it", async () => {
    const schema = "{ type: object, properties: { tags: { propertyNames: { maxLength: 3 } } } }";
    const plan = `services: { database: { plans: { small: { schemas: { provision: ${schema} } } } } }`;
    const yaml = (more: string) => settings(`reload: { watch: false }\ncatalog: { ${more} ${plan} }\n`);
    const cwd = folderWith({ "osbert.yaml": yaml("") });
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    await broker.says(
      /warn {2}catalog: services\[0\]\.plans\[0\]\.schemas\.service_instance\.create\.parameters#\/properties\/tags\/propertyNames\/maxLength is left out in draft-04/,
    );
    const draft = async () => {
      const { body } = await ask(url, "GET", "/v2/catalog");
      return (body as unknown as Catalog).services[0]?.plans[0]?.schemas?.service_instance?.create?.parameters?.$schema;
    };
    expect(await draft()).toBe("http://json-schema.org/draft-04/schema#");
    writeFileSync(join(cwd, "osbert.yaml"), yaml("schemaDraft: as-written,"));
    broker.signal("SIGHUP");
    await broker.says(/info {2}reloaded \(SIGHUP\): changed catalog\.schemaDraft/);
    expect(await draft()).toBe("http://json-schema.org/draft-07/schema#");
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("a change of the file reloads it, whether it is written or replaced", async () => {
    const cwd = folderWith({ "osbert.yaml": described("one") });
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    const becomes = (text: string) =>
      vi.waitFor(async () => expect((await descriptions(url)).database).toBe(text), patience);
    writeFileSync(join(cwd, "osbert.yaml"), described("two"));
    await becomes("two");
    for (const text of ["three", "four"]) {
      writeFileSync(join(cwd, "other"), described(text));
      renameSync(join(cwd, "other"), join(cwd, "osbert.yaml"));
      await becomes(text);
    }
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });

  test("a change of a picture reloads it, also one that was missing", async () => {
    const svg = (text: string) => `<svg><!-- ${text} --></svg>`;
    const yaml = (image: string) => settings(`catalog: { services: { database: { image: ${image} } } }\n`);
    const cwd = folderWith({ "osbert.yaml": yaml("one.svg"), "one.svg": svg("one") });
    const broker = start(["serve"], { cwd });
    const url = await answersAt(broker);
    const image = async () => {
      const { body } = await ask(url, "GET", "/v2/catalog");
      const [first] = body.services as readonly { readonly metadata: { readonly imageUrl: string } }[];
      return Buffer.from(first?.metadata.imageUrl.split(",")[1] ?? "", "base64").toString();
    };
    const becomes = (text: string) => vi.waitFor(async () => expect(await image()).toBe(svg(text)), patience);
    expect(await image()).toBe(svg("one"));
    writeFileSync(join(cwd, "one.svg"), svg("two"));
    await becomes("two");
    writeFileSync(join(cwd, "osbert.yaml"), yaml("late.svg"));
    await broker.says(/not reloaded .*late.svg is not there/);
    expect(await image()).toBe(svg("two"));
    writeFileSync(join(cwd, "late.svg"), svg("three"));
    await becomes("three");
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  });
});

describe("what cannot start says so in a sentence", () => {
  test("a port that is in use", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    const cwd = folderWith({ "osbert.yaml": settings("store: 'memory:'\n") });
    const { status, stderr } = await run(["serve"], { cwd, env: { PORT: String(port) } });
    server.close();
    expect(stderr).toBe(
      `cannot listen on 127.0.0.1, port ${port}: it is in use; set listen.port or PORT to another one\n`,
    );
    expect(status).toBe(1);
  });

  test("an address that is not of this machine", async () => {
    const yaml = settings("store: 'memory:'\n").replace("port: 0", "host: 192.0.2.1");
    const { status, stderr } = await run(["serve"], { cwd: folderWith({ "osbert.yaml": yaml }) });
    expect(stderr).toBe("cannot listen on 192.0.2.1, port 8080: this machine has no such address; set listen.host\n");
    expect(status).toBe(1);
  });

  test.each([
    ["serve", "postgres://user:***@127.0.0.1:1/db", "PostgreSQL refused the connection"],
    ["migrate", "mysql://user:***@127.0.0.1:1/db", "the MySQL server refused the connection"],
  ])("a database that is not there: %s %s", async (command, store, words) => {
    const cwd = folderWith({ "osbert.yaml": settings() });
    const env = { OSBERT_STORE: store.replace("***", "hunter2") };
    const { status, stdout, stderr } = await run([command], { cwd, env });
    expect(stderr).toBe(`the store ${store} cannot be opened: ${words}\n`);
    expect(stdout).toBe("");
    expect(status).toBe(1);
  });

  test("a folder for data that cannot be made", async () => {
    const cwd = folderWith({ "osbert.yaml": settings("data: file/below\n"), file: "" });
    const { status, stderr } = await run(["serve"], { cwd });
    expect(stderr).toBe(
      `the folder ${join(cwd, "file/below")} cannot be made (ENOTDIR); write another one as data: in the settings\n`,
    );
    expect(status).toBe(1);
  });

  test("a store that another process owns", async () => {
    const cwd = folderWith({ "osbert.yaml": settings() });
    const owner = start(["serve"], { cwd });
    await answersAt(owner);
    const { status, stderr } = await run(["serve"], { cwd });
    expect(stderr).toMatch(
      /^the store sqlite:\S+broker.db cannot be opened: .* is in use by another process; [^\n]+\n$/,
    );
    expect(status).toBe(1);
    owner.signal("SIGTERM");
    expect(await owner.ended).toBe(0);
  });

  test.each([
    ["export const services = [;", /^the module \S+m.ts cannot be loaded: [\s\S]*m.ts:1:25: /],
    ["const x: string = 1;\nthrow new Error('no cluster');", /cannot be loaded: no cluster\n +at .*m.ts:2:7\)?\n$/],
  ])("a TypeScript module that cannot be loaded: %s", async (text, words) => {
    const cwd = folderWith({ "osbert.yaml": settings().replace(servicesModule, "m.ts"), "m.ts": text });
    const { status, stderr } = await run(["serve"], { cwd });
    expect(stderr).toMatch(words);
    expect(status).toBe(1);
  });

  // The program as it is built: from source it runs under a loader that takes both for the same.
  test("a TypeScript module that is taken for one of CommonJS is loaded, or told how to say otherwise", () => {
    const text = "export const services = [1];\n";
    const cwd = folderWith({ "m.ts": text, "package.json": '{"type":"commonjs"}', "osbert.yaml": "module: m.ts\n" });
    const program = fileURLToPath(new URL("../bin/osbert.js", import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [program, "serve"], {
      cwd,
      timeout: 30_000,
      encoding: "utf8",
    });
    const isLoaded = Number.parseInt(process.versions.node, 10) >= 22;
    expect(stderr).toContain(
      isLoaded
        ? "item 1 of the services that"
        : 'it is taken for a CommonJS module; write "type": "module" into its package.json',
    );
    expect(status).toBe(1);
  });

  test.each([
    ["no.mjs", "", /^the module \S+no.mjs is not there; write its path as module: in the settings$/],
    ["m.mjs", "export const other = 1;", /m.mjs must export a list of services; write `export const services = /],
    ["m.mjs", "export default () => [1];", /item 1 of the services that \S+m.mjs exports is not a service/],
    ["m.mjs", "export default () => { throw new Error('none'); };", /the default function of \S+m.mjs failed: none/],
  ])("a module without services: %s %s", async (name, text, words) => {
    const path = join(folderWith(text === "" ? {} : { [name]: text }), name);
    await expect(loadModule(path, { data: "/" })).rejects.toThrow(words);
  });

  test("a schedule that is none, which the broker finds", async () => {
    const cwd = folderWith({ "osbert.yaml": settings('cleanup: { bindings: { failed: "0 0 99 * * *" } }\n') });
    const { status, stderr } = await run(["serve"], { cwd });
    expect(stderr).toMatch(/^osbert.yaml:4:32 cleanup.bindings.failed: must be a cron pattern of six fields[^\n]*\n$/);
    expect(status).toBe(2);
  });

  test("settings that must be changed, with status 2 and no stack", async () => {
    const cwd = folderWith({ "osbert.yaml": `${settings()}lisen: {}\n` });
    const { status, stdout, stderr } = await run(["serve"], { cwd });
    expect(stderr).toBe("osbert.yaml:4:1 lisen: is not a setting; did you mean listen?\n");
    expect(stdout).toBe("");
    expect(status).toBe(2);
  });
});

test("a module may make its services of the folder for data", async () => {
  // It also keeps a timer, which must not keep the program from ending.
  const module = `setInterval(() => {}, 60_000); export default async ({ data }) => [{ id: "s", name: "s", description: data,
    plans: { p: { id: "p", description: "p" } } }];`;
  const cwd = folderWith({ "osbert.yaml": settings("data: kept\n").replace(servicesModule, "m.mjs"), "m.mjs": module });
  const broker = start(["serve"], { cwd });
  expect(await descriptions(await answersAt(broker))).toEqual({ s: join(cwd, "kept") });
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
});

test("the version is that of the package", async () => {
  const { stdout, status } = await run(["--version"], { cwd: folderWith({}) });
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  expect(stdout).toBe(`${(JSON.parse(manifest) as { version: string }).version}\n`);
  expect(status).toBe(0);
});
