import { afterAll, describe, expect, test } from "vitest";
import { loadSettings } from "../src/settings/load.js";
import { readSpringFile } from "../src/spring/read-spring-file.js";
import { settingsYaml } from "../src/spring/settings-yaml.js";
import { toSettings } from "../src/spring/to-settings.js";
import { systemWith } from "./system.js";

const svg = "<svg xmlns='http://www.w3.org/2000/svg'/>";

/** What is printed for a file of this name. */
function imported(text: string, file = "application.yml") {
  const { properties, notes } = readSpringFile(file, systemWith({ [`/place/${file}`]: text }));
  const converted = toSettings(properties);
  const yaml = settingsYaml({ ...converted, notes: [...notes, ...converted.notes] }, file);
  return { yaml, settings: converted.settings, comments: yaml.split("\n").filter((line) => line.startsWith("#")) };
}

/** What the settings that were printed come to. */
function accepted(yaml: string, environment: Readonly<Record<string, string>> = {}) {
  return loadSettings("o.yaml", systemWith({ "/place/o.yaml": yaml, "/place/books.png": svg }, environment)).settings;
}

const whole = `
server: { port: 8080 }
spring:
  application: { name: books }
  cloud:
    openservicebroker:
      api-version: 2.15
      catalog:
        services:
        - id: com.example.books
          name: books
          description: A store of books
          bindable: true
          plan-updateable: true
          instances-retrievable: true
          bindings-retrievable: false
          allow-context-updates: true
          tags: [books, sample]
          requires: [syslog_drain]
          metadata:
            display-name: Books
            image-url-resource: classpath:/books.png
            long-description: All books there are.
            provider-display-name: Example
            documentation-url: https://books.example/docs
            support-url: https://books.example/help
            properties: { team: reading, floors: [1, 2] }
          dashboard-client: { id: dash, secret: hunter2, redirect-uri: https://books.example/dash }
          plans:
          - id: com.example.books.small
            name: small
            description: Few books
            free: false
            bindable: true
            plan-updateable: false
            maximum-polling-duration: 600
            maintenance-info: { version: 2.10.0, description: New covers }
            metadata:
              display-name: Small
              bullets: [ten books, one shelf]
              costs: [{ amount: { eur: 9.5, usd: 10 }, unit: MONTHLY }]
              properties: { shelf: oak }
            schemas:
              serviceinstance:
                create:
                  parameters:
                    "[$schema]": http://json-schema.org/draft-04/schema#
                    type: object
                    properties: { books: { type: integer, minimum: 1 } }
                    required: [books]
                update: { parameters: { type: object } }
              servicebinding: { create: { parameters: { type: object, additionalProperties: false } } }
        - { id: com.example.letters, name: letters, description: Letters, plans: [{ id: l, name: l, description: L }] }
com:
  equalities:
    osbapi:
      service-bindings:
        force-delete-unknown: true
        operations: { cleanup-age: 10d, cleanup-all: "0 0 0 */10 * *", cleanup-succeeded: "-" }
      service-instances:
        operations: { cleanup-failed: "@daily" }
`;

