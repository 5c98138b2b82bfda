import { randomUUID } from "node:crypto";
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { type RunningServer, startRegistry } from "../../../tools/servers.js";
import { brokerFolder, bundleContent, RegistryBroker } from "./registry-broker.js";
import { archive, push, serve } from "./registry-lab.js";

/** Bundles that are provisioned all the time, and others that fill a second page of the list. */
const used = Array.from({ length: 8 }, (_, index) => `used-${index}`);
const others = Array.from({ length: 96 }, (_, index) => `other-${String(index).padStart(3, "0")}`);
const workers = 3;

type Trouble = "none" | "429" | "cut";

/** A registry whose process and files a test has in its hands, behind an address of its own. */
class Hub {
  readonly #folder: string;
  #server: RunningServer | null = null;
  trouble: Trouble = "none";
  troubled = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get #images(): string {
    return join(this.#folder, "images");
  }

  get address(): string {
    return this.#server?.url ?? "http://127.0.0.1:1";
  }

  /** `false`: this machine has no registry. */
  async start(): Promise<boolean> {
    await mkdir(this.#images, { recursive: true });
    await chmod(this.#folder, 0o755);
    await chmod(this.#images, 0o777);
    const server = required("a registry in a storm", await startRegistry({ kind: "none" }, this.#images));
    this.#server = server ?? null;
    return server !== undefined;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.stop();
  }

  async save(): Promise<void> {
    await cp(this.#images, join(this.#folder, "saved"), { recursive: true });
  }

  /** A volume that was lost: first under a registry that runs. */
  async empty(): Promise<void> {
    await rm(this.#images, { recursive: true, force: true });
    await this.stop();
    await this.start();
  }

  /** One byte of every manifest, description and layer is another one. */
  async corrupt(): Promise<void> {
    const blobs = (await readdir(this.#images, { recursive: true })).filter((path) => /blobs\/.*\/data$/.test(path));
    expect(blobs.length).toBeGreaterThan(others.length);
    for (const path of blobs) {
      const bytes = await readFile(join(this.#images, path));
      const middle = bytes.length >> 1;
      bytes[middle] = (bytes[middle] ?? 0) ^ 1;
      await writeFile(join(this.#images, path), bytes);
    }
  }

  async restore(): Promise<void> {
    await this.stop();
    await rm(this.#images, { recursive: true, force: true });
    await cp(join(this.#folder, "saved"), this.#images, { recursive: true });
    // Copied by the one who runs this, written by the account of the registry.
    for (const path of ["", ...(await readdir(this.#images, { recursive: true }))])
      await chmod(join(this.#images, path), 0o777);
    await this.start();
  }

  forward(asked: IncomingMessage, response: ServerResponse): void {
    const isSecondPage = /_catalog.*last=/.test(asked.url ?? "");
    if (this.trouble === "429" && Math.random() < 0.5) {
      this.troubled += 1;
      response.writeHead(429, { "retry-after": "0" }).end();
      return;
    }
    const { method, headers } = asked;
    const forwarded = request(new URL(asked.url ?? "/", this.address), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (this.trouble === "cut" && isSecondPage) {
        this.troubled += 1;
        response.write('{"repositories":["other-');
        setTimeout(() => response.destroy(), 10);
        answer.resume();
      } else answer.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    asked.pipe(forwarded);
  }
}

/** What happened to requests, whoever sent them. */
class Load {
  broker: RegistryBroker;
  readonly refused: string[] = [];
  readonly failed: string[] = [];
  readonly kept: { readonly instance: string; readonly bundle: string }[] = [];
  lives = 0;
  #goesOn = true;
  readonly #ids: ReadonlyMap<string, Readonly<Record<string, string>>>;

  constructor(broker: RegistryBroker, ids: ReadonlyMap<string, Readonly<Record<string, string>>>) {
    this.broker = broker;
    this.#ids = ids;
  }

  end(): void {
    this.#goesOn = false;
  }

  /** As a platform does: what gets no answer is asked again. */
  async ask(method: string, path: string, body?: object) {
    for (;;) {
      try {
        const answer = await this.broker.ask(method, path, body);
        if (answer.status < 500) {
          if (answer.status >= 400 && answer.status !== 410)
            this.refused.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
          return answer;
        }
      } catch {
        // The broker is being restarted.
      }
      await sleep(50);
    }
  }

  /** Answers how it ended. */
  async change(method: string, path: string, bundle: string): Promise<string> {
    const ids = this.#ids.get(bundle) ?? {};
    const asynchronously = `${path}?accepts_incomplete=true`;
    const { status, body } =
      method === "PUT"
        ? await this.ask("PUT", asynchronously, { ...ids, organization_guid: "o", space_guid: "s" })
        : await this.ask("DELETE", `${asynchronously}&${new URLSearchParams(ids)}`);
    if (status !== 202) return status < 300 || status === 410 ? "succeeded" : `answered with ${status}`;
    for (;;) {
      const query = new URLSearchParams({ ...ids, operation: body.operation });
      const polled = await this.ask("GET", `${path}/last_operation?${query}`);
      if (polled.status === 410) return "succeeded";
      if (polled.body.state === "failed") this.failed.push(`${method} ${path}: ${polled.body.description}`);
      if (polled.body.state !== "in progress") return polled.body.state;
      await sleep(50);
    }
  }

  /** One instance after the other, through all of their lives; some are left for the end. */
  async work(bundles: readonly string[]): Promise<void> {
    for (let turn = 0; this.#goesOn; turn++) {
      const bundle = bundles[turn % bundles.length] ?? "";
      const [instance, binding] = [randomUUID(), randomUUID()];
      const path = `/v2/service_instances/${instance}`;
      if ((await this.change("PUT", path, bundle)) === "succeeded") {
        expect(await this.change("PUT", `${path}/service_bindings/${binding}`, bundle)).toBe("succeeded");
        expect(await this.change("DELETE", `${path}/service_bindings/${binding}`, bundle)).toBe("succeeded");
      }
      if (turn % 4 === 0) this.kept.push({ instance, bundle });
      else expect(await this.change("DELETE", path, bundle)).toBe("succeeded");
      this.lives += 1;
    }
  }
}

test("F5-2, F5-7, F5-11, F5-13, F5-26, F5-34: whatever becomes of a registry while it is read all the time, no request is refused and no instance is stranded", async () => {
  const hub = new Hub(await brokerFolder());
  if (!(await hub.start())) return;
  onTestFinished(() => hub.stop());
  const script = `[ "$1" = bind ] && echo '{"credentials":{"user":"u"}}'\nexit 0\n`;
  const layer = await archive({ "run.sh": script });
  for (const name of used) await push(hub.address, name, "latest", bundleContent(name, "1.0.0", [layer]));
  for (let from = 0; from < others.length; from += 20)
    await Promise.all(
      others.slice(from, from + 20).map((name) => push(hub.address, name, "latest", bundleContent(name, "1.0.0"))),
    );
  await hub.save();
  const place = await serve((asked, response) => hub.forward(asked, response));
  const options = { data: await brokerFolder(), intervalMs: 300, missing: { runs: 3, ms: 900_000 } };
  const load = new Load(new RegistryBroker({ ...options, registry: place.url }), new Map());
  const namesNow = async (): Promise<readonly string[]> => {
    const { body } = await load.ask("GET", "/v2/catalog");
    return body.services?.map(({ name }: { name: string }) => name).sort();
  };
  const all = [...used, ...others].sort();
  await expect.poll(async () => (await load.broker.ask("GET", "/v2/catalog")).status, { timeout: 30_000 }).toBe(200);
  await expect.poll(namesNow, { timeout: 30_000 }).toEqual(all);
  const { body, etag } = await load.ask("GET", "/v2/catalog");
  const ids = new Map<string, Readonly<Record<string, string>>>();
  for (const { id, name, plans } of body.services) ids.set(name, { service_id: id, plan_id: plans[0].id });
  const storm = new Load(load.broker, ids);

  // What an instance was made of is in the mirror from here on; the last bundle is of no instance yet.
  const known = used.slice(0, -1);
  const fresh = used.at(-1) ?? "";
  for (const bundle of known) {
    storm.kept.push({ instance: bundle, bundle });
    expect(await storm.change("PUT", `/v2/service_instances/${bundle}`, bundle)).toBe("succeeded");
  }
  const works = Array.from({ length: workers }, (_, index) =>
    storm.work([...known.slice(index), ...known.slice(0, index)]),
  );
  let watches = true;
  const watching = (async () => {
    while (watches) {
      expect((await storm.ask("GET", "/v2/catalog")).etag, "the catalog stays as it is").toBe(etag);
      await sleep(100);
    }
  })();
  const troubles = Promise.all([...works, watching]);
  troubles.catch(() => undefined);

  /** Until the registry was read twice in this state, and instances have lived in it. */
  const goesOn = async (reading: string) => {
    const from = storm.broker.lines.length;
    const lives = storm.lives + 1;
    await storm.broker.says(`read ${reading}`, from);
    await storm.broker.says(`read ${reading}`, storm.broker.lines.length);
    while (storm.lives < lives) await Promise.race([sleep(50), troubles]);
  };
  await goesOn("complete");
  hub.trouble = "429";
  await goesOn("");
  hub.trouble = "cut";
  await goesOn("failed");
  expect(hub.troubled).toBeGreaterThan(2);
  hub.trouble = "none";
  await goesOn("complete");

  await hub.stop();
  await goesOn("failed");
  // It waits for its registry, and is made when that is back.
  const patient = storm.change("PUT", "/v2/service_instances/patient", fresh);
  storm.kept.push({ instance: "patient", bundle: fresh });
  await hub.start();
  await goesOn("complete");
  expect(await patient).toBe("succeeded");

  await hub.empty();
  await goesOn("complete 0");
  await hub.restore();
  await goesOn("complete 104");
  await hub.corrupt();
  await goesOn("");
  await hub.restore();
  await goesOn("complete 104");

  // Moved: other addresses of the registry and of what stands before it, told to the broker by a restart in the middle of its work.
  await hub.stop();
  await hub.start();
  const elsewhere = await serve((asked, response) => hub.forward(asked, response));
  await storm.broker.kill();
  storm.broker = new RegistryBroker({ ...options, registry: elsewhere.url });
  await goesOn("complete 104");

  await hub.stop();
  storm.end();
  watches = false;
  await troubles;
  // Without a registry, everything that is left can go.
  for (const { instance, bundle } of storm.kept)
    expect(await storm.change("DELETE", `/v2/service_instances/${instance}`, bundle)).toBe("succeeded");
  expect(storm.refused).toEqual([]);
  expect(storm.failed).toEqual([]);
}, 600_000);
