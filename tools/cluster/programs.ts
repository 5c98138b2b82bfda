import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LeftOut } from "../servers.js";
import { findGo, type Go } from "./go.js";
import { hold } from "./holding.js";

const run = promisify(execFile);

/** What a cluster is made of, and what installs charts in it; each is built once and kept in a cache. */
export type ProgramName = "kubernetes" | "knative" | "istio" | "helm";

/** Answers the folder that it is kept in, and builds it first if it is not there yet. Two processes that want the same do not build it twice, and a killed one leaves nothing that counts. */
export async function provideProgram(name: ProgramName, tell: (line: string) => void): Promise<string | LeftOut> {
  if (process.platform !== "linux") return { leftOut: "a cluster runs on Linux" };
  const recipe = recipes[name];
  const folder = join(cacheFolder(), `${name}-${recipe.version}-${hashOf(name, recipe)}`);
  if (existsSync(folder)) return folder;
  const go = await findGo();
  if ("leftOut" in go) return go;
  const held = await hold(folder, () => tell(`${name} ${recipe.version}: another process builds it`));
  try {
    if (!existsSync(folder)) await build(name, folder, go, tell);
  } finally {
    await held.release();
  }
  return folder;
}

interface Recipe {
  readonly version: string;
  /** Everything else that decides what comes out, besides the files in programs/. */
  readonly made: object;
  readonly make: (folder: string, sources: string, go: Go) => Promise<void>;
}

const kubernetesVersion = "v1.34.4";
const knative = {
  path: "knative.dev/eventing",
  version: "v0.47.0",
  sum: "h1:FfM1aS7iBn9o0v7xqIBEWcR4XZ8Ny7YyFPAOyLEgMok=",
};
const istio = {
  path: "istio.io/api",
  version: "v1.31.1",
  sum: "h1:5Yb5ihcz4YQsCkciusK7DnFpBMwRB6EFWeUKH1Atuyk=",
};
const helm = {
  path: "helm.sh/helm/v3",
  version: "v3.19.5",
  sum: "h1:l8zDGBhPaF2z5pTR5ASku/yZwi0qZrWthWMzvf1ZruE=",
};
const buildFlags = ["-trimpath", "-ldflags"];
const stripped = "-s -w";

/** What of Knative is changed before it is built: nothing but where it listens. */
const knativeChanges = [
  { file: "pkg/reconciler/inmemorychannel/dispatcher/controller.go", from: /^\thttps?Port +=.*\n/gm, to: "", times: 2 },
  { file: "pkg/kncloudevents/event_receiver.go", from: /":%d"/g, to: '"127.0.0.1:%d"', times: 1 },
];

const recipes: Readonly<Record<ProgramName, Recipe>> = {
  kubernetes: {
    version: kubernetesVersion,
    made: { flags: kubernetesFlags() },
    async make(folder, sources, { go }) {
      await go(
        sources,
        "build",
        "-mod=readonly",
        ...buildFlags,
        kubernetesFlags(),
        "-o",
        join(folder, "kubernetes"),
        ".",
      );
    },
  },
  // Built inside its own module, with the versions that upstream has tested it with.
  knative: {
    version: knative.version,
    made: { knative, changes: knativeChanges.map(({ file, from, to }) => [file, String(from), to]) },
    async make(folder, sources, { go, module }) {
      const tree = join(folder, "source");
      // What belongs to a module cannot be written to.
      await run("cp", ["-r", "--no-preserve=mode", await module(knative), tree]);
      for (const change of knativeChanges) applyChange(tree, change);
      mkdirSync(join(tree, "cmd/osbert"));
      cpSync(join(sources, "main.go"), join(tree, "cmd/osbert/main.go"));
      cpSync(join(sources, "dispatcher"), join(tree, "pkg/reconciler/inmemorychannel/dispatcher"), { recursive: true });
      await go(tree, "build", "-mod=mod", ...buildFlags, stripped, "-o", join(folder, "knative"), "./cmd/osbert");
      cpSync(join(tree, "config"), join(folder, "config"), { recursive: true });
      rmSync(tree, { recursive: true });
    },
  },
  istio: {
    version: istio.version,
    made: { istio },
    async make(folder, _sources, { module }) {
      const file = join(await module(istio), "kubernetes", "customresourcedefinitions.gen.yaml");
      writeFileSync(join(folder, "crds.yaml"), readFileSync(file));
    },
  },
  helm: {
    version: helm.version,
    made: { helm },
    async make(folder, _sources, { go, module }) {
      const tree = join(folder, "source");
      await run("cp", ["-r", "--no-preserve=mode", await module(helm), tree]);
      await go(tree, "build", "-mod=readonly", ...buildFlags, stripped, "-o", join(folder, "helm"), "./cmd/helm");
      rmSync(tree, { recursive: true });
    },
  },
};

/** Without these the server would call itself v0.0.0. */
function kubernetesFlags(): string {
  const [, minor = ""] = kubernetesVersion.split(".");
  const facts = { gitVersion: kubernetesVersion, gitCommit: kubernetesVersion, gitMajor: "1", gitMinor: minor };
  const packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
  const settings = packages.flatMap((name) =>
    Object.entries(facts).map(([key, value]) => `-X ${name}.${key}=${value}`),
  );
  return [stripped, ...settings].join(" ");
}

function applyChange(tree: string, { file, from, to, times }: (typeof knativeChanges)[number]): void {
  const path = join(tree, file);
  const text = readFileSync(path, "utf8");
  if (text.match(from)?.length !== times)
    throw new Error(`${file} is not as it was: ${from} is not there ${times} times`);
  writeFileSync(path, text.replaceAll(from, to));
}

async function build(name: ProgramName, folder: string, go: Go, tell: (line: string) => void): Promise<void> {
  const recipe = recipes[name];
  const [unfinished, startedAtMs] = [`${folder}.unfinished`, performance.now()];
  const minutes = () => Math.round((performance.now() - startedAtMs) / 60_000);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  tell(`${name} ${recipe.version}: is built for ${folder}`);
  const progress = setInterval(() => tell(`${name} ${recipe.version}: builds for ${minutes()} min now`), 60_000);
  try {
    await recipe.make(unfinished, sourcesOf(name), go);
  } finally {
    clearInterval(progress);
  }
  renameSync(unfinished, folder);
  tell(`${name} ${recipe.version}: built in ${Math.round((performance.now() - startedAtMs) / 1000)} s`);
}

function cacheFolder(): string {
  const caches = process.env.OSBERT_CACHE || process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(caches, "osbert");
}

function sourcesOf(name: ProgramName): string {
  return fileURLToPath(new URL(`programs/${name}/`, import.meta.url));
}

function hashOf(name: ProgramName, recipe: Recipe): string {
  const hash = createHash("sha256").update(JSON.stringify(recipe.made));
  const sources = sourcesOf(name);
  const files = existsSync(sources) ? readdirSync(sources, { recursive: true, encoding: "utf8" }).sort() : [];
  for (const file of files.filter((each) => /\.(go|mod|sum)$/.test(each))) {
    hash.update(`\0${file}\0`).update(readFileSync(join(sources, file)));
  }
  return hash.digest("hex").slice(0, 12);
}
