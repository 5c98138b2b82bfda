import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Secret } from "@osbert/server/yaml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { required } from "../../../tools/required.js";
import { findProgram } from "../../../tools/server-process.js";
import { type LeftOut, type RunningServer, registryAccount, startRegistry } from "../../../tools/servers.js";
import { buildBundle } from "../src/author/build-bundle.js";
import { lintFolder, openBundleFolder } from "../src/author/bundle-folder.js";
import { planNamed } from "../src/author/local-input.js";
import { languages, newBundle } from "../src/author/new-bundle.js";
import { ociArchive } from "../src/author/oci-layout.js";
import { type PushOptions, parsePushTarget, pushBundle } from "../src/author/push-bundle.js";
import { readOciArchive } from "../src/author/read-oci-archive.js";
import { sameTar } from "../src/author/same-tar.js";
import { storedGzip } from "../src/author/stored-gzip.js";
import { type ActionReport, shapeDifference, testBundle } from "../src/author/test-bundle.js";
import { withLocalActions } from "../src/author/try-action.js";
import { parseBundle } from "../src/formats/parse-bundle.js";
import { digestOf } from "../src/sources/digest-of.js";
import { openSource } from "../src/sources/open-source.js";
import { failureOf, json, never, serve, temporaryFolder, uniqueRepository } from "./registry-lab.js";

/** A folder with the bundle that `osbert bundle new` makes, and what a test has changed of it. */
function bundleIn(folder: string, changed: Readonly<Record<string, string>> = {}): string {
  const files = newBundle("team-folder", "sh").map(({ name, text, executable }) => ({ name, text, executable }));
  for (const { name, text, executable } of files) {
    writeFileSync(join(folder, name), changed[name] ?? text);
    chmodSync(join(folder, name), executable ? 0o755 : 0o644);
  }
  return folder;
}

const program = (cases: string) => `#!/bin/sh\ncat > /dev/null\ncase "$1" in\n${cases}\nesac\n`;

async function reportsOf(folder: string): Promise<readonly ActionReport[]> {
  const bundle = await openBundleFolder(folder);
  const life = {
    spec: bundle.spec,
    plan: planNamed(bundle.spec, undefined),
    parameters: { provision: {}, update: {}, bind: {} },
  };
  const reports: ActionReport[] = [];
  const options = {
    runner: { kind: "process", unsandboxed: true },
    network: false,
    onProgress: () => undefined,
  } as const;
  await withLocalActions(bundle, options, never, async (tryAction) => {
    for await (const report of testBundle(life, tryAction, never)) reports.push(report);
  });
  return reports;
}

function resultsOf(reports: readonly ActionReport[]): Readonly<Record<string, string>> {
  return Object.fromEntries(reports.map(({ action, result }) => [action, result]));
}

describe("a new bundle", () => {
  test.each(languages)("in %s has nothing that lint would say", async (language) => {
    const folder = temporaryFolder();
    for (const { name, text, executable } of newBundle("team-folder", language))
      writeFileSync(join(folder, name), text, { mode: executable ? 0o755 : 0o644 });
    expect(await lintFolder(folder)).toEqual({ file: "osbert.yaml", problems: [] });
  });

  test("whose program may not be run, or whose link leads out, is a problem", async () => {
    const folder = bundleIn(temporaryFolder());
    chmodSync(join(folder, "run.sh"), 0o644);
    symlinkSync("/etc/passwd", join(folder, "users"));
    const { problems } = await lintFolder(folder);
    expect(problems.map(({ message }) => message).join()).toMatch(/chmod \+x .*users leads out/);
    await expect(openBundleFolder(folder)).rejects.toThrow(/may not be run/);
  });
});

