import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { required } from "../../../tools/required.js";
import { startRegistry } from "../../../tools/servers.js";
import { openTestEngine, type TestEngine, testEngineLeftOut } from "../../bundles/test/test-engine.js";
import { answersAt, ask, folderWith, start } from "./program.js";

// `osbert serve` with podman and a registry, as an operator with classic bundles has it: nothing but a file of settings.

const patience = { timeout: 60_000 };

const apbYml = `version: 1.0
name: hello-apb
description: Says hello
bindable: true
async: optional
plans:
  - name: default
    description: The only one
    free: true
    parameters:
      - { name: password, type: string, required: true, updatable: true }
`;

/** Runtime 1: who asks is given the credentials while the action runs. What an action leaves behind is there for the next one. */
const entrypoint = `#!/bin/bash
vars=\${3#@}
case "$1" in
provision)
  grep -q '"password":"of-the-user"' "$vars" || exit 3
  echo made >"$BUNDLE_STATE_LOCATION/made"
  printf '{"admin":"made-by-apb"}' >/tmp/creds; until [ -e /tmp/taken ]; do sleep 0.1; done;;
bind)
  [ "$(cat "$BUNDLE_STATE_LOCATION/made")" = made ] || exit 4
  echo bound >"$BUNDLE_STATE_LOCATION/bound"
  printf '{"user":"u"}' >/tmp/creds; until [ -e /tmp/taken ]; do sleep 0.1; done;;
unbind) [ "$(cat "$BUNDLE_STATE_LOCATION/bound")" = bound ];;
update) echo "the disk of the server is full" >/dev/termination-log; exit 2;;
deprovision) grep -q '"_apb_provision_creds":{"admin":"made-by-apb"}' "$vars";;
esac
`;
const credentials = "#!/bin/bash\n[ -e /tmp/creds ] && base64 /tmp/creds && touch /tmp/taken\n";

const ownYaml = `osbert: 1
name: notes
version: 1.0.0
description: Notes in a container
bindable: true
command: [bash, ./run.sh]
plans:
  small: { description: A small one, free: true }
`;

interface Offering {
  readonly id: string;
  readonly name: string;
  readonly plans: readonly { readonly id: string }[];
}

const owner = { organization_guid: "o", space_guid: "s" };
const parameters = { password: "of-the-user" };
const [one, two] = ["/v2/service_instances/one", "/v2/service_instances/two"];
const [oneBinding, twoBinding] = [`${one}/service_bindings/app`, `${two}/service_bindings/app`];

let engine: TestEngine | undefined;
afterAll(() => engine?.remove());

/** An image with the label of a classic bundle, in the registry. */
async function pushClassic(podman: TestEngine, registry: string, name: string, runtime: 1 | 2): Promise<void> {
  const folder = folderWith({});
  mkdirSync(join(folder, "opt"));
  writeFileSync(join(folder, "opt/entrypoint"), entrypoint, { mode: 0o755 });
  writeFileSync(join(folder, "opt/broker-bind-creds"), credentials, { mode: 0o755 });
  const spec = Buffer.from(apbYml.replace("hello-apb", name)).toString("base64");
  const image = await podman.image(`localhost/${name}:1`, folder, [
    'ENTRYPOINT ["/opt/entrypoint"]',
    "ENV PATH=/opt:/usr/bin:/bin",
    `LABEL com.redhat.apb.spec=${spec}`,
    `LABEL com.redhat.apb.runtime=${runtime}`,
  ]);
  const target = `${new URL(registry).host}/team/${name}:latest`;
  await podman.run("push", "--quiet", "--tls-verify=false", image, target);
  // The broker pulls it by its digest.
  await podman.run("rmi", "--force", image);
}

