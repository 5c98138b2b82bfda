import type { Job } from "@osbert/bundles";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Cluster } from "../src/cluster/cluster.js";
import type { PodExec } from "../src/cluster/pod-exec.js";
import { jobName } from "../src/jobs/job-names.js";
import { inputSecrets, jobObject, roleBindings, serviceAccount } from "../src/jobs/job-objects.js";
import { recordObject } from "../src/jobs/job-record.js";
import { fillOptions } from "../src/jobs/job-runner-options.js";
import { planJob } from "../src/jobs/plan-job.js";
import { lastLines, wholeLines } from "../src/jobs/said.js";
import { classicJob, ownJob } from "./job-lab.js";

const settings = fillOptions({
  ...{
    cluster: {} as Cluster,
    exec: {} as PodExec,
    namespace: "jobs",
    helperImage: "helper@sha256:1",
    baseImage: null,
  },
  files: () => Promise.reject(new Error("there are none")),
  role: "edit",
});
const image = { kind: "image", image: "registry.example/a/b", digest: `sha256:${"a".repeat(64)}` } as const;
const { signal } = new AbortController();

async function objectsOf(job: Job) {
  const plan = await planJob(job, settings, signal);
  const others = [recordObject("jobs", plan.facts), jobObject(plan, settings), serviceAccount(plan, "uid")];
  return { plan, open: [...others, ...roleBindings(plan, settings)], secrets: inputSecrets(plan, "uid") };
}

describe("the objects of a job", () => {
  test("hold nothing of its input and of the operator's secrets, but for Secrets that belong to the Job", async () => {
    const input = { parameters: { password: "s3cret-a" }, _apb_state: { "name-of-state": "s3cret-b" } };
    for (const job of [
      { ...ownJob(image), input },
      classicJob(image, 2, { input, secrets: { db: { key: "s3cret-c" } } }),
    ]) {
      const { open, secrets } = await objectsOf(job);
      expect(JSON.stringify(open)).not.toMatch(/s3cret|name-of-state/);
      expect(secrets.length).toBeGreaterThan(0);
      for (const { metadata } of secrets) expect(metadata.ownerReferences).toMatchObject([{ kind: "Job", uid: "uid" }]);
    }
  });

  test("run nothing before they are told to, once, shut in, by digest", async () => {
    const { open } = await objectsOf(ownJob(image));
    const job = open.find(({ kind }) => kind === "Job");
    expect(job?.spec).toMatchObject({
      suspend: true,
      backoffLimit: 0,
      parallelism: 1,
      template: { spec: { restartPolicy: "Never" } },
    });
    const { template } = (job?.spec ?? {}) as {
      readonly template: { readonly spec: { readonly containers: readonly object[] } };
    };
    expect(template.spec.containers[0]).toMatchObject({
      image: `registry.example/a/b@${image.digest}`,
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    });
  });

  test("give a role in the namespace of the instance, never in the runner's own", async () => {
    const forNamespace = async (namespace: unknown) => {
      const input = { instance: { context: { namespace } } } as Job["input"];
      return (await objectsOf({ ...ownJob(image), input })).plan.facts.target;
    };
    expect(await forNamespace("team")).toBe("team");
    for (const none of ["jobs", "", "../x", "Team", 3, null]) expect(await forNamespace(none)).toBeNull();
  });

  test("of an image without a command need to know its entry point", async () => {
    const job = ownJob(image);
    const unknown = objectsOf({ ...job, spec: { ...job.spec, command: null } });
    await expect(unknown).rejects.toThrow(/its entry point is not known here/);
  });

  test("have names that a cluster takes, one for each id", () => {
    const ids = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/);
    fc.assert(
      fc.property(ids, ids, (one, other) => {
        expect(jobName(one)).toMatch(/^[a-z0-9-]{1,63}$/);
        expect(jobName(one) === jobName(other)).toBe(one === other);
      }),
    );
  });
});

test("lines are read on in any pieces as if they were read at once", () => {
  const texts = fc.array(
    fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\n", "")),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(texts, fc.boolean(), fc.infiniteStream(fc.integer({ min: 1, max: 50 })), (lines, hasEnd, sizes) => {
      const all = Buffer.from(lines.join("\n") + (hasEnd ? "\n" : ""));
      const read: string[] = [];
      let from = 0;
      for (let upTo = 0; upTo < all.length; ) {
        upTo = Math.min(all.length, upTo + (sizes.next().value ?? 1));
        const piece = wholeLines(all.subarray(from, upTo), from, upTo === all.length);
        read.push(...piece.lines);
        from = piece.next;
      }
      expect(from).toBe(all.length);
      expect(read).toEqual(wholeLines(all, 0, true).lines);
    }),
  );
});

test("the end of a log begins with a line", () => {
  expect(lastLines(Buffer.from("one\ntwo\nthree\n"), 8)).toBe("three\n");
  expect(lastLines(Buffer.from("one\ntwo\n"), 100)).toBe("one\ntwo\n");
  expect(lastLines(Buffer.from("a line that is too long"), 5)).toBe("");
});
