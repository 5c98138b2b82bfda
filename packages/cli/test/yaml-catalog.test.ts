import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answersAt, ask, folderWith, run, start } from "./program.js";

/** Code for the work alone: nothing of the catalog is in it. */
const functions = `
export const services = [{
  name: "books",
  state: { type: "object", properties: { shelf: { type: "string" } }, required: ["shelf"] },
  async provision(operation, { plan, parameters }) {
    return { state: { shelf: plan + " " + (parameters.books ?? 0) } };
  },
  async bind(operation, { state }) {
    return { credentials: { shelf: state.shelf } };
  },
}];
`;

const application = `
spring:
  cloud:
    openservicebroker:
      catalog:
        services:
        - id: com.example.books
          name: books
          description: A store of books
          bindable: true
          instances-retrievable: true
          metadata:
            display-name: Books
            image-url-resource: books.svg
          plans:
          - id: com.example.books.small
            name: small
            description: Few books
            schemas:
              serviceinstance:
                create:
                  parameters:
                    "[$schema]": http://json-schema.org/draft-04/schema#
                    type: object
                    properties: { books: { type: integer, maximum: 10 } }
                    required: [books]
          - { id: com.example.books.large, name: large, description: Many books, free: false }
com.equalities.osbapi:
  service-instances.operations: { cleanup-age: 10d, cleanup-all: "0 0 0 */10 * *" }
`;

const more =
  "listen: { port: 0 }\nstore: 'memory:'\nreload: { watch: false }\ncredentials: [{ username: a, password: b }]\n";

/** The reload of one service more, which is the last item of the list. */
const letters = (use: string, plans: string) =>
  `    - { name: letters, use: ${use}, id: letters, description: Letters, image: books.svg, plans: [${plans}] }\n`;
const plan = (name: string) => `{ name: ${name}, id: letters-${name}, description: A plan }`;

test("a catalog that was Spring's is imported, accepted, served, and changed while it runs", async () => {
  const cwd = folderWith({
    "application.yml": application,
    "services.ts": functions,
    "books.svg": "<svg></svg>",
  });
  const imported = await run(["config", "import-spring", "application.yml"], { cwd });
  expect([imported.status, imported.stderr]).toEqual([0, ""]);
  const write = (added = "") => writeFileSync(join(cwd, "osbert.yaml"), more + imported.stdout + added);
  write();
  const checked = await run(["config"], { cwd });
  expect([checked.status, checked.stderr]).toEqual([0, ""]);
  expect(checked.stdout).toMatch(/^catalog.services.books.plans.large.description +Many books +osbert.yaml:\d+:\d+$/m);

  const broker = start(["serve"], { cwd });
  const url = await answersAt(broker);
  const names = async () => {
    const { body } = await ask(url, "GET", "/v2/catalog");
    const services = body.services as readonly { name: string; plans: readonly { name: string }[] }[];
    return services.flatMap(({ name, plans }) => plans.map((own) => `${name} ${own.name}`));
  };
  expect(await names()).toEqual(["books small", "books large"]);
  const ids = { service_id: "com.example.books", plan_id: "com.example.books.small" };
  const provision = (id: string, service: object, parameters: object) =>
    ask(url, "PUT", `/v2/service_instances/${id}`, {
      body: { ...service, parameters, organization_guid: "o", space_guid: "s" },
    });
  expect((await provision("one", ids, { books: 11 })).status).toBe(400);
  expect((await provision("one", ids, { books: 3 })).status).toBe(201);
  const bound = await ask(url, "PUT", "/v2/service_instances/one/service_bindings/b", { body: ids });
  expect(bound.body.credentials).toEqual({ shelf: "small 3" });

  const reload = async (added: string, says: RegExp) => {
    write(added);
    broker.signal("SIGHUP");
    await broker.says(says);
  };
  await reload(letters("books", plan("air")), /reloaded \(SIGHUP\): changed catalog.services.letters.use/);
  expect(await names()).toEqual(["books small", "books large", "letters air"]);
  const air = { service_id: "letters", plan_id: "letters-air" };
  expect((await provision("two", air, {})).status).toBe(201);

  await reload(
    letters("books", plan("sea")),
    /not reloaded [\s\S]*plan air of letters \(letters-air\) is gone\nWith catalog.retire/,
  );
  await reload("", /(not reloaded [\s\S]*){2}plan air of letters \(letters-air\) is gone/);
  await reload(
    letters("bokos", plan("air")),
    /osbert.yaml:\d+:\d+ catalog.services.letters.use: .*did you mean books\?/,
  );
  await reload(
    letters("books", `${plan("air")}, ${plan("air")}`),
    /catalog.services.letters.plans.air: is there twice/,
  );
  expect(await names()).toEqual(["books small", "books large", "letters air"]);
  await reload(letters("books", `${plan("air")}, ${plan("sea")}`), /changed catalog.services.letters.plans.sea.id/);
  expect(await names()).toEqual(["books small", "books large", "letters air", "letters sea"]);
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
});

test("a file that cannot be read is told, with status 2; one that says nothing of a catalog is not", async () => {
  const cwd = folderWith({ "broken.yml": "a: [1\n", "other.yml": "server: { port: 1 }\n" });
  const broken = await run(["config", "import-spring", "broken.yml"], { cwd });
  expect([broken.status, broken.stdout]).toEqual([2, ""]);
  expect(broken.stderr).toMatch(/^broken.yml:1:4 this \[ is not closed/);
  const missing = await run(["config", "import-spring", "none.yml"], { cwd });
  expect([missing.status, missing.stderr]).toEqual([2, "none.yml is not there\n"]);
  expect((await run(["config", "import-spring", "other.yml"], { cwd })).status).toBe(0);
});

test("what the catalog lacks at start is told with its place in the file, and the program ends", async () => {
  const yaml = `module: services.mjs
catalog:
  services:
    books:
      id: b
      plans: { small: { id: s } }
`;
  const cwd = folderWith({ "osbert.yaml": `${more}${yaml}`, "services.mjs": functions });
  const { status, stderr } = await run(["serve"], { cwd });
  expect(status).toBe(2);
  expect(stderr).toBe(
    "osbert.yaml:10:16 catalog.services.books.plans.small: a new one needs description\n" +
      "osbert.yaml:8:5 catalog.services.books.description: is missing; platforms show it\n",
  );
});
