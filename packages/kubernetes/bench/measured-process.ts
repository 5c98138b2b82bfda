import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Answered, Asked, ConditionTold, Orders } from "./orders.js";

const program = new URL("./dist/packages/kubernetes/bench/event-broker.js", import.meta.url);

/** A process of its own, so that its memory is its own, from what `tsc` has built. It ends with this one. */
export class MeasuredProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answered) => void>();
  #asked = 0;
  /** Told of every condition as it changes. */
  onCondition: (told: ConditionTold) => void = () => undefined;

  constructor() {
    this.#child = fork(program, [], { execArgv: ["--expose-gc"] });
    this.#child.on("message", (message: Answered | ConditionTold) => {
      if (message.kind === "condition") return this.onCondition(message);
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
    this.#child.once("exit", () => {
      for (const [id, answer] of this.#waiting)
        answer({ kind: "answer", id, value: null, failed: "the process under measure has ended" });
    });
  }

  async ask<Name extends keyof Orders>(name: Name, order: Orders[Name]["order"]): Promise<Orders[Name]["answer"]> {
    const id = this.#asked++;
    const answered = new Promise<Answered>((resolve) => this.#waiting.set(id, resolve));
    this.#child.send({ id, name, order } satisfies Asked);
    const { value, failed } = await answered;
    if (failed !== null) throw new Error(failed);
    return value as Orders[Name]["answer"];
  }

  async end(): Promise<void> {
    await this.ask("stop", null);
    this.#child.disconnect();
    if (this.#child.exitCode === null) await once(this.#child, "exit");
  }
}
