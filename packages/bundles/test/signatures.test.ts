import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { type LeftOut, type RunningServer, startRegistry } from "../../../tools/servers.js";
import { bundleServices, openBundleSource, openProcessRunner, PushedStore, parseSources } from "../src/index.js";
import { newSource } from "../src/reconcile/records.js";
import { readRef } from "../src/sources/read-ref.js";
import { parseSignatureKey } from "../src/sources/signature-keys.js";
import type { Digest } from "../src/sources/source.js";
import { bundleFolder } from "./folder-services.js";
import { bundleContent } from "./registry-broker.js";
import {
  type Content,
  descriptor,
  digestOf,
  failureOf,
  json,
  never,
  push,
  serve,
  sourceAt,
  uniqueRepository,
} from "./registry-lab.js";

// Against Debian's docker-registry. Keys and signatures are made here, in the form that cosign gives them.

let registry: RunningServer | LeftOut;

beforeAll(async () => {
  registry = await startRegistry({ kind: "none" });
});

afterAll(async () => {
  if (!("leftOut" in registry)) await registry.stop();
});

function withRegistry(name: string, run: (url: string) => Promise<void>): void {
  test(name, async () => {
    const found = required("signatures in a real registry", registry);
    if (found !== undefined) await run(found.url);
  });
}

interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const ecdsa = (): Keys => generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed25519 = (): Keys => generateKeyPairSync("ed25519");
const rsa = (): Keys => generateKeyPairSync("rsa", { modulusLength: 2_048 });
const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();

interface SignatureLies {
  readonly type?: string;
  readonly mediaType?: string;
  readonly signature?: string;
  /** Of the payload. */
  readonly padding?: number;
}

function payloadOf(digest: Digest, { type = "cosign container image signature", padding = 0 }: SignatureLies): Buffer {
  const identity = { "docker-reference": "registry.example/team/notes" };
  const critical = { identity, image: { "docker-manifest-digest": digest }, type };
  return Buffer.from(JSON.stringify({ critical, optional: padding === 0 ? null : { padding: "x".repeat(padding) } }));
}

/** The image that holds signatures of a digest, one by each key. */
function signatures(digest: Digest, by: readonly Keys[], lies: SignatureLies = {}): Content {
  const payload = payloadOf(digest, lies);
  const config = Buffer.from("{}");
  const layers = by.map(({ privateKey }) => {
    const hash = privateKey.asymmetricKeyType === "ed25519" ? null : "sha256";
    const signature = lies.signature ?? sign(hash, payload, privateKey).toString("base64");
    const layer = descriptor(lies.mediaType ?? "application/vnd.dev.cosign.simplesigning.v1+json", payload);
    return { ...layer, annotations: { "dev.cosignproject.cosign/signature": signature } };
  });
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const imageConfig = descriptor("application/vnd.oci.image.config.v1+json", config);
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType, config: imageConfig, layers });
  return { manifest, mediaType, digest: digestOf(manifest), blobs: [config, payload] };
}

const tagOf = (digest: Digest) => `${digest.replace(":", "-")}.sig`;

async function pushed(url: string, version = "1.0.0"): Promise<{ repository: string; digest: Digest }> {
  const repository = uniqueRepository("team/notes");
  const content = bundleContent("notes", version);
  await push(url, repository, "latest", content);
  return { repository, digest: content.digest };
}

const by = { actor: { type: "operator", subject: "ann" } } as const;
const noSignature = "it is not signed, and the source's settings require it";
const otherKey = "none of its signatures is by a key of the source's settings";
const otherContent = "its signatures are of other content; it has to be signed itself";

