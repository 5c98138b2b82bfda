import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { isJsonObject } from "@osbert/protocol";
import { type Action, runtime2Problem } from "../formats/bundle-spec.js";
import { readLayoutManifest } from "../sources/image-layout.js";
import { layoutArchive } from "../sources/layout-archive.js";
import type { Artifact, Digest } from "../sources/source.js";
import { exitCodes } from "./action-output.js";
import { classicFiles, maxCredentialsBytes, maxStateBytes, stateFiles } from "./jobs/classic-output.js";
import { type Launch, openJobFolders } from "./jobs/job-folders.js";
import { livesFunction } from "./jobs/job-script.js";
import type { Job, Runner } from "./runner.js";
import { RunnerError, type RunnerFailure } from "./runner-error.js";

export interface ContainerRunnerOptions {
  /** The program: `podman`, `docker`, or a path to one. */
  readonly engine: string;
  /** What it is given before its command, such as `--root`. */
  readonly engineArguments?: readonly string[];
  /** What every container is created with, such as `--ulimit`. */
  readonly runArguments?: readonly string[];
  /** What the program needs in its environment, such as DOCKER_HOST. It gets nothing else but PATH and HOME. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A folder of its own, on a disk of this machine, whose files the engine can mount. */
  readonly directory: string;
  /** What the place is called that its jobs are at, beside those of other runners. Default: a name of its own. */
  readonly place?: string;
  /**
   * Opens it also if the engine does not answer now, for the sake of jobs that were started before: they are found, and what is to be
   * started is refused with `no engine`. Default false.
   */
  readonly unanswered?: boolean;
  /** Where the files of an artifact lie. They stay there while a job runs. Of an image: a folder with it as an OCI layout; where there is none, it throws, and the engine pulls. */
  readonly files: (artifact: Artifact, signal: AbortSignal) => Promise<string>;
  /** What bundles of files are run in. `null`: they are refused. */
  readonly baseImage: string | null;
  /** The network of jobs that may have one. Default: the engine's own. */
  readonly network?: string;
  /** How long a program has to clear up after TERM. Default 5 seconds. */
  readonly graceMs?: number;
  /** Folders of jobs that ended longer ago are removed. Default 30 days. */
  readonly keepMs?: number;
}

/**
 * Runs bundles in containers, by the command line of podman or docker. The engine's program stays attached to the container and is what the
 * job's script runs: so who starts it, how it is found again, its time and what is kept of its output are as with processes. The container has the
 * job's id in its name and its label, and is removed when the job has ended, however it did.
 */
export async function openContainerRunner(options: ContainerRunnerOptions): Promise<Runner> {
  const engine = new Engine(options);
  if (options.unanswered !== true) await engine.probe();
  return openJobFolders({
    name: "container",
    directory: options.directory,
    place: options.place,
    graceMs: options.graceMs,
    keepMs: options.keepMs,
    // Its folder is closed to others on this machine; in the container it is read by whoever runs there.
    inputMode: 0o644,
    environment: () => engine.environment,
    launch: (job, folder, signal) => launch(engine, options, job, folder, signal),
    end: (id, folder) => finish(id, folder, engine.environment),
  });
}

/** An image that the engine has or can pull, as it is named in a registry, and its labels. */
export async function inspectImage(
  options: Pick<ContainerRunnerOptions, "engine" | "engineArguments" | "environment">,
  image: string,
  signal: AbortSignal,
): Promise<{ readonly repository: string; readonly digest: Digest; readonly labels: ReadonlyMap<string, string> }> {
  const engine = new Engine(options);
  await engine.probe();
  await engine.have(image, null, signal);
  const { RepoDigests, Config } = await engine.inspect(image, signal);
  const [, repository, digest] = /^(.+)@(sha256:[0-9a-f]{64})$/.exec(RepoDigests?.[0] ?? "") ?? [];
  if (repository === undefined || digest === undefined)
    throw new RunnerError("wrong artifact", `${image} has no digest yet; push it to a registry first`);
  return { repository, digest: digest as Digest, labels: new Map(Object.entries(Config?.Labels ?? {})) };
}

