import type { Retention } from "@osbert/journal";
import type { ChildCommand, ChildConfig, StoreAddress } from "./child-config.js";
import { Child } from "./child-process.js";
import type { DumpedResource } from "./dump.js";
import { type Scenario, type ScenarioOptions, scenarioOf } from "./scenario.js";
import { type ChildEvent, machineMs, type ParentEvent, type Witnessed } from "./witness.js";

export interface FleetOptions {
  readonly store: StoreAddress;
  readonly scenario: ScenarioOptions;
  readonly leaseMs: number;
  readonly retention: Retention;
  /** Requests that a child is given before it has answered the first of them. */
  readonly window: number;
  /** Default 10,000. */
  readonly timeoutMs?: number;
  /** Whether children go on trying if the store cannot be opened. Default: they end, which counts as "ended by itself". */
  readonly keepTrying?: boolean;
}

export interface SpawnOptions {
  /** Another way to the same store. */
  readonly store?: StoreAddress;
  /** Default 1. */
  readonly clockRate?: number;
}

export type DieAt = Extract<ChildConfig["task"], { kind: "run" }>["dieAt"];

/** One life of one child. */
export interface Life {
  readonly process: number;
  readonly child: Child;
  readonly dieAt: DieAt;
  /** Resolves when its engine runs, or when it ended before that. */
  readonly started: Promise<boolean>;
  readonly ended: Promise<void>;
  state: "starting" | "running" | "frozen" | "ended";
  /** It is meant to end: its end is no surprise. "finishes": but not with an error. */
  doomed: boolean | "finishes";
}

/**
 * Children on one store, the witness of what they do, and the dealing out of the scenario's requests. A request that was not
 * answered before its child died is given to another one, until some child answers.
 */
export class Fleet {
  readonly witnessed: Witnessed[] = [];
  readonly lives: Life[] = [];
  readonly #options: FleetOptions;
  #scenario: Scenario;
  /** What every life has been told and has not answered. */
  readonly #asked = new Map<Life, Map<string, ChildCommand>>();
  readonly #again: ChildCommand[] = [];
  #next = 0;
  #allowed = 0;
  #answered = 0;
  #waitingCancels = 0;
  #changed: () => void = () => undefined;

  /** If this process ends early, nothing of it stays behind, least of all a frozen child. */
  readonly #killAll = () => {
    for (const life of this.#asked.keys()) life.child.kill();
  };

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#scenario = scenarioOf(options.scenario);
    process.on("exit", this.#killAll);
  }

  get scenario(): Scenario {
    return this.#scenario;
  }

  get answered(): number {
    return this.#answered;
  }

  /** All was asked and all was answered. */
  get isAllAnswered(): boolean {
    return this.#answered === this.scenario.requests.length && this.#waitingCancels === 0;
  }

  /** So many of the scenario's requests may be dealt out by now. */
  allow(requests: number): void {
    this.#allowed = Math.min(Math.max(this.#allowed, Math.ceil(requests)), this.scenario.requests.length);
    this.#deal();
  }

  /** What was not dealt out by now never will be: the scenario ends here. */
  askNoMore(): void {
    const requests = this.#scenario.requests.slice(0, this.#next);
    this.#scenario = { requests, scripts: requests.flatMap(({ scripts }) => scripts) };
    this.#allowed = this.#next;
  }