describe("a signature of cosign's form", () => {
  const kinds = { "ECDSA on P-256": ecdsa, Ed25519: ed25519, RSA: rsa };
  for (const [kind, generate] of Object.entries(kinds))
    withRegistry(`F5-38: ${kind}: content is let in with a signature by the key, and by no other`, async (url) => {
      const [key, other] = [generate(), generate()];
      const { repository, digest } = await pushed(url);
      const problemWith = (...keys: readonly Keys[]) =>
        sourceAt(url, {
          signatureKeys: keys.map(({ publicKey }) => parseSignatureKey(pem(publicKey), "key.pem")),
        }).signatureProblem?.(repository, digest, never);
      expect(await problemWith(key)).toBe(noSignature);
      await push(url, repository, tagOf(digest), signatures(digest, [key]));
      expect(await problemWith(key)).toBeNull();
      expect(await problemWith(other)).toBe(otherKey);
      // Rotation: while both keys are in the settings, either will do.
      expect(await problemWith(other, key)).toBeNull();
      await push(url, repository, tagOf(digest), signatures(digest, [other, key]));
      expect([await problemWith(key), await problemWith(other)]).toEqual([null, null]);
    });

  withRegistry("F5-38: a genuine signature of another digest, or of something else, lets nothing in", async (url) => {
    const key = ecdsa();
    const { repository, digest } = await pushed(url);
    const other = bundleContent("notes", "2.0.0").digest;
    const source = sourceAt(url, { signatureKeys: [key.publicKey] });
    const problem = async (content: Content) => {
      await push(url, repository, tagOf(digest), content);
      return source.signatureProblem?.(repository, digest, never);
    };
    expect(await problem(signatures(other, [key]))).toBe(otherContent);
    expect(await problem(signatures(digest, [key], { type: "attestation" }))).toBe(otherContent);
    expect(await problem(signatures(digest, [key], { mediaType: "application/json" }))).toBe(noSignature);
    expect(await problem(signatures(digest, [key], { signature: "%%%" }))).toBe(otherKey);
    expect(await problem(signatures(digest, [key], { signature: "" }))).toBe(otherKey);
    expect(await problem(signatures(digest, []))).toBe(noSignature);
    const read = await readRef(source, { repository, tag: "latest" }, never);
    expect(read?.bundle).toEqual({ kind: "invalid", why: noSignature });
    expect(await problem(signatures(digest, [key]))).toBeNull();
    expect((await readRef(source, { repository, tag: "latest" }, never))?.bundle.kind).toBe("bundle");
  });

  withRegistry("F5-38: signatures without measure are not read", async (url) => {
    const key = ecdsa();
    const { repository, digest } = await pushed(url);
    const source = sourceAt(url, { signatureKeys: [key.publicKey], limits: { signatures: 2, signatureBytes: 1_000 } });
    const failure = async (content: Content) => {
      await push(url, repository, tagOf(digest), content);
      return (await failureOf(source.signatureProblem?.(repository, digest, never) ?? Promise.resolve())).failure;
    };
    expect(await failure(signatures(digest, [key, key, key]))).toBe("too large");
    expect(await failure(signatures(digest, [key], { padding: 1_000 }))).toBe("too large");
  });
});

test("F5-38: a key that is private, of another kind, or none is refused, and never repeated", () => {
  const privatePem = ecdsa().privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const otherCurve = generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey;
  const short = generateKeyPairSync("rsa", { modulusLength: 1_024 }).publicKey;
  const one = pem(ed25519().publicKey);
  const messageOf = (text: string) => {
    try {
      return parseSignatureKey(text, "key.pem").type;
    } catch (error) {
      return error instanceof Error ? error.message : error;
    }
  };
  expect(messageOf(one)).toBe("public");
  for (const text of [privatePem, `${one}${one}`, `${one}${privatePem}`, "hunter2", ""])
    expect(messageOf(text)).toBe("key.pem must be one public key in PEM, which begins with BEGIN PUBLIC KEY");
  for (const key of [otherCurve, short])
    expect(messageOf(pem(key))).toBe("key.pem must be a key of ECDSA on P-256, Ed25519, or RSA with 2048 bits or more");
  expect(messageOf("-----BEGIN PUBLIC KEY-----\nhunter2\n-----END PUBLIC KEY-----\n")).toBe(
    "key.pem cannot be read as a public key",
  );
});

/** Opens a source with keys that lie in files. */
async function opener(url: string) {
  const folder = await bundleFolder();
  const ports = {
    readFile: (path: string) => readFile(path, "utf8"),
    environment: () => undefined,
    folder,
    pushed: new PushedStore(),
  };
  return async (repositories: readonly string[], keys: readonly Keys[], name = "team") => {
    const files = keys.map((_, at) => `${at}.pem`);
    for (const [at, { publicKey }] of keys.entries()) await writeFile(join(folder, `${at}.pem`), pem(publicKey));
    const signatureSettings = keys.length === 0 ? {} : { signatures: { policy: "require", keys: files } };
    const settings = { name, type: "images", url, repositories, interval: "10d", ...signatureSettings };
    const parsed = parseSources({ sources: [settings] });
    if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
    const [config] = parsed.sources;
    if (config === undefined) throw new Error("no source");
    return openBundleSource(config, ports);
  };
}

