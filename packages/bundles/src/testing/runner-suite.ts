import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { endOf, noOutput, readOutput } from "../runners/action-output.js";
import { limitJobs } from "../runners/limit-jobs.js";
import type { Runner } from "../runners/runner.js";
import { RunnerError } from "../runners/runner-error.js";
import { RunnerStory } from "./runner-story.js";
import type { RunnerPlace, RunnerUnderTest, TestRunner } from "./runner-under-test.js";

/** What every runner has to pass: the promises of the port, shown with real programs. */
export function runnerSuite(tests: TestRunner, subject: RunnerUnderTest): void {
  let opened: Promise<RunnerPlace> | undefined;
  for (const [name, body] of Object.entries(stories)) {
    const reason = subject.except?.[name];
    if (reason !== undefined) tests.skip(`${subject.name}: ${name}`, reason);
    else {
      tests.test(`${subject.name}: ${name}`, async () => {
        opened ??= subject.open();
        await RunnerStory.tell(await opened, body);
      });
    }
  }
  tests.test(`${subject.name}: clears up`, async () => (await opened)?.dispose());
}

const { signal } = new AbortController();
const whole = 1_048_576;
const exit = (exitCode: number) => ({ kind: "ended", exitCode, cause: "exit" }) as const;

/** What may be in the environment of a program: the contract's, and what shells and engines of containers add. */
const environment = [
  ...["PATH", "LANG", "HOME", "TMPDIR", "OSBERT_INPUT"],
  ...["PWD", "OLDPWD", "SHLVL", "_", "HOSTNAME", "TERM", "container"],
];