const inputPath = "/run/osbert/input.json";
const statePath = "/etc/apb/state";
const runFile = promisify(execFile);
const pullTimeoutMs = 600_000;
/** Beyond what the engine is given for each of its answers. */
const finishTimeoutMs = 300_000;
/** A folder counts, too, and grows with the names in it. */
const emptyFolderBytes = 65_536;
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Actions that a classic bundle of runtime 1 can hand credentials over in. */
const withCredentials: readonly Action[] = ["provision", "update", "bind"];

async function launch(
  engine: Engine,
  options: ContainerRunnerOptions,
  job: Job,
  folder: string,
  signal: AbortSignal,
): Promise<Launch> {
  const { spec, artifact } = job;
  if (spec.format === "apb" && spec.runtime === 2) {
    throw new RunnerError("wrong artifact", runtime2Problem);
  }
  const bundle = artifact.kind === "files" ? await options.files(artifact, signal) : null;
  // What is not mirrored, or cannot be now, the engine may have, or can pull.
  const layout = artifact.kind === "image" ? await options.files(artifact, signal).catch(() => null) : null;
  const image = await engine.have(imageOf(artifact, options.baseImage), layout, signal);
  const { _apb_state: state } = job.input;
  const isClassic = spec.format === "apb";
  const takesCredentials = spec.runtime === 1 && withCredentials.includes(job.action);
  const credentialsBytes = Math.min(job.limits.outputBytes, maxCredentialsBytes);
  const asking = credentialsScript(engine.quoted, containerName(job.id), credentialsBytes);
  return {
    program: [...engine.command, ...containerArguments(options, job, folder, bundle, image)],
    finish: finishScript(engine.quoted, containerName(job.id), job.id) + (takesCredentials ? untakenScript : ""),
    // Not through the engine's client: one that has just started ends with the signal itself, and takes what the bundle says last with it.
    stop: `timeout -k 5 30 ${engine.quoted} kill --signal TERM ${containerName(job.id)} >/dev/null 2>&1\n`,
    ...(isClassic && {
      writable: {
        folders: [classicFiles.state],
        files: { [classicFiles.termination]: "", ...stateFiles(isJsonObject(state) ? state : {}) },
      },
      beside:
        `${livesFunction}\n${takesCredentials ? asking : ""}` +
        spaceScript(Math.max(job.limits.outputBytes, maxStateBytes)),
    }),
  };
}

/** What follows the engine's name. Pure; nothing of the input is in it but its path. */
export function containerArguments(
  { network, runArguments = [] }: Pick<ContainerRunnerOptions, "network" | "runArguments">,
  { id, action, spec, limits, secrets }: Job,
  folder: string,
  bundle: string | null,
  image: string,
): readonly string[] {
  const [program, ...args] = spec.command ?? [];
  return [
    ...["run", "--interactive", "--pull", "never", "--name", containerName(id), "--label", `osbert.job=${id}`],
    // Engines write what a container prints into logs of their own, on some machines into that of the system. Credentials are among it.
    ...["--log-driver", "none"],
    ...["--security-opt", "no-new-privileges", "--cap-drop", "all"],
    ...["--memory", String(limits.memoryBytes), "--memory-swap", String(limits.memoryBytes)],
    ...["--pids-limit", String(limits.processes), "--ulimit", `cpu=${limits.cpuSeconds}:${limits.cpuSeconds}`],
    ...["--ulimit", "core=0:0"],
    ...(limits.network ? (network === undefined ? [] : ["--network", network]) : ["--network", "none"]),
    ...["--volume", `${join(folder, "input.json")}:${inputPath}:ro`],
    ...(spec.format === "apb" && secrets !== undefined
      ? ["--volume", `${join(folder, "secrets")}:/etc/apb-secrets:ro`]
      : []),
    ...(spec.format === "apb" ? classicPlaces(folder) : []),
    ...["--env", `OSBERT_INPUT=${inputPath}`, "--env", "TMPDIR=/tmp", "--env", "LANG=C.UTF-8", "--env", "HOME=/tmp"],
    ...(bundle === null
      ? []
      : ["--read-only", "--tmpfs", "/tmp", "--volume", `${bundle}:/bundle:ro`, "--workdir", "/bundle"]),
    ...runArguments,
    ...(program === undefined ? [] : ["--entrypoint", program]),
    ...[image, ...args, action],
    ...(spec.format === "apb" ? ["--extra-vars", `@${inputPath}`] : []),
  ];
}