withRegistry("F5-38: signatures that cannot be read make a reading incomplete, and refuse nothing", async (url) => {
  const { repository, digest } = await pushed(url);
  const key = ecdsa();
  await push(url, repository, tagOf(digest), signatures(digest, [key]));
  let status = 503;
  // The registry itself, but for its signatures.
  const front = await serve(async (request, response) => {
    if (request.url?.endsWith(".sig") && status !== 200) return json(response, {}, {}, status);
    const answer = await fetch(`${url}${request.url}`, {
      method: request.method ?? "GET",
      headers: { accept: request.headers.accept ?? "*/*" },
    });
    const digestHeader = answer.headers.get("docker-content-digest");
    response.writeHead(answer.status, {
      "content-type": answer.headers.get("content-type") ?? "application/json",
      ...(digestHeader !== null && { "docker-content-digest": digestHeader }),
    });
    response.end(request.method === "HEAD" ? undefined : Buffer.from(await answer.arrayBuffer()));
  });
  const source = await (await opener(front.url))([repository], [key]);
  const stored = { data: newSource("team", source.generation), specs: new Map() };
  const observe = () => source.observe(stored, { id: "1", signal: never, onProgress: () => undefined });
  // 404 without a word of the registry is something before it, and no evidence that there is none.
  for (status of [503, 401, 403, 404]) {
    const { completeness, refs } = await observe();
    expect([status, completeness, refs.get(repository)?.seen.kind]).toEqual([status, "partial", "unreadable"]);
  }
  status = 200;
  const { completeness, refs } = await observe();
  expect([completeness, refs.get(repository)?.seen.kind]).toEqual(["complete", "read"]);
  // What was found to be signed is not asked for again with the same keys.
  status = 503;
  expect((await observe()).completeness).toBe("complete");
});

withRegistry(
  "F5-38: what is offered stays when a signature is missing or wrong, and new content waits for one",
  async (url) => {
    const [key, next] = [ecdsa(), ed25519()];
    const { repository, digest } = await pushed(url);
    const repositories = [repository, uniqueRepository("team/lists")];
    const [, lists = ""] = repositories;
    const open = await opener(url);
    const work = await bundleFolder();
    const services = bundleServices({
      sources: [await open(repositories, [])],
      runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
      mirror: join(work, "mirror"),
    });
    const flow = await testBroker({ services, stderr: "nothing" });
    onTestFinished(() => flow.stop());
    const spec = (name = repository) => services.sources().get("team")?.specs.get(name);
    const shows = (expected: object, name = repository) =>
      expect.poll(() => spec(name), { timeout: 20_000 }).toMatchObject(expected);
    const set = async (...keys: readonly Keys[]) => services.configure([await open(repositories, keys)]);
    const signed = (content: Digest, by: readonly Keys[], name = repository) =>
      push(url, name, tagOf(content), signatures(content, by));
    const offered = async () =>
      ((await flow.request("GET", "/v2/catalog")).body?.services ?? []).map(
        ({ plans }: { plans: readonly { maintenance_info: { version: string } }[] }) =>
          plans[0]?.maintenance_info.version,
      );
    const unsigned = { code: "signature", problems: [{ message: noSignature }] };

    await shows({ kind: "service", refused: null, current: { digest } });
    // The setting is turned on: what is known is looked at again, and stays offered.
    await set(key);
    await shows({ state: { kind: "active" }, current: { digest }, refused: { digest, ...unsigned } });
    expect(await offered()).toEqual(["1.0.0"]);
    await signed(digest, [key]);
    await services.refresh("team", by);
    await shows({ refused: null, current: { digest } });

    const second = bundleContent("notes", "2.0.0");
    await push(url, repository, "latest", second);
    const fresh = bundleContent("lists", "1.0.0");
    await push(url, lists, "latest", fresh);
    await services.refresh("team", by);
    await shows({ current: { digest }, refused: { digest: second.digest, ...unsigned } });
    await shows({ kind: "candidate", because: { kind: "refused content", ...unsigned } }, lists);
    expect(await offered()).toEqual(["1.0.0"]);
    // Cosign signs what has been pushed: the digest stays, and is looked at again all the same.
    await signed(second.digest, [key]);
    await signed(fresh.digest, [key, next], lists);
    await services.refresh("team", by);
    await shows({ current: { digest: second.digest }, refused: null });
    await shows({ kind: "service", current: { digest: fresh.digest }, refused: null }, lists);

    // The key is exchanged: both, then only the new one, which has signed only one of them yet.
    await set(key, next);
    await set(next);
    await shows({ state: { kind: "active" }, current: { digest: second.digest }, refused: { code: "signature" } });
    await shows({ refused: null }, lists);
    expect((await offered()).sort()).toEqual(["1.0.0", "2.0.0"]);
    await signed(second.digest, [next]);
    await services.refresh("team", by);
    await shows({ refused: null });
    // Turned off again, nothing is asked for.
    await push(url, repository, "latest", bundleContent("notes", "3.0.0"));
    await set();
    await shows({ current: { version: "3.0.0" }, refused: null });
  },
);