describe("the test of a life", () => {
  test("passes a bundle whose actions may run twice", async () => {
    const reports = await reportsOf(bundleIn(temporaryFolder()));
    const passed = { provision: "passed", bind: "passed", unbind: "passed", deprovision: "passed" };
    expect(resultsOf(reports)).toEqual({ ...passed, update: "passed" });
    expect(reports.flatMap(({ problems, advice }) => [...problems, ...advice])).toEqual([]);
  });

  test("finds the action that fails when it is run again, and still removes what was made", async () => {
    const made = join(temporaryFolder(), "made");
    const run = program(`
      provision) mkdir ${made} || { echo "it is there already" >&2; exit 1; } ;;
      deprovision) rm -rf ${made} ;;`);
    const reports = await reportsOf(bundleIn(temporaryFolder(), { "run.sh": run }));
    const rest = { bind: "left out", unbind: "left out", update: "left out", deprovision: "passed" };
    expect(resultsOf(reports)).toEqual({ provision: "failed", ...rest });
    expect(reports[0]?.problems).toEqual([
      "the second run with the same idempotency key failed: the bundle ended with exit code 1",
    ]);
    expect(reports[0]?.log).toContain("it is there already");
    expect(() => readFileSync(made)).toThrow(/ENOENT/);
  });

  test("finds credentials of another shape, and tells nothing of them", async () => {
    const marker = join(temporaryFolder(), "marker");
    const run = program(`
      bind) if mkdir ${marker}; then echo '{"credentials":{"password":"hunter2"}}'; else echo '{"credentials":{"pass":"hunter2"}}'; fi ;;`);
    const reports = await reportsOf(bundleIn(temporaryFolder(), { "run.sh": run }));
    expect(reports[1]?.problems).toEqual([
      "the second run printed credentials of another shape: password is a string and then nothing",
    ]);
    expect(JSON.stringify(reports)).not.toContain("hunter2");
  });

  test("finds a bind without credentials, an action that is not known, and names that are made anew", async () => {
    const run = program(`
      provision) echo '{"state":{"name":"'$$'"}}' ;;
      unbind) exit 8 ;;`);
    const reports = await reportsOf(bundleIn(temporaryFolder(), { "run.sh": run }));
    expect(reports[0]?.advice.join()).toMatch(/state.name was another in the second run/);
    expect(reports[1]?.problems).toEqual(["it printed no credentials"]);
    expect(reports[2]?.problems).toEqual(["the first run does not know the action (exit code 8)"]);
  });

  test("carries the state of provision to bind and deprovision, and that of bind to unbind", async () => {
    const run = `#!/bin/sh
input=$(cat)
has() { case "$input" in *"$1"*) ;; *) echo "no $1" >&2; exit 1 ;; esac; }
case "$1" in
  provision) echo '{"state":{"made":"one"}}' ;;
  bind) has '"state":{"made":"one"}'; echo '{"state":{"user":"two"}}'; echo '{"credentials":{"a":1}}' ;;
  unbind) has '"state":{"made":"one"}'; has '"bindingState":{"user":"two"}' ;;
  deprovision) has '"state":{"made":"one"}' ;;
esac
`;
    const reports = await reportsOf(bundleIn(temporaryFolder(), { "run.sh": run }));
    expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
  });

  test("an action that asks to be tried again is, until it is done", async () => {
    const count = join(temporaryFolder(), "count");
    const run = program(`
      provision) echo x >> ${count}; [ $(wc -l < ${count}) -ge 3 ] || { echo '{"retryAfterSeconds":0}'; exit 75; } ;;
      bind) echo '{"credentials":{}}' ;;`);
    const reports = await reportsOf(bundleIn(temporaryFolder(), { "run.sh": run }));
    expect(reports[0]?.result).toBe("passed");
    expect(readFileSync(count, "utf8")).toBe("x\nx\nx\nx\n");
  });

  test("shapes are names and types, however deep", () => {
    expect(shapeDifference({ a: { b: 1 } }, { a: { b: 2 } })).toBeNull();
    expect(shapeDifference({ a: { b: 1 } }, { a: { b: "1" } })).toBe("a.b is a number and then a string");
    expect(shapeDifference(null, { a: 1 })).toBe("it is nothing and then an object");
  });
});

