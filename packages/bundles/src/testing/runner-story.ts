import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "@osbert/protocol";
import type { BundleSpec } from "../formats/bundle-spec.js";
import type { Job, JobLimits, JobState, Runner } from "../runners/runner.js";
import type { RunnerPlace } from "./runner-under-test.js";

const patienceMs = 50_000;

/** Enough for each program of the suite, and little enough that one which hangs does not stay. */
export const suiteLimits: JobLimits = {
  timeoutMs: 60_000,
  memoryBytes: 536_870_912,
  processes: 64,
  cpuSeconds: 30,
  outputBytes: 1_048_576,
  network: true,
};

export interface JobOptions {
  readonly id?: string;
  readonly limits?: Partial<JobLimits>;
  readonly parameters?: JsonObject;
}

/** Bundles that call the story, so that it knows what runs, and lets them go on. */
export class RunnerStory {
  readonly #place: RunnerPlace;
  readonly #server: Server;
  readonly #calls: Call[] = [];

  private constructor(place: RunnerPlace, server: Server) {
    this.#place = place;
    this.#server = server;
    server.on("connection", (socket) => this.#calls.push(new Call(socket)));
  }

  static async tell(place: RunnerPlace, body: (story: RunnerStory) => Promise<void>): Promise<void> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const story = new RunnerStory(place, server);
    try {
      await body(story);
    } finally {
      for (const call of story.#calls) call.end();
      server.close();
    }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  runner(): Promise<Runner> {
    return this.#place.runner();
  }

  /**
   * A job whose program can call the story: `call NAME` leaves a connection open as long as the process lives, and `await_leave` waits
   * until the story lets it go on.
   */
  async job(program: string, { id = randomUUID(), limits = {}, parameters = {} }: JobOptions = {}): Promise<Job> {
    const artifact = await this.#place.bundle(`${this.#calling()}\n${program}\n`);
    const input = { action: "provision", idempotencyKey: id, parameters, state: {} };
    const operation = { key: "suite/instance", id };
    const all = { ...suiteLimits, ...limits };
    return { id, action: "provision", spec: suiteSpec, artifact, input, limits: all, operation };
  }

  /** How often programs have called by this name. */
  calls(name: string): readonly Call[] {
    return this.#calls.filter((call) => call.name === name);
  }

  /** Waits for the first call by this name. */
  async called(name: string): Promise<Call> {
    await this.until(`${name} calls`, async () => this.calls(name).length > 0);
    return this.calls(name)[0] as Call;
  }

  async ends(runner: Runner, id: string): Promise<JobState> {
    const { signal } = new AbortController();
    const state = await runner.look(id, { waitMs: patienceMs, signal });
    assert.notEqual(state.kind, "running", `the job must end within ${patienceMs} ms`);
    return state;
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + patienceMs;
    while (!(await holds())) {
      if (performance.now() > end) throw new Error(`waited ${patienceMs} ms in vain until ${what}`);
      await sleep(10);
    }
  }

  #calling(): string {
    return [
      `call() { exec 9<>/dev/tcp/127.0.0.1/${this.port} && echo "$1" >&9; }`,
      "await_leave() { read -r _ <&9; }",
    ].join("\n");
  }
}

/** A process of a job that has called, and has not ended as long as it is open. */
export class Call {
  name = "";
  isOpen = true;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (piece: string) => {
      text += piece;
      if (text.includes("\n")) this.name = text.slice(0, text.indexOf("\n"));
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isOpen = false;
    });
  }

  /** Lets the program go on. */
  leave(): void {
    this.#socket.write("go on\n");
  }

  end(): void {
    this.#socket.destroy();
  }
}

const suiteSpec: BundleSpec = {
  format: "osbert",
  runtime: null,
  name: "suite",
  id: null,
  description: "A bundle of the suite",
  tags: [],
  bindable: true,
  metadata: {},
  bundleVersion: "1.0.0",
  async: "optional",
  actions: ["provision", "update", "deprovision", "bind", "unbind"],
  plans: [],
  command: ["bash", "./run"],
  network: true,
  timeoutMs: null,
};