describe("the equivalent of Spring's properties", () => {
  test("where it listens and who may ask are translated, and TLS is not lost in silence", () => {
    const { yaml, settings, comments } = imported(`
server:
  port: 8443
  servlet: { context-path: /broker }
  ssl: { key-store: classpath:keys.p12, key-store-password: hunter2 }
spring:
  security: { user: { name: platform, password: hunter2, roles: [ADMIN] } }
  cloud: { openservicebroker: { catalog: { services: [] } } }
`);
    expect(settings).toMatchObject({
      listen: { port: 8443 },
      credentials: [{ username: "platform", password: { env: "SPRING_SECURITY_USER_PASSWORD" } }],
    });
    expect(yaml).not.toContain("hunter2");
    for (const told of [
      /server: Spring answers at all addresses .* listen\.host/,
      /server\.ssl: .*tls\.certificate and tls\.key/,
      /server\.servlet: has no equivalent/,
      /spring\.security\.user\.password: .*SPRING_SECURITY_USER_PASSWORD/,
      /spring\.security\.user\.roles: has no equivalent/,
    ])
      expect(comments).toContainEqual(expect.stringMatching(told));
    const { credentials, listen } = accepted(yaml, { SPRING_SECURITY_USER_PASSWORD: "other" });
    expect([credentials?.[0]?.password?.reveal(), listen.port]).toEqual(["other", 8443]);
  });

  test("a user without a password, and addresses of one machine alone", () => {
    const { settings, comments } = imported("server.address=10.0.0.1\nspring.security.user.name=x\n", "a.properties");
    expect(settings).toEqual({ module: "services.ts", listen: { host: "10.0.0.1" } });
    expect(comments).toContainEqual(expect.stringContaining("spring.security.user: has no password"));
  });

  test("every property that Spring has is there, and the settings are accepted", () => {
    const { yaml } = imported(whole);
    const { catalog, api, cleanup } = accepted(yaml, { BOOKS_DASHBOARD_SECRET: "other" });
    expect(api).toMatchObject({ minimumVersion: "2.15", forceDeleteUnknown: { instances: false, bindings: true } });
    const day = 86_400_000;
    expect(cleanup).toMatchObject({
      bindings: { all: "0 0 0 */10 * *", succeeded: undefined, age: 10 * day },
      instances: { failed: "0 0 0 * * *", age: 3 * day },
    });
    const { plans, dashboardClient, image, ...books } = catalog.services.get("books") ?? {};
    expect(books).toMatchObject({
      use: "books",
      id: "com.example.books",
      description: "A store of books",
      bindable: true,
      planUpdateable: true,
      instancesRetrievable: true,
      bindingsRetrievable: false,
      allowContextUpdates: true,
      tags: ["books", "sample"],
      requires: ["syslog_drain"],
      displayName: "Books",
      longDescription: "All books there are.",
      providerDisplayName: "Example",
      documentationUrl: "https://books.example/docs",
      supportUrl: "https://books.example/help",
      metadata: { team: "reading", floors: [1, 2] },
    });
    expect(image?.dataUri).toMatch(/^data:image\/svg/);
    expect(dashboardClient?.redirectUri).toBe("https://books.example/dash");
    expect(plans?.get("small")).toMatchObject({
      id: "com.example.books.small",
      description: "Few books",
      free: false,
      bindable: true,
      planUpdateable: false,
      maximumPollingDuration: 600,
      maintenanceInfo: { version: "2.10.0", description: "New covers" },
      displayName: "Small",
      bullets: ["ten books", "one shelf"],
      costs: [{ amount: new Map(Object.entries({ eur: 9.5, usd: 10 })), unit: "MONTHLY" }],
      metadata: { shelf: "oak" },
      schemas: {
        provision: {
          $schema: "http://json-schema.org/draft-04/schema#",
          properties: { books: { type: "integer", minimum: 1 } },
          required: ["books"],
        },
        update: { type: "object" },
        bind: { additionalProperties: false },
      },
    });
    // Without a word, Spring does not bind.
    expect(catalog.services.get("letters")?.bindable).toBe(false);
  });

  test("a secret is not printed, and what has no equivalent is in comments with its place", () => {
    const { yaml, comments } = imported(
      whole.replace("api-version: 2.15", "base-path: /broker\n      api-version-check-enabled: false"),
    );
    expect(yaml).not.toContain("hunter2");
    expect(comments.join("\n")).toMatch(/application.yml:7:7 \S+base-path: has no equivalent/);
    expect(comments.join("\n")).toMatch(/application.yml:8:7 \S+api-version-check-enabled: has no equivalent/);
    expect(comments.join("\n")).toMatch(/secret: is not repeated here; .*BOOKS_DASHBOARD_SECRET/);
    expect(comments.join("\n")).toMatch(/image-url-resource: put books.png next to the settings/);
  });

  test("any spelling of a name is that name, nested or with dots, in YAML and in .properties", () => {
    const base = "spring.cloud.openservicebroker.catalog.services[0]";
    const properties = `
! an old comment
${base}.id=a
spring.cloud.open-service-broker.catalog.services[0].name : letters
${base}.description   A long \\
     descripti\\u00f6n \\= this
${base}.plan_updateable=yes
${base}.instancesRetrievable = TRUE
${base}.tags=one, two
${base}.plans[1].id=p2
${base}.plans[1].name=second
${base}.plans[1].description=Second
${base}.plans[0].id=p1
${base}.plans[0].name=first
${base}.plans[0].description=First
${base}.plans[0].metadata.costs[0].amount.eur=9.5
${base}.plans[0].metadata.costs[0].unit=MONTHLY
${base}.plans[0].schemas.service-instance.create.parameters[$schema]=http://json-schema.org/draft-07/schema#
${base}.plans[0].schemas.serviceInstance.create.parameters.properties.size.minimum=1
${base}.plans[0].schemas.service_instance.create.parameters.required[0]=size
#---
com.equalities.osbapi.serviceInstances.forceDeleteUnknown=on
`;
    const { yaml, settings } = imported(properties, "application.properties");
    expect(settings).toEqual({
      module: "services.ts",
      api: { forceDeleteUnknown: { instances: true } },
      catalog: {
        services: [
          {
            name: "letters",
            use: "letters",
            id: "a",
            description: "A long descriptiön = this",
            bindable: false,
            planUpdateable: true,
            instancesRetrievable: true,
            tags: ["one", "two"],
            plans: [
              {
                name: "first",
                id: "p1",
                description: "First",
                costs: [{ amount: { eur: 9.5 }, unit: "MONTHLY" }],
                schemas: {
                  provision: {
                    $schema: "http://json-schema.org/draft-07/schema#",
                    properties: { size: { minimum: 1 } },
                    required: ["size"],
                  },
                },
              },
              { name: "second", id: "p2", description: "Second" },
            ],
          },
        ],
      },
    });
    expect(accepted(yaml).catalog.services.get("letters")?.plans.size).toBe(2);
    const dotted = `
spring.cloud.openservicebroker.catalog:
  services[0]: { id: a, name: letters, description: L, "plans[0].id": p, "plans[0]": { name: p, description: P } }
`;
    expect(imported(dotted).settings).toMatchObject({
      catalog: { services: [{ name: "letters", plans: [{ name: "p", id: "p", description: "P" }] }] },
    });
  });

  test("a later document counts more, its lists replace lists, and one for a profile is left out", () => {
    const { settings, comments } = imported(`
spring.cloud.openservicebroker.api-version: 2.14
com.equalities.osbapi: { service-instances: { force-delete-unknown: true } }
spring.cloud.openservicebroker.catalog.services:
  - { id: a, name: a, description: A, tags: [one, two], plans: [{ id: p, name: p, description: P }] }
  - { id: b, name: b, description: B, plans: [{ id: q, name: q, description: Q }] }
---
spring: { cloud: { openservicebroker: { apiVersion: 2.16 } } }
spring.cloud.openservicebroker.catalog.services:
  - { id: c, name: c, description: C, plans: [{ id: r, name: r, description: R }] }
---
spring.config.activate.on-profile: cloud
com.equalities.osbapi: { service-instances: { force-delete-unknown: false } }
`);
    expect(settings).toMatchObject({
      api: { minimumVersion: "2.16", forceDeleteUnknown: { instances: true } },
      catalog: { services: [{ name: "c" }] },
    });
    expect((settings.catalog as { services: unknown[] }).services).toHaveLength(1);
    expect(comments.join("\n")).toMatch(/application.yml:12:1 this document is for a profile and was left out/);
  });

  test("what the settings would refuse is left out, with the reason", () => {
    const { yaml, comments } = imported(`
spring.cloud.openservicebroker.catalog.services:
  - id: a
    name: a
    descriptoin: typo
    description: \${books.text:A default}
    bindable: perhaps
    requires: [telepathy]
    metadata: { support-url: nowhere, display-name: "\${books.name}" }
    dashboard-client: { id: d, secret: "\${books.dash-board.secret}" }
    plans: [{ id: p, name: p, description: P, maximum-polling-duration: long }]
com.equalities.osbapi.service-instances.operations: { cleanup-all: often, cleanup-age: 3 weeks }
`);
    const service = accepted(yaml, { BOOKS_DASHBOARD_SECRET: "s" }).catalog.services.get("a");
    expect(service).toMatchObject({ description: "A default", bindable: false, requires: undefined });
    const all = comments.join("\n");
    for (const name of ["bindable", "requires", "support-url", "maximum-polling-duration", "cleanup-all"])
      expect(all).toMatch(new RegExp(`${name}: was left out, because the setting \\w+ must`));
    expect(all).toMatch(/descriptoin: is no property of Spring's; it was left out; did you mean description\?/);
    expect(all).toMatch(/display-name: had \$\{books.name\} in it, which Spring fills in; write what it stands for/);
  });

  test("a file without any of it says so", () => {
    const { yaml } = imported("server: { port: 1 }\n");
    expect(yaml).toMatch(/nothing of spring.cloud.openservicebroker.catalog is in application.yml/);
    expect(accepted(yaml).catalog.services.size).toBe(0);
    expect(imported("").settings).toEqual({ module: "services.ts" });
  });
});

describe("hostile files", () => {
  const deep = `${Array.from({ length: 60 }, () => "a").join(".")}: 1\n`;
  const wide = Array.from({ length: 2_000 }, (_, row) => `${row}.${"a.".repeat(40)}a: 1`).join("\n");
  const bomb = `a: &a [${"x,".repeat(400)}x]\nb: &b [${"*a,".repeat(90)}*a]\nc: [*b,*b,*b]\n`;

  test.each([
    ["what is nested too deep by dots", deep, /nested deeper than 50 levels/],
    [
      "what is nested too deep by brackets",
      `${"[".repeat(60)}${"]".repeat(60)}`,
      /nested deeper|cannot be read|must be/,
    ],
    ["keys that make too many properties", wide, /more than 50000 properties/],
    ["aliases that make too much", bomb, /more than 50000 values/],
    ["too many documents", "---\n".repeat(200_000), /more than 100 documents/],
    ["a key that is too long", `? ${"[".repeat(500_000)}x\n: 1\n`, /./],
    ["no properties at all", "- 1\n", /must be properties/],
    ["no YAML", "a: [1\n", /application.yml:\d+:\d+ /],
  ])("%s: refused, with its place", (_, text, message) => {
    expect(() => imported(text)).toThrow(message);
  });

  test("a .properties file of one kind of character ends soon, whatever it is", () => {
    for (const character of ["\\", "[", ".", "=", "#", "\n", "a", "${", "a\\\n", "#---\na=1\n"]) {
      const text = character.repeat(Math.floor(1_000_000 / character.length));
      try {
        imported(`${text}x`, "application.properties");
      } catch (error) {
        expect((error as Error).name).toBe("SettingsError");
      }
    }
  });

  test("names reach no prototype, and nothing leaves its comment", () => {
    const { yaml } = imported(`
__proto__: { polluted: 1 }
spring.cloud.openservicebroker:
  "x\\nmodule: evil.ts #\\u2028y": 1
  catalog.services:
    - { id: a, name: __proto__, description: "a\\n---\\nmodule: evil.ts", plans: [{ id: p, name: constructor, description: P }],
        metadata: { properties: { __proto__: { polluted: 1 } } } }
`);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    const settings = accepted(yaml);
    expect(settings.module).toBe("/place/services.ts");
    const service = settings.catalog.services.get("__proto__");
    expect(service?.description).toBe("a\n---\nmodule: evil.ts");
    expect([...(service?.plans.keys() ?? [])]).toEqual(["constructor"]);
  });
});

afterAll(() => expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false));