const registry = required("a registry for containers", await startRegistry({ kind: "none" }));
if (registry && required("podman", testEngineLeftOut())) {
  afterAll(() => registry.stop());

  /** The program on a folder with a bundle of files and on the registry. */
  const serve = async (podman: TestEngine, bundles: object) => {
    const { host } = new URL(registry.url);
    const { engineArguments, runArguments } = podman;
    const containers = { program: "podman", arguments: engineArguments, runArguments };
    const sources = [
      { name: "ours", type: "folder", path: "bundles" },
      { name: "team", type: "distribution", url: registry.url, default: "allow" },
    ];
    const cwd = folderWith({
      "registries.conf": `[[registry]]\nlocation = "${host}"\ninsecure = true\n`,
      "osbert.yaml": JSON.stringify({
        listen: { port: 0 },
        credentials: [{ username: "a", password: "b" }],
        bundles: { sources, ...bundles, containers: { ...containers, image: "localhost/base:1" } },
      }),
    });
    mkdirSync(join(cwd, "bundles/notes"), { recursive: true });
    writeFileSync(join(cwd, "bundles/notes/osbert.yaml"), ownYaml);
    const script = `[ "$1" != bind ] || echo '{"credentials":{"at":"'"$(pwd)"'"}}'\n`;
    writeFileSync(join(cwd, "bundles/notes/run.sh"), script);
    const broker = start(["serve"], { cwd, env: { CONTAINERS_REGISTRIES_CONF: join(cwd, "registries.conf") } });
    const url = await answersAt(broker);
    const offered = async () => ((await ask(url, "GET", "/v2/catalog")).body.services ?? []) as readonly Offering[];
    await expect.poll(async () => (await offered()).length, patience).toBe(2);
    const idsOf = async (name: string) => {
      const found = (await offered()).find((each) => each.name.endsWith(name)) as Offering;
      return { service_id: found.id, plan_id: found.plans[0]?.id ?? "" };
    };
    return { broker, url, idsOf, cwd };
  };

  beforeAll(async () => {
    engine = await openTestEngine();
    await engine.image("localhost/base:1", null);
    await pushClassic(engine, registry.url, "hello-apb", 1);
    await pushClassic(engine, registry.url, "secret-apb", 2);
  });

  test("by default files run as processes, and images in containers", async () => {
    const { broker, url, idsOf, cwd } = await serve(engine as TestEngine, { unsandboxed: true });
    const [notes, hello] = [await idsOf("notes"), await idsOf("hello-apb")];
    expect((await ask(url, "PUT", one, { body: { ...notes, ...owner } })).status, broker.stderr()).toBe(201);
    const bound = await ask(url, "PUT", oneBinding, { body: notes });
    expect([bound.status, bound.body]).toEqual([201, { credentials: { at: expect.stringContaining(cwd) } }]);
    const made = await ask(url, "PUT", two, { body: { ...hello, ...owner, parameters } });
    expect([made.status, made.body], broker.stderr()).toEqual([201, {}]);
    expect((await ask(url, "DELETE", `${two}?${new URLSearchParams(hello)}`)).status).toBe(200);
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
  }, 180_000);

  test("classic bundles of a registry, and files beside them, are served from containers without code", async () => {
    const podman = engine as TestEngine;
    const { broker, url, idsOf } = await serve(podman, { runner: "container" });
    const notes = await idsOf("notes");
    const made = await ask(url, "PUT", one, { body: { ...notes, ...owner } });
    expect([made.status, made.body], broker.stderr()).toEqual([201, {}]);
    const bound = await ask(url, "PUT", oneBinding, { body: notes });
    expect([bound.status, bound.body]).toEqual([201, { credentials: { at: "/bundle" } }]);

    const hello = await idsOf("hello-apb");
    const asked = { ...hello, ...owner, parameters };
    const madeTwo = await ask(url, "PUT", two, { body: asked });
    expect([madeTwo.status, madeTwo.body], broker.stderr()).toEqual([201, {}]);
    const boundTwo = await ask(url, "PUT", twoBinding, { body: hello });
    expect([boundTwo.status, boundTwo.body]).toEqual([201, { credentials: { user: "u" } }]);
    const updated = await ask(url, "PATCH", two, { body: { ...hello, parameters } });
    expect([updated.status, updated.body.description]).toEqual([
      500,
      "update failed: the bundle ended with exit code 2: the disk of the server is full",
    ]);
    const query = new URLSearchParams(hello);
    expect((await ask(url, "DELETE", `${twoBinding}?${query}`)).status).toBe(200);
    expect((await ask(url, "DELETE", `${two}?${query}`)).status).toBe(200);

    // F5-36: what writes a Secret of Kubernetes cannot be run here, and is not offered.
    const { body: catalog } = await ask(url, "GET", "/v2/catalog");
    expect(JSON.stringify(catalog)).toContain("hello-apb");
    expect(JSON.stringify(catalog)).not.toContain("secret-apb");
    broker.signal("SIGTERM");
    expect(await broker.ended).toBe(0);
    expect(await podman.run("ps", "--all", "--quiet")).toBe("");
  }, 180_000);
}