/** Where classic bundles look for the state of earlier actions and leave theirs, and where a pod leaves its last words. */
function classicPlaces(folder: string): readonly string[] {
  return [
    ...[
      "--volume",
      `${join(folder, classicFiles.state)}:${statePath}:rw`,
      "--env",
      `BUNDLE_STATE_LOCATION=${statePath}`,
    ],
    ...["--volume", `${join(folder, classicFiles.termination)}:/dev/termination-log:rw`],
  ];
}

function containerName(id: string): string {
  return `osbert-${id}`;
}

function imageOf(artifact: Artifact, baseImage: string | null): string {
  if (artifact.kind === "image") return `${artifact.image}@${artifact.digest}`;
  if (baseImage === null)
    throw new RunnerError("wrong artifact", "a bundle of files needs the setting of a base image");
  return baseImage;
}

/**
 * Removes the container, by the engine that has run it, whichever that is by now; also one whose program could not be reached any more. It is
 * gone if the engine says so: a removal that fails, and a question that nobody answers, leave it running. `tries`: with pauses between
 * them that grow.
 */
function finishScript(engine: string, name: string, id: string): string {
  return `engine() { timeout -k 5 60 ${engine} "$@" 2>/dev/null; }
oom=$(engine inspect --type container --format '{{.State.OOMKilled}}' ${name})
# 125 to 127 are the engine's own, too. One that never ran has no time of its start.
case "$cause @{program_code:-0}" in "exit 12"[567])
  case $(engine inspect --type container --format '{{.State.StartedAt}}' ${name}) in 0001-*) cause=start ;; esac
esac
# One of its processes was killed for the memory: what the bundle says of its end in words of the contract still counts.
case "$oom $cause @{program_code:-0}" in
  ${Object.values(exitCodes)
    .map((code) => `"true exit ${code}"`)
    .join(" | ")}) ;;
  "true exit "*) cause=memory ;;
esac
left=yes pause=1
for try in $(seq "@{tries:-6}"); do
  [ "$try" = 1 ] || { sleep "$pause"; pause=$((pause * 2)); }
  # Killed first: a removal alone would give it its time to end.
  engine kill ${name} >/dev/null
  if engine rm --force --volumes ${name} >/dev/null; then left=; break; fi
  if there=$(engine ps --all --quiet --filter label=osbert.job=${id}) && [ -z "$there" ]; then left=; break; fi
done
`.replaceAll("@{", "${");
}

/** The same for a job whose script was killed, or has given up. */
async function finish(id: string, folder: string, env: Readonly<Record<string, string>>): Promise<void> {
  const script = 'cause=exit tries=1; . ./finish.sh; [ -z "$left" ]';
  await runFile("/bin/sh", ["-c", script], { cwd: folder, env, timeout: finishTimeoutMs }).catch((error: unknown) => {
    throw new RunnerError("not stopped", `${id}: the engine does not remove its container`, { cause: error });
  });
}

/**
 * Asks the running container for its credentials until it has them, as classic bundles of runtime 1 want it. They are not more than the
 * output may be: what is beyond ends the job, as there.
 */
function credentialsScript(engine: string, name: string, maxBytes: number): string {
  return `(
until [ "$(cat answered 2>/dev/null)" = 0 ] && [ -s credentials.new ]; do
  lives "$1" "$2" || exit
  [ ! -e answered ] || sleep 1
  { ${engine} exec ${name} broker-bind-creds 2>/dev/null; echo $? >answered; } | {
    prlimit --core=0 --fsize=${maxBytes} cat >credentials.new 2>/dev/null
    [ $? != 153 ] || { rm credentials.new; kill -s USR1 "$1"; }
  }
done
mv credentials.new credentials
) &
`;
}

/** A bundle that waits until its credentials are taken, and has none to give, would be ended without a word about it. */
const untakenScript = `if [ "$cause" = timeout ] && [ -e answered ] && [ ! -e credentials ] && [ ! -s ${classicFiles.termination} ]; then
  echo "broker-bind-creds has printed no credentials until then" >${classicFiles.termination}
fi
`;

