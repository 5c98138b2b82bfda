import { access } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  type Artifact,
  limitJobs,
  namePlace,
  openContainerRunner,
  openProcessRunner,
  type Runner,
  RunnerError,
  type RunnersByArtifact,
  runnerByArtifact,
} from "@osbert/bundles";
import type { Logger } from "pino";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";

type Files = (artifact: Artifact) => Promise<string>;

/**
 * What runs the actions of bundles, as the settings say: bundles of files as processes of this machine, and images in containers where there
 * is an engine for them, because nothing else can run these. With `runner: container` all of them are in containers, with `kubernetes` Jobs of a cluster.
 *
 * The whole directory is one place. So whatever has ever run jobs there is opened, whether it can run others now or not: a job that is
 * not found at its place would be started again beside itself.
 */
export async function openRunner(settings: Settings, directory: string, files: Files, log: Logger): Promise<Runner> {
  const { bundles } = settings;
  const { runner, concurrency } = bundles;
  if (runner === "kubernetes") {
    // Loaded only where it is needed: who has no cluster does not wait for it.
    const { openJobs } = await import("./open-jobs.js");
    return limitJobs(await openJobs(settings, files, log), concurrency);
  }
  const ground = { files, place: await namePlace(resolve(directory)) };
  const containers = await openContainers(bundles, { ...ground, directory: join(directory, "containers") }, log);
  if (runner === "container" && containers === undefined)
    throw new UserError(`bundles cannot be run in containers: ${noEngine}`);
  const processes = await openProcesses(bundles, { ...ground, directory: join(directory, "runs") }, containers, log);
  return limitJobs(runnerByArtifact(together(processes, containers)), concurrency);
}

interface Ground {
  readonly files: Files;
  readonly place: string;
  readonly directory: string;
}

/** `earlier`: they have jobs of earlier, and are not to run others. */
interface Processes {
  readonly kind: "ready" | "earlier";
  readonly runner: Runner;
}

function together(processes: Processes | undefined, containers: Runner | undefined): RunnersByArtifact {
  const files = processes?.kind === "ready" ? processes.runner : containers;
  if (files === undefined) throw new TypeError("nothing runs bundles");
  return { files, images: containers ?? files, ...(processes && { earlier: processes.runner }) };
}

const engines = ["podman", "docker"];
const noEngine = "neither podman nor docker is here and answers; install one, or name it in bundles.containers.program";
/** What an engine's program takes from its environment: where its daemon is, and where it has its files and the credentials of registries. */
const ofEngines = /^(CONTAINERS?_|DOCKER_|XDG_|REGISTRY_AUTH_FILE$)/;

/** `undefined`: they run nothing, and never did here. */
async function openProcesses(
  { runner, unsandboxed, concurrency }: Settings["bundles"],
  ground: Ground,
  containers: Runner | undefined,
  log: Logger,
): Promise<Processes | undefined> {
  try {
    if (runner === "process")
      return { kind: "ready", runner: await openProcessRunner({ ...ground, unsandboxed, jobs: concurrency }) };
  } catch (error) {
    // Who has nothing but images needs no sandbox for files. The runner of containers says what it lacks for them.
    if (containers === undefined || !(error instanceof RunnerError && error.failure === "no sandbox")) throw error;
    log.warn(`bundles of files cannot be run: ${error.message}`);
  }
  // To look at jobs takes no sandbox.
  if (!(await isThere(ground.directory))) return undefined;
  return { kind: "earlier", runner: await openProcessRunner({ ...ground, unsandboxed: true }) };
}

/** `undefined`: no engine is named, none was found, and none was ever used. One that is named has to answer, unless it did before. */
async function openContainers(
  { containers, runner }: Settings["bundles"],
  ground: Ground,
  log: Logger,
): Promise<Runner | undefined> {
  const { program, image, arguments: engineArguments, runArguments, network } = containers;
  if (runner === "container" && image === undefined)
    throw new UserError(
      "bundles.runner is container: name the image that bundles of files run in, in bundles.containers.image",
    );
  const environment = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value !== undefined && ofEngines.test(name) ? [[name, value] as const] : [],
    ),
  );
  const options = {
    ...{ ...ground, engineArguments, runArguments, environment },
    baseImage: image ?? null,
    ...(network !== undefined && { network }),
  };
  const wasUsed = await isThere(ground.directory);
  let silent = program ?? "podman";
  for (const engine of program === undefined ? engines : [program]) {
    try {
      const opened = await openContainerRunner({ ...options, engine });
      log.info({ engine }, "bundles in images run in containers");
      return opened;
    } catch (error) {
      if (!(error instanceof RunnerError && error.failure === "no engine")) throw error;
      if (program !== undefined && !wasUsed) throw error;
      if ((error.cause as NodeJS.ErrnoException).code !== "ENOENT") silent = engine;
    }
  }
  if (!wasUsed) {
    if (runner === "process") log.info(`bundles in images cannot be run: ${noEngine}`);
    return undefined;
  }
  log.warn({ engine: silent }, `bundles cannot be run in containers before this answers: ${silent}`);
  return openContainerRunner({ ...options, engine: silent, unanswered: true });
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