const stories: Readonly<Record<string, (story: RunnerStory) => Promise<void>>> = {
  "a program gets the action, its input twice, and a clean environment": async (story) => {
    const runner = await story.runner();
    const job = await story.job(
      [
        `cmp -s - "$OSBERT_INPUT" && [ "$1" = provision ] && [ $# = 1 ] || exit 3`,
        `[ -z "$(compgen -e | grep -vxE '${environment.join("|")}')" ] && [ -n "$PATH" ] && [ -n "$LANG" ] || exit 4`,
        `echo x >"$TMPDIR/file" || exit 5`,
        `grep -q '"key":"ä"' "$OSBERT_INPUT" || exit 6`,
        `echo '{"progress":"one"}'; printf '{"progress":"two"}'; echo "for people" >&2`,
      ].join("\n"),
      { parameters: { key: "ä" } },
    );
    await runner.start(job, signal);
    const state = await story.ends(runner, job.id);
    assert.deepEqual(state, exit(0), await runner.log(job.id, whole));
    assert.deepEqual((await runner.output(job.id, 0)).lines, ['{"progress":"one"}', '{"progress":"two"}']);
    assert.match(await runner.log(job.id, whole), /^for people$/m);
  },

  "files: those of the bundle are there, and cannot be changed": async (story) => {
    const runner = await story.runner();
    const job = await story.job(
      "[ -r run ] || exit 3; if echo x >here; then exit 4; fi; if echo x >>run; then exit 5; fi",
    );
    await runner.start(job, signal);
    assert.deepEqual(await story.ends(runner, job.id), exit(0));
  },

  "a job that is started again and again runs once": async (story) => {
    const [one, other] = [await story.runner(), await story.runner()];
    const job = await story.job("call ran; await_leave; exit 5");
    await Promise.all([one, other, one, other].map((runner) => runner.start(job, signal)));
    const call = await story.called("ran");
    await other.start(job, signal);
    call.leave();
    assert.deepEqual(await story.ends(one, job.id), exit(5));
    await (await story.runner()).start(job, signal);
    assert.deepEqual(await story.ends(other, job.id), exit(5));
    assert.equal(story.calls("ran").length, 1);
  },

  "a job is found again by whoever knows its id, while it runs and after its end": async (story) => {
    const job = await story.job(
      `echo '{"state":{"a":1}}'; echo hello >&2; call ran; await_leave; echo '{"progress":"end"}'`,
    );
    await (await story.runner()).start(job, signal);
    const call = await story.called("ran");
    const other = await story.runner();
    assert.deepEqual(await other.look(job.id, { waitMs: 0, signal }), { kind: "running" });
    await story.until("its first line is there", async () => (await other.output(job.id, 0)).next > 0);
    const first = await other.output(job.id, 0);
    assert.deepEqual(first.lines, ['{"state":{"a":1}}']);
    await story.until("its log is there", async () => (await other.log(job.id, whole)).includes("hello"));
    call.leave();
    assert.deepEqual(await story.ends(other, job.id), exit(0));
    const second = await (await story.runner()).output(job.id, first.next);
    assert.deepEqual(second.lines, ['{"progress":"end"}']);
    assert.deepEqual(await other.output(job.id, second.next), { lines: [], next: second.next });
  },

  "a job is told to whoever asks at the same place, with whose work it is, until it has ended and is forgotten": async (
    story,
  ) => {
    const [one, other] = [await story.runner(), await story.runner()];
    assert.equal(one.place, other.place);
    const job = await story.job("call ran; await_leave");
    await one.start(job, signal);
    const call = await story.called("ran");
    const found = async () => (await other.jobs()).filter(({ id }) => id === job.id);
    assert.deepEqual(await found(), [{ id: job.id, operation: job.operation }]);
    call.leave();
    await story.ends(one, job.id);
    assert.deepEqual(await found(), [{ id: job.id, operation: job.operation }]);
    await one.forget(job.id);
    assert.deepEqual(await found(), []);
  },

  "a look ends early with its signal, and a job that nobody started is unknown": async (story) => {
    const runner = await story.runner();
    assert.deepEqual(await runner.look(randomUUID(), { waitMs: 10, signal }), { kind: "unknown" });
    const job = await story.job("call ran; await_leave");
    await runner.start(job, signal);
    const stopped = new AbortController();
    const look = runner.look(job.id, { waitMs: 600_000, signal: stopped.signal });
    stopped.abort(new Error("enough"));
    await assert.rejects(look);
    await runner.stop(job.id);
  },

  "half a line is not told before it is whole": async (story) => {
    const runner = await story.runner();
    const job = await story.job(`printf '{"progress":'; call half; await_leave; printf '"x"}\\n'`);
    await runner.start(job, signal);
    const call = await story.called("half");
    assert.deepEqual(await runner.output(job.id, 0), { lines: [], next: 0 });
    call.leave();
    await story.ends(runner, job.id);
    assert.deepEqual((await runner.output(job.id, 0)).lines, ['{"progress":"x"}']);
  },

  "rubbish on standard output is told by the number of its line": async (story) => {
    const runner = await story.runner();
    const job = await story.job(`echo '{"progress":"x"}'; echo secret-rubbish; head -c 1000 /dev/urandom`);
    await runner.start(job, signal);
    const state = await story.ends(runner, job.id);
    const end = endOf(state, readOutput(noOutput, (await runner.output(job.id, 0)).lines));
    assert.equal(end?.kind, "failed");
    assert.match(JSON.stringify(end), /line 2 of/);
    assert.doesNotMatch(JSON.stringify(end), /secret-rubbish/);
  },

  "stop ends a program and all that it has started, also what has a session of its own": async (story) => {
    const runner = await story.runner();
    const job = await story.job(
      `(trap '' TERM; call child; sleep 300) & setsid bash -c "$(declare -f call); call session; sleep 300" & call parent; wait`,
    );
    await runner.start(job, signal);
    const calls = await Promise.all(["parent", "child", "session"].map((name) => story.called(name)));
    await (await story.runner()).stop(job.id);
    const state = await runner.look(job.id, { waitMs: 0, signal });
    assert.equal(state.kind === "ended" && state.cause, "stopped");
    await story.until("all of its processes are gone", async () => calls.every(({ isOpen }) => !isOpen));
  },

  "a program that is stopped may clear up": async (story) => {
    const runner = await story.runner();
    const job = await story.job(`trap 'echo "{\\"state\\":{\\"cleared\\":true}}"; exit 3' TERM; call ran; await_leave`);
    await runner.start(job, signal);
    await story.called("ran");
    await runner.stop(job.id);
    const state = await runner.look(job.id, { waitMs: 0, signal });
    assert.equal(state.kind === "ended" && state.cause, "stopped");
    assert.deepEqual((await runner.output(job.id, 0)).lines, ['{"state":{"cleared":true}}']);
  },

  "a job that is stopped as soon as it is started ends": async (story) => {
    const runner = await story.runner();
    const job = await story.job("call ran; await_leave");
    for (let time = 0; time < 5; time++) {
      const id = randomUUID();
      await runner.start({ ...job, id }, signal);
      await runner.stop(id);
      const state = await runner.look(id, { waitMs: 0, signal });
      assert.equal(state.kind === "ended" && state.cause, "stopped");
    }
    await story.until("all are gone", async () => story.calls("ran").every(({ isOpen }) => !isOpen));
  },

  "a job whose start is given up and which is stopped, at whatever moment of the start, does not run on": async (
    story,
  ) => {
    const runner = await story.runner();
    const job = await story.job("call ran; await_leave");
    for (let moment = 0; moment < 20; moment++) {
      const id = randomUUID();
      const unwanted = new AbortController();
      const started = runner.start({ ...job, id }, unwanted.signal).catch(() => undefined);
      await sleep(moment);
      unwanted.abort(new Error("cancelled"));
      await runner.stop(id);
      await started;
      const { kind } = await runner.look(id, { waitMs: 0, signal });
      assert.notEqual(kind, "running", `stopped after ${moment} ms`);
    }
    await story.until("all are gone", async () => story.calls("ran").every(({ isOpen }) => !isOpen));
  },

  "stop leaves alone what has ended, and what was never started": async (story) => {
    const runner = await story.runner();
    const [job, never] = [await story.job("exit 75"), randomUUID()];
    await runner.start(job, signal);
    await story.ends(runner, job.id);
    await runner.stop(job.id);
    assert.deepEqual(await runner.look(job.id, { waitMs: 0, signal }), exit(75));
    await runner.stop(never);
    assert.deepEqual(await runner.look(never, { waitMs: 0, signal }), { kind: "unknown" });
  },

  "what a program leaves running ends with it": async (story) => {
    const runner = await story.runner();
    const job = await story.job(`(call left; sleep 300) & read -t 0.01; call ran; await_leave; exit 0`);
    await runner.start(job, signal);
    const left = await story.called("left");
    (await story.called("ran")).leave();
    assert.deepEqual(await story.ends(runner, job.id), exit(0));
    await story.until("what it left is gone", async () => !left.isOpen);
  },

  "time: a program that takes too long is ended, also if it does not want to": async (story) => {
    const runner = await story.runner();
    const job = await story.job("trap '' TERM; call ran; while :; do sleep 1; done", { limits: { timeoutMs: 1_000 } });
    await runner.start(job, signal);
    const state = await story.ends(runner, job.id);
    assert.equal(state.kind === "ended" && state.cause, "timeout");
    await story.until("it is gone", async () => story.calls("ran").every(({ isOpen }) => !isOpen));
  },

  "output: a program that prints too much is ended, and what is kept is bounded": async (story) => {
    const runner = await story.runner();
    for (const stream of [1, 2]) {
      const job = await story.job(`trap '' PIPE; while :; do echo '{"progress":"x"}'; done >&${stream} 2>/dev/null`, {
        limits: { outputBytes: 20_000 },
      });
      await runner.start(job, signal);
      const state = await story.ends(runner, job.id);
      assert.equal(state.kind === "ended" && state.cause, "output");
      const { next } = await runner.output(job.id, 0);
      assert.ok(next <= 20_000, `${next} bytes of output`);
      assert.ok((await runner.log(job.id, whole)).length <= 20_000);
    }
  },

  "memory: a program that takes too much does not get it": async (story) => {
    const runner = await story.runner();
    const job = await story.job(
      `echo begun; x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo "\${#x}" >&2; [ "\${#x}" = 300000000 ]`,
      {
        limits: { memoryBytes: 67_108_864 },
      },
    );
    await runner.start(job, signal);
    const state = await story.ends(runner, job.id);
    assert.ok(state.kind === "ended" && state.exitCode !== 0, JSON.stringify(state));
    assert.equal((await runner.output(job.id, 0)).lines[0], "begun");
  },

  "processes: a program that starts too many does not get them": async (story) => {
    const runner = await story.runner();
    const job = await story.job("echo begun; exec sh -c 'for i in $(seq 40); do sleep 30 & done; exit 0'", {
      limits: { processes: 20 },
    });
    await runner.start(job, signal);
    const state = await story.ends(runner, job.id);
    assert.ok(state.kind === "ended" && state.exitCode !== 0, JSON.stringify(state));
    assert.equal((await runner.output(job.id, 0)).lines[0], "begun");
  },

  "cpu: a program that computes for ever is ended": async (story) => {
    const runner = await story.runner();
    const job = await story.job("echo begun; while :; do :; done", { limits: { cpuSeconds: 1 } });
    await runner.start(job, signal);
    const state = await story.ends(runner, job.id);
    assert.ok(state.kind === "ended" && state.exitCode !== 0, JSON.stringify(state));
    assert.equal((await runner.output(job.id, 0)).lines[0], "begun");
  },

  "network: there is none unless it is allowed": async (story) => {
    const runner = await story.runner();
    const job = await story.job("call out && exit 0; exit 3", { limits: { network: false } });
    await runner.start(job, signal);
    assert.deepEqual(await story.ends(runner, job.id), exit(3));
    assert.equal(story.calls("out").length, 0);
  },

  "secrets: nothing of the input is on a command line or in an environment, nor in the log": async (story) => {
    const runner = await story.runner();
    const secret = `s3cret-${randomUUID()}`;
    const job = await story.job(`grep -o 's3cret[-0-9a-f]*' "$OSBERT_INPUT" >&2; call ran; await_leave`, {
      parameters: { password: secret, nested: [{ key: secret }] },
    });
    await runner.start(job, signal);
    const call = await story.called("ran");
    for (const name of ["cmdline", "environ", "comm"]) assert.doesNotMatch(await ofProcesses(name), new RegExp(secret));
    call.leave();
    await story.ends(runner, job.id);
    assert.match(await runner.log(job.id, whole), /\*\*\*/);
    assert.doesNotMatch(await runner.log(job.id, whole), new RegExp(secret));
  },

  "log: its end, as far as it is asked for": async (story) => {
    const runner = await story.runner();
    const job = await story.job("for i in {1..2000}; do echo line $i; done >&2");
    await runner.start(job, signal);
    await story.ends(runner, job.id);
    const log = await runner.log(job.id, 100);
    assert.ok(log.length <= 100);
    assert.match(log, /^line \d+\n(line \d+\n)*line 2000\n$/);
    assert.equal(await runner.log(randomUUID(), 100), "");
  },

  "forget: of a job that has ended its end and its log are left, and one that runs stays": async (story) => {
    const runner = await story.runner();
    const secret = `s3cret-${randomUUID()}`;
    const program = `echo '{"state":{"a":"${secret}"}}'; echo "for people ${secret}" >&2; call ran; await_leave`;
    const job = await story.job(program, { parameters: { password: secret } });
    await runner.start(job, signal);
    const call = await story.called("ran");
    await runner.forget(job.id);
    assert.deepEqual(await runner.look(job.id, { waitMs: 0, signal }), { kind: "running" });
    call.leave();
    await story.ends(runner, job.id);
    for (let times = 0; times < 2; times++) {
      await runner.forget(job.id);
      assert.deepEqual(await runner.look(job.id, { waitMs: 0, signal }), exit(0));
      assert.deepEqual(await runner.output(job.id, 0), { lines: [], next: 0 });
      assert.match(await runner.log(job.id, whole), /^for people \*\*\*$/m);
    }
    await runner.start(job, signal);
    assert.equal(story.calls("ran").length, 1);
    await runner.forget(randomUUID());
  },

  "an id that leads elsewhere is refused": async (story) => {
    const runner = await story.runner();
    for (const id of ["", "..", "../x", "a/b", "a b", "-rf", "a\0", "x".repeat(101)]) {
      const job = await story.job("exit 0", { id });
      await assert.rejects(runner.start(job, signal), RunnerError);
      await assert.rejects(runner.look(id, { waitMs: 0, signal }), RunnerError);
      await assert.rejects(runner.forget(id), RunnerError);
    }
  },

  "16 at once: all run, never more than allowed at a time": async (story) => {
    const runner: Runner = limitJobs(await story.runner(), 6);
    const job = await story.job(`call job; await_leave; exit 0`);
    const jobs = Array.from({ length: 16 }, () => ({ ...job, id: randomUUID() }));
    let most = 0;
    let done = 0;
    const runs = Promise.all(
      jobs.map(async (each) => {
        await runner.start(each, signal);
        assert.deepEqual(await story.ends(runner, each.id), exit(0));
        done++;
      }),
    );
    const released = new Set<unknown>();
    await Promise.race([
      runs,
      story.until("all have run", async () => {
        const open = story.calls("job").filter((call) => call.isOpen && !released.has(call));
        most = Math.max(most, open.length);
        const [first] = open;
        if (first !== undefined && (open.length >= 4 || done + released.size + open.length >= 12)) {
          released.add(first);
          first.leave();
        }
        return done === jobs.length;
      }),
    ]);
    await runs;
    assert.ok(most <= 6, `${most} at once`);
    assert.equal(story.calls("job").length, jobs.length);
  },
};

async function ofProcesses(name: string): Promise<string> {
  const ids = (await readdir("/proc")).filter((each) => /^\d+$/.test(each));
  const texts = await Promise.all(ids.map((id) => readFile(`/proc/${id}/${name}`, "utf8").catch(() => "")));
  return texts.join("\n");
}