/** What a classic bundle writes outside of its container, where no limit of the engine holds, is looked at every second. */
function spaceScript(maxBytes: number): string {
  return `while sleep 1 && lives "$1" "$2"; do
  bytes=$(du --summarize --total --bytes ${classicFiles.state} ${classicFiles.termination} 2>/dev/null | tail -n 1 | cut -f 1)
  [ "$bytes" -le ${maxBytes + emptyFolderBytes} ] || { kill -s USR1 "$1"; exit; }
done
`;
}

/** The program of an engine of containers. */
class Engine {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;

  constructor({
    engine,
    engineArguments = [],
    environment = {},
  }: Pick<ContainerRunnerOptions, "engine" | "engineArguments" | "environment">) {
    this.command = [engine, ...engineArguments];
    this.environment = { PATH: searchPath, HOME: homedir(), LANG: "C.UTF-8", ...environment };
  }

  /** For a shell. */
  get quoted(): string {
    return this.command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  }

  async probe(): Promise<void> {
    await this.#run(["version"]).catch((error: unknown) => {
      throw new RunnerError("no engine", lastLine(error), { cause: error });
    });
  }

  /** Has an image here: as it is, else from a layout of it, else from its registry. Answers what it is called here. */
  async have(image: string, layout: string | null, signal: AbortSignal): Promise<string> {
    if (await this.#isThere(image, signal)) return image;
    const manifest = layout === null ? null : await readLayoutManifest(layout);
    if (layout !== null && manifest !== null) {
      const id = manifest.config.digest.slice("sha256:".length);
      // What an engine cannot load, it pulls.
      if (!(await this.#isThere(id, signal)))
        await this.#run(["load", "--quiet"], signal, layoutArchive(layout, manifest)).catch(() => undefined);
      if (await this.#isThere(id, signal)) return id;
    }
    await this.#pull(image, signal);
    return image;
  }

  async #isThere(image: string, signal: AbortSignal): Promise<boolean> {
    const isThere = await this.#run(["image", "inspect", image], signal).then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    return isThere;
  }

  async #pull(image: string, signal: AbortSignal): Promise<void> {
    await this.#run(["pull", "--quiet", image], signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      await this.probe();
      throw new RunnerError(pullFailure(lastLine(error)), `${image}: ${lastLine(error)}`, { cause: error });
    });
  }

  /** What podman and docker both tell. */
  async inspect(
    image: string,
    signal: AbortSignal,
  ): Promise<{
    readonly RepoDigests?: readonly string[] | null;
    readonly Config?: { readonly Labels?: Readonly<Record<string, string>> | null } | null;
  }> {
    const [found] = JSON.parse(await this.#run(["image", "inspect", image], signal)) as readonly [object];
    return found;
  }

  async #run(args: readonly string[], signal?: AbortSignal, input?: Readable): Promise<string> {
    const [program = "", ...before] = this.command;
    const options = {
      env: this.environment,
      timeout: pullTimeoutMs,
      maxBuffer: 2 ** 24,
      ...(signal && { signal }),
    };
    const running = runFile(program, [...before, ...args], options);
    // Whatever ends the one ends the other; how it went, the program says.
    const { stdin } = running.child;
    if (input !== undefined && stdin !== null) pipeline(input, stdin).catch(() => running.child.kill());
    return (await running).stdout;
  }
}

/** Engines tell it in words alone. */
export function pullFailure(text: string): RunnerFailure {
  if (/unauthorized|authentication required|denied|forbidden|\b40[13]\b/i.test(text)) return "image forbidden";
  if (/manifest unknown|not found|name unknown|\b404\b|does not exist/i.test(text)) return "image not found";
  if (/no space left/i.test(text)) return "disk full";
  return "no image";
}

function lastLine(error: unknown): string {
  const { stderr, message } = error as { readonly stderr?: string; readonly message?: string };
  const lines = (stderr === undefined || stderr === "" ? (message ?? "") : stderr).trim().split("\n");
  return (lines.at(-1) ?? "").slice(0, 500);
}