describe("a built bundle", () => {
  test("has one digest, whatever the times, the modes and the order of its files are", async () => {
    const [one, other] = [bundleIn(temporaryFolder()), temporaryFolder()];
    mkdirSync(join(one, "lib"));
    for (const name of ["b", "a", "ä"]) writeFileSync(join(one, "lib", name), name);
    mkdirSync(join(other, "lib"), { mode: 0o700 });
    for (const name of ["ä", "a", "b"]) writeFileSync(join(other, "lib", name), name, { mode: 0o600 });
    bundleIn(other);
    chmodSync(join(other, "run.sh"), 0o700);
    mkdirSync(join(other, ".git"));
    utimesSync(join(other, "osbert.yaml"), 1, 1);
    const [first, second] = [
      await buildBundle(await openBundleFolder(one)),
      await buildBundle(await openBundleFolder(other)),
    ];
    expect(second.manifest.digest).toBe(first.manifest.digest);
    expect(ociArchive(second).equals(ociArchive(first))).toBe(true);
    writeFileSync(join(other, "lib", "b"), "c");
    expect((await buildBundle(await openBundleFolder(other))).manifest.digest).not.toBe(first.manifest.digest);
  });

  test("that is in registries for ever has the digest that it had when this was written", async () => {
    const archive = sameTar([
      { kind: "folder", path: "lib" },
      { kind: "file", path: "lib/run", executable: true, bytes: Buffer.from("#!/bin/sh\n") },
      { kind: "link", path: "run", target: "lib/run" },
    ]);
    const { createHash } = await import("node:crypto");
    expect(createHash("sha256").update(storedGzip(archive)).digest("hex")).toMatchInlineSnapshot(
      `"072e2596b28feaec3405d5c1673bb464bfeae66cb2f91f16853cab981c30e7ea"`,
    );
  });

  test("is gzip and tar as every other program reads them, with long names and large files", () => {
    const folder = temporaryFolder();
    const long = `${"deep-folder/".repeat(20)}${"ö".repeat(60)}`;
    const bytes = Buffer.alloc(200_000, "0123456789");
    const archive = sameTar([
      { kind: "file", path: long, executable: false, bytes },
      { kind: "file", path: "empty", executable: true, bytes: Buffer.alloc(0) },
    ]);
    for (const size of [0, 1, 65_535, 65_536, 131_070, 200_000])
      expect(gunzipSync(storedGzip(bytes.subarray(0, size))).equals(bytes.subarray(0, size))).toBe(true);
    writeFileSync(join(folder, "archive"), storedGzip(archive));
    execFileSync("tar", ["xzf", "archive"], { cwd: folder });
    expect(readFileSync(join(folder, long)).equals(bytes)).toBe(true);
    expect(readFileSync(join(folder, "empty")).length).toBe(0);
  });

  test("of the classic format is refused with what to do instead", async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, "apb.yml"),
      "version: 1.0\nname: a-apb\ndescription: d\nbindable: false\nasync: optional\nplans: [{ name: p, description: d, free: true, parameters: [] }]\n",
    );
    await expect(buildBundle(await openBundleFolder(folder))).rejects.toThrow(/is an image; build it/);
  });
});

const anonymous: PushOptions = {
  ...{ plainHttp: true, credentials: { kind: "anonymous" }, tokenHosts: [] },
  tls: { ca: null, verify: true },
};
const ports = { readFile: async () => "", environment: () => undefined, folder: "/" };

