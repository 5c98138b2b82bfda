import type { Runner } from "./runner.js";

/** Which runner runs what. All are at one place, and stay together: what finds the jobs of one finds those of the others. */
export interface RunnersByArtifact {
  readonly files: Runner;
  readonly images: Runner;
  /** Runs nothing any more, and may have jobs of earlier. */
  readonly earlier?: Runner;
}

/**
 * A runner that runs bundles of files by one runner, and images by another. A job is looked for at all: nothing is kept of which one has
 * it, so that it is found whatever the settings say by then.
 */
export function runnerByArtifact({ files, images, earlier = files }: RunnersByArtifact): Runner {
  const { signal } = new AbortController();
  const all = [...new Set([images, earlier, files])];
  if (all.some(({ place }) => place !== files.place)) throw new TypeError("runners of one place are put together");
  const having = async (id: string) => {
    for (const each of all.slice(0, -1)) {
      if ((await each.look(id, { waitMs: 0, signal })).kind !== "unknown") return each;
    }
    return all.at(-1) ?? files;
  };
  return {
    name: [...new Set([files.name, images.name])].join(" and "),
    place: files.place,
    start: (job, starting) => (job.artifact.kind === "files" ? files : images).start(job, starting),
    look: async (id, options) => (await having(id)).look(id, options),
    jobs: async () => (await Promise.all(all.map((each) => each.jobs()))).flat(),
    output: async (id, from) => (await having(id)).output(id, from),
    log: async (id, lastBytes) => (await having(id)).log(id, lastBytes),
    // At all: one that is only about to run is unknown to a look.
    async stop(id) {
      for (const each of all) await each.stop(id);
    },
    async forget(id, secrets) {
      for (const each of all) await each.forget(id, secrets);
    },
  };
}
