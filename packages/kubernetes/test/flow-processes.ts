import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { until } from "../../../tools/until.js";
import type { FlowMessage, FlowProcessConfig, FlowRequest } from "./flow-process.js";
import type { Loose } from "./loose.js";

type Answer = { readonly status: number; readonly body: Loose };

/** A process of flow-process.ts. It ends with the test. */
export class FlowProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer | undefined) => void>();
  readonly #ready: Promise<unknown>;
  /** Resolves when it reaches the point where it is killed or frozen, or has ended otherwise. */
  readonly halted: Promise<void>;
  /** Resolves when it has done what it was frozen before. */
  readonly wentOn: Promise<void>;
  #requests = 0;

  constructor(config: FlowProcessConfig) {
    const program = fileURLToPath(new URL("flow-process.ts", import.meta.url));
    const execArgv = ["--conditions=@osbert/source", "--import", "tsx"];
    this.#child = fork(program, [JSON.stringify(config)], {
      execArgv,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    onTestFinished(() => void this.#child.kill("SIGKILL"));
    let [ready, halts, goes]: (() => void)[] = [];
    this.#ready = new Promise<void>((resolve) => {
      ready = resolve;
    });
    this.halted = new Promise<void>((resolve) => {
      halts = resolve;
    });
    this.wentOn = new Promise<void>((resolve) => {
      goes = resolve;
    });
    this.#child.on("message", (message: FlowMessage) => {
      if (message.kind === "ready") ready?.();
      else if (message.kind === "halts") halts?.();
      else if (message.kind === "went on") goes?.();
      else this.#waiting.get(message.id)?.(message);
    });
    this.#child.once("exit", () => {
      ready?.();
      halts?.();
      goes?.();
      for (const give of this.#waiting.values()) give(undefined);
    });
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** `undefined`: it was killed meanwhile, and nobody knows how far it came. */
  async request(method: string, path: string, body?: object): Promise<Answer | undefined> {
    await this.#ready;
    if (this.isOver) return undefined;
    this.#requests += 1;
    const id = this.#requests;
    const answered = new Promise<Answer | undefined>((resolve) => this.#waiting.set(id, resolve));
    const request: FlowRequest = { id, method, path, ...(body !== undefined && { body }) };
    this.#child.send(request, (error) => error && this.#waiting.get(id)?.(undefined));
    return answered.finally(() => this.#waiting.delete(id));
  }

  async kill(): Promise<void> {
    if (this.isOver) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }

  /** After it was frozen. */
  goOn(): void {
    this.#child.kill("SIGCONT");
  }
}

/** Several that share a store, of which some may die: whoever is asked, another one is asked if it does. */
export class FlowProcesses {
  readonly #start: (place: number) => FlowProcess;
  readonly #all: FlowProcess[] = [];
  kills = 0;

  constructor(places: number, start: (place: number) => FlowProcess) {
    this.#start = start;
    for (let place = 0; place < places; place++) this.#all.push(start(place));
  }

  /** Those that were killed are started again. */
  revive(): void {
    for (const [place, each] of this.#all.entries()) {
      if (!each.isOver) continue;
      this.kills += 1;
      this.#all[place] = this.#start(place);
    }
  }

  async killOne(place: number): Promise<void> {
    await this.#all[place]?.kill();
    this.revive();
  }

  async ask(method: string, path: string, body?: object): Promise<Answer> {
    let answer: Answer | undefined;
    let asked = 0;
    await until(`an answer to ${method} ${path}`, async () => {
      this.revive();
      answer = await this.#all[asked++ % this.#all.length]?.request(method, path, body);
      return answer !== undefined && answer.status !== 0 && answer.status < 500;
    });
    if (answer === undefined) throw new Error("there was no answer");
    return answer;
  }
}

const path = (namespace: string, instance: string) => `/${namespace}/v2/service_instances/${instance}`;
const ids = (application: string) => ({ service_id: `${application}-events`, plan_id: `${application}-events-plan` });

/** What a platform does, which asks again for what it has no answer to. */
export const platform = {
  async provision(to: Pick<FlowProcesses, "ask">, namespace: string, instance: string, application: string) {
    const body = { ...ids(application), organization_guid: "o", space_guid: "s" };
    await to.ask("PUT", `${path(namespace, instance)}?accepts_incomplete=true`, body);
  },
  async deprovision(to: Pick<FlowProcesses, "ask">, namespace: string, instance: string, application: string) {
    const query = new URLSearchParams({ ...ids(application), accepts_incomplete: "true" });
    await until(`${instance} to be deprovisioned`, async () => {
      const { status } = await to.ask("DELETE", `${path(namespace, instance)}?${query}`);
      return status === 202 || status === 200 || status === 410;
    });
  },
  /** Waits for the end of what was asked for last. */
  async settled(to: Pick<FlowProcesses, "ask">, namespace: string, instance: string): Promise<string> {
    let state = "";
    await until(`the operation of ${instance} to end`, async () => {
      const { status, body } = await to.ask("GET", `${path(namespace, instance)}/last_operation`);
      state = status === 410 ? "gone" : body.state;
      return state !== "in progress";
    });
    return state;
  },
};