describe("a push to Debian's docker-registry", () => {
  let open: RunningServer | LeftOut;
  let closed: RunningServer | LeftOut;

  beforeAll(async () => {
    [open, closed] = [await startRegistry({ kind: "none" }), await startRegistry({ kind: "htpasswd" })];
  });

  afterAll(async () => {
    for (const each of [open, closed]) if (!("leftOut" in each)) await each.stop();
  });

  test("is read back by a source with the same spec and the same files, and can be repeated", async () => {
    const found = required("a push to a registry", open);
    if (found === undefined) return;
    const folder = bundleIn(temporaryFolder());
    symlinkSync("run.sh", join(folder, "again.sh"));
    const bundle = await openBundleFolder(folder);
    const built = await buildBundle(bundle);
    const target = parsePushTarget(`${new URL(found.url).host}/${uniqueRepository("author")}:0.1.0`);
    for (let push = 0; push < 2; push++)
      expect(await pushBundle(built, target, anonymous, ports, never)).toBe(built.manifest.digest);

    const source = await openSource(
      {
        ...{ kind: "distribution", url: found.url, repositories: { kind: "catalog", besides: [] } },
        ...{ credentials: { kind: "anonymous" }, tokenHosts: [], tls: { ca: null, verify: true } },
      },
      { ...ports, pushed: { list: async () => [], read: async () => null, fetch: async () => undefined } },
    );
    const { repository, tag } = target;
    expect(await source.resolve({ repository, tag }, never)).toBe(built.manifest.digest);
    const read = await source.read(repository, built.manifest.digest, never);
    if (read.kind !== "bundle") throw new Error(read.why);
    expect(parseBundle(read)).toMatchObject({ kind: "valid", spec: bundle.spec });
    const fetched = temporaryFolder();
    await source.fetch(repository, built.manifest.digest, fetched, never);
    expect((await openBundleFolder(fetched)).artifact.digest).toBe(bundle.artifact.digest);
  });

  test("is what skopeo copies from an archive of it, and what it copies back is an archive of it", async () => {
    const found = required("a push to a registry", open);
    const skopeo = required("skopeo", findProgram("skopeo") ? {} : { leftOut: "apt-get install skopeo" });
    if (found === undefined || skopeo === undefined) return;
    const built = await buildBundle(await openBundleFolder(bundleIn(temporaryFolder())));
    const [made, back] = [join(temporaryFolder(), "bundle.tar"), join(temporaryFolder(), "back.tar")];
    writeFileSync(made, ociArchive(built));
    const image = `docker://${new URL(found.url).host}/${uniqueRepository("skopeo")}:0.1.0`;
    const copy = (option: string, from: string, to: string) =>
      execFileSync("skopeo", ["--insecure-policy", "copy", "--quiet", option, from, to]);
    copy("--dest-tls-verify=false", `oci-archive:${made}`, image);
    copy("--src-tls-verify=false", image, `oci-archive:${back}`);
    const archived = await readOciArchive(back, readFileSync(back));
    expect(digestOf(archived.manifest)).toBe(built.manifest.digest);
    expect(archived.blobs).toHaveLength(built.blobs.length);
  });

  test("goes with credentials, and is refused without", async () => {
    const found = required("a push to a registry", closed);
    if (found === undefined) return;
    const built = await buildBundle(await openBundleFolder(bundleIn(temporaryFolder())));
    const target = parsePushTarget(`${new URL(found.url).host}/${uniqueRepository("author")}:1`);
    const { failure } = await failureOf(pushBundle(built, target, anonymous, ports, never));
    expect(failure).toBe("unauthorized");
    const text = (secret: string) => ({ kind: "text", text: new Secret(secret) }) as const;
    const { username, password } = registryAccount;
    const credentials = { kind: "basic", username: text(username), password: text(password) } as const;
    expect(await pushBundle(built, target, { ...anonymous, credentials }, ports, never)).toBe(built.manifest.digest);
  });
});

describe("a push to a registry that lies", () => {
  test.each(["https://elsewhere.example/upload", "http://127.0.0.1:1/upload"])(
    "sends nothing to %s, where the upload should go",
    async (location) => {
      const built = await buildBundle(await openBundleFolder(bundleIn(temporaryFolder())));
      const liar = await serve((request, response) => {
        request.resume();
        if (request.method === "HEAD") response.writeHead(404).end();
        else json(response, {}, { location }, 202);
      });
      const target = parsePushTarget(`${liar.host}/team/name:1`);
      const { failure } = await failureOf(pushBundle(built, target, anonymous, ports, never));
      expect(failure).toBe("foreign host");
    },
  );

  test("and takes another manifest than was sent, is told of", async () => {
    const built = await buildBundle(await openBundleFolder(bundleIn(temporaryFolder())));
    const liar = await serve((request, response) => {
      request.resume();
      if (request.method === "HEAD") response.writeHead(200).end();
      else response.writeHead(201, { "docker-content-digest": `sha256:${"0".repeat(64)}` }).end();
    });
    const target = parsePushTarget(`${liar.host}/team/name:1`);
    const { failure } = await failureOf(pushBundle(built, target, anonymous, ports, never));
    expect(failure).toBe("digest mismatch");
  });
});

test.each([
  "name:1",
  "registry.example/name",
  "https://registry.example/name:1",
  "me:secret@registry.example/name:1",
  "registry.example/Name:1",
  "registry.example/../name:1",
  "registry.example/name:1?x",
])("%s is no target of a push", (text) => {
  expect(() => parsePushTarget(text)).toThrow(
    `${JSON.stringify(text.replace("me:secret", "***"))} is not a target: it must look like registry.example`,
  );
});