  spawn(dieAt: DieAt = null, { store = this.#options.store, clockRate = 1 }: SpawnOptions = {}): Life {
    const { scenario, leaseMs, retention, timeoutMs = 10_000, keepTrying: keepsTrying = false } = this.#options;
    const number = this.lives.length;
    const task = { kind: "run", scenario, leaseMs, retention, dieAt, clockRate, timeoutMs, keepsTrying } as const;
    let start: (started: boolean) => void = () => undefined;
    const started = new Promise<boolean>((resolve) => {
      start = resolve;
    });
    this.#note(number, { kind: "spawned" });
    const child = new Child({ process: number, store, task }, (line) => {
      const event = JSON.parse(line) as ChildEvent & { at: number; process: number };
      this.witnessed.push(event);
      if (event.kind === "started") {
        if (life.state === "starting") life.state = "running";
        start(true);
      }
      this.#hear(life, event);
    });
    const ended = child.exited.then(({ code, signal, stderr }) => {
      life.state = "ended";
      start(false);
      if (!life.doomed || (life.doomed === "finishes" && code !== 0 && signal === null))
        this.#note(number, { kind: "ended by itself", why: `${signal ?? `code ${code}`} ${stderr}` });
      this.#again.push(...(this.#asked.get(life)?.values() ?? []));
      this.#asked.delete(life);
      this.#deal();
    });
    const life: Life = { process: number, child, dieAt, started, ended, state: "starting", doomed: false };
    this.lives.push(life);
    this.#asked.set(life, new Map());
    return life;
  }

  kill(life: Life): void {
    if (life.state === "ended" || life.doomed) return;
    life.doomed = true;
    this.#note(life.process, { kind: "killed", how: "at random" });
    life.child.kill();
  }

  freeze(life: Life): void {
    this.#note(life.process, { kind: "frozen" });
    life.state = "frozen";
    life.child.freeze();
  }

  thaw(life: Life): void {
    if (life.state !== "frozen") return;
    this.#note(life.process, { kind: "thawed" });
    life.state = "running";
    life.child.thaw();
    this.#deal();
  }

  /** While a child has a file, another process tries to open it as well. Answers 1, or 0 if the child has ended meanwhile. */
  async rival(store: StoreAddress, owner: Life, by: string): Promise<0 | 1> {
    let refusedBy: string | null | undefined;
    const child = new Child({ process: -1, store, task: { kind: "rival" } }, (line) => {
      const event = JSON.parse(line) as Witnessed;
      this.witnessed.push(event);
      if (event.kind === "rival") refusedBy = event.refusedBy;
    });
    await child.exited;
    if (owner.state === "ended" || owner.doomed) return 0;
    if (refusedBy === null) this.#note(owner.process, { kind: "two owners", by });
    return 1;
  }

  noteDisturbed(what: { readonly kind: string }, hit: number): void {
    this.#note(-1, { kind: "disturbed", what, hit });
  }

  noteCalm(): void {
    this.#note(-1, { kind: "calm" });
  }

  /** Waits until all was answered; false if that takes too long. */
  async allAnswered(withinMs: number): Promise<boolean> {
    const giveUpAt = performance.now() + withinMs;
    while (!this.isAllAnswered) {
      if (performance.now() > giveUpAt) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 200);
        this.#changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return true;
  }

  /** Tells a child to end once nothing is open any more. */
  async finish(life: Life, withinMs: number): Promise<void> {
    life.doomed = "finishes";
    life.child.tell({ kind: "finish" });
    const timer = setTimeout(() => life.child.kill(), withinMs);
    await life.ended;
    clearTimeout(timer);
  }

  /** What the store holds, read by a process of its own. */
  async dump(): Promise<readonly DumpedResource[]> {
    const resources: DumpedResource[] = [];
    const config: ChildConfig = { process: -1, store: this.#options.store, task: { kind: "dump" } };
    const child = new Child(config, (line) => resources.push(JSON.parse(line) as DumpedResource));
    const { code, stderr } = await child.exited;
    if (code !== 0) throw new Error(`the store could not be read in the end: ${stderr}`);
    return resources;
  }

  /** Ends whatever still lives. */
  async end(): Promise<void> {
    for (const life of this.lives) {
      life.doomed = true;
      if (life.state !== "ended") life.child.kill();
    }
    await Promise.all(this.lives.map(({ ended }) => ended));
    process.off("exit", this.#killAll);
  }

  #hear(life: Life, event: ChildEvent): void {
    if (event.kind === "refused") {
      this.#answer(life, `accept ${event.request}`);
      this.#answered++;
    } else if (event.kind === "accepted") {
      this.#answer(life, `accept ${event.request}`);
      this.#answered++;
      this.#planCancels(event.request, event.ids);
    } else if (event.kind === "cancel answered") {
      this.#answer(life, `cancel ${event.n}`);
      this.#waitingCancels--;
    } else if (event.kind === "not accepted") this.#repeat(life, `accept ${event.request}`);
    else if (event.kind === "cancel failed") this.#repeat(life, `cancel ${event.n}`);
    else if (event.kind === "dies at") {
      life.doomed = true;
      this.#note(life.process, { kind: "killed", how: "at a point" });
    } else if (event.kind !== "started") return;
    this.#deal();
    this.#changed();
  }

  #answer(life: Life, what: string): ChildCommand | undefined {
    const command = this.#asked.get(life)?.get(what);
    this.#asked.get(life)?.delete(what);
    return command;
  }

  #repeat(life: Life, what: string): void {
    const command = this.#answer(life, what);
    if (command === undefined) return;
    setTimeout(() => {
      this.#again.push(command);
      this.#deal();
    }, 50);
  }

  #planCancels(request: number, ids: readonly string[] | null): void {
    const scripts = this.scenario.requests[request]?.scripts ?? [];
    for (const [index, { n, cancelAfterMs }] of scripts.entries()) {
      const id = ids?.[index];
      if (id === undefined || cancelAfterMs === null) continue;
      this.#waitingCancels++;
      setTimeout(() => {
        this.#note(-1, { kind: "cancel asked", n });
        this.#again.push({ kind: "cancel", n, id });
        this.#deal();
      }, cancelAfterMs);
    }
  }

  /** Gives what has to be asked to the children that have least to do. */
  #deal(): void {
    for (;;) {
      const free = [...this.#asked.keys()].filter(
        (life) => life.state === "running" && !life.doomed && this.#room(life) > 0,
      );
      free.sort((a, b) => this.#room(b) - this.#room(a));
      const [life] = free;
      if (life === undefined) return;
      const command = this.#again.shift() ?? this.#nextRequest();
      if (command === undefined) return;
      this.#asked.get(life)?.set(nameOf(command), command);
      life.child.tell(command);
    }
  }

  #nextRequest(): ChildCommand | undefined {
    return this.#next < this.#allowed ? { kind: "accept", request: this.#next++ } : undefined;
  }

  #room(life: Life): number {
    return this.#options.window - (this.#asked.get(life)?.size ?? 0);
  }

  #note(process: number, event: ParentEvent): void {
    this.witnessed.push({ at: machineMs(), process, ...event });
  }
}

function nameOf(command: ChildCommand): string {
  return command.kind === "accept"
    ? `accept ${command.request}`
    : command.kind === "cancel"
      ? `cancel ${command.n}`
      : "finish";
}
