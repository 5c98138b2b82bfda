import type { OperationFacts } from "./observe.js";

/**
 * Stands around attempts and their steps, so that what runs in them can run in a context of its own: a tracer's spans, for instance.
 * It only watches: whatever it throws is swallowed, and the work is done all the same.
 */
export interface Around {
  attempt(about: AttemptFacts): AroundAttempt;
}

export interface AttemptFacts extends OperationFacts {
  /** 1 for the first. */
  readonly attempt: number;
  /** What the attribution of the request carried as `trace`. */
  readonly trace: string | null;
}

export interface AroundAttempt {
  /** Calls `work` at once, once, and answers what it answers. */
  run<T>(work: () => T): T;
  step(name: string): AroundStep;
  /** `error` if it threw. An attempt that its process does not survive has no end. */
  end(how: "returned" | "threw" | "asleep" | "interrupted", error?: unknown): void;
}

export interface AroundStep {
  /** Calls `work` at once, once, and answers what it answers. */
  run<T>(work: () => T): T;
  /** The step is recorded, or `error` says why it is not. */
  end(error?: unknown): void;
}

const aroundStep: AroundStep = { run: (work) => work(), end: () => undefined };
/** Nobody stands around an attempt. */
export const noAttemptAround: AroundAttempt = { run: (work) => work(), step: () => aroundStep, end: () => undefined };

/** Nobody stands around. */
export const nothingAround: Around = { attempt: () => noAttemptAround };

/** The same, and it cannot harm what it stands around. */
export function carefully(around: Around): Around {
  return {
    attempt(about) {
      const attempt = attempted(() => around.attempt(about), noAttemptAround);
      return {
        run: (work) => runInside(attempt, work),
        step(name) {
          const step = attempted(() => attempt.step(name), aroundStep);
          return { run: (work) => runInside(step, work), end: (error) => attempted(() => step.end(error), undefined) };
        },
        end: (how, error) => attempted(() => attempt.end(how, error), undefined),
      };
    },
  };
}

/** Runs `work` inside, once, whatever `around` does: what the work itself throws goes on to whoever asked for it, what `around` throws does not. */
export function runInside<T>(around: Pick<AroundStep, "run">, work: () => T): T {
  let done: { readonly answer: T } | { readonly thrown: unknown } | undefined;
  const once = (): T => {
    if (done === undefined) {
      try {
        done = { answer: work() };
      } catch (thrown) {
        done = { thrown };
      }
    }
    if ("thrown" in done) throw done.thrown;
    return done.answer;
  };
  attempted(() => around.run(once), undefined);
  return once();
}

function attempted<T>(work: () => T, otherwise: T): T {
  try {
    return work();
  } catch {
    return otherwise;
  }
}
