import type { Runner } from "@osbert/bundles";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterTimeoutMs, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { jobName } from "../src/jobs/job-names.js";
import { classicJob, type JobLab, openJobLab } from "./job-lab.js";

const cluster = required("tests of classic bundles as Jobs", await sharedCluster({ node: true }));
const { signal } = new AbortController();
const ended = (exitCode: number) => ({ kind: "ended", exitCode, cause: "exit" });

/** Speaks to the API server as a bundle does: with the token of its service account. */
const call = (url: string) => `
call() {
  method=$1 path=$2 type=$3
  curl --silent --show-error --fail --insecure --request "$method" --header "content-type: $type" \\
    --header "authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)" --data-binary @- "${url}$path"
}
`;

describe.skipIf(cluster === undefined)("a classic bundle as a Job", { timeout: clusterTimeoutMs }, () => {
  let lab: JobLab;
  let runner: Runner;
  beforeAll(async () => {
    if (cluster === undefined) return;
    lab = await openJobLab(cluster, { sandboxes: true, role: "edit" });
    runner = await lab.runner();
  }, clusterTimeoutMs);
  afterAll(() => lab?.remove());

  const lines = async (id: string) => (await runner.output(id, 0)).lines.map((line) => JSON.parse(line) as unknown);
  const isGone = async (...what: readonly string[]) =>
    (await lab.kubectl(["get", ...what, "--ignore-not-found"])) === "";

  test("of runtime 2 leaves credentials in a Secret, state in a ConfigMap, words on its pod, and has its role in the user's namespace", async () => {
    const artifact = await lab.classic({
      entrypoint: `set -e
${call(lab.url)}
[ "$1 $2 $3" = "bind --extra-vars @/run/osbert/input.json" ] || exit 3
[ "$(cat "$BUNDLE_STATE_LOCATION/earlier")" = kept ] && [ "$(cat /etc/apb-secrets/apb-db/password)" = s3cret-of-operator ] || exit 4
echo '{"metadata":{"annotations":{"apb_last_operation":"half of it"}}}' | call PATCH "/api/v1/namespaces/$POD_NAMESPACE/pods/$POD_NAME" application/merge-patch+json >/dev/null
echo "the password is s3cret-of-operator"
until [ -e /tmp/go ]; do sleep 0.1; done
fields=$(echo '{"user":"u","password":"made-by-bundle"}' | base64)
echo '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"'$POD_NAME'"},"data":{"fields":"'$fields'"}}' | call POST "/api/v1/namespaces/$POD_NAMESPACE/secrets" application/json >/dev/null
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"'$POD_NAME'"},"data":{"later":"state"}}' | call POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" application/json >/dev/null
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made"},"data":{}}' | call POST "/api/v1/namespaces/${lab.target}/configmaps" application/json >/dev/null
# The records of all jobs are out of its reach.
if call GET /api/v1/namespaces/${lab.namespace}/configmaps application/json </dev/null 2>/dev/null; then exit 5; fi
echo made-by-bundle >&2
`,
    });
    const job = classicJob(artifact, 2, {
      action: "bind",
      input: { namespace: lab.target, password: "s3cret-of-operator", _apb_state: { earlier: "kept" } },
      secrets: { db: { password: "s3cret-of-operator" } },
    });
    const name = jobName(job.id);
    await runner.start(job, signal);
    await until("its progress is told", async () => {
      await runner.look(job.id, { waitMs: 0, signal });
      return JSON.stringify(await lines(job.id)) === '[{"progress":"half of it"}]';
    });
    const objects = await lab.kubectl(["get", "job,pod,namespace,rolebinding,event,configmap", "-A", "-o", "yaml"]);
    expect(objects).toContain(name);
    expect(objects).not.toContain("s3cret-of-operator");
    const [pod] = (await lab.kubectl(["get", "pod", "-n", name, "-o", "name"])).trim().split("\n");
    await lab.kubectl(["exec", "-n", name, String(pod), "--", "touch", "/tmp/go"]);
    expect(await runner.look(job.id, { waitMs: 60_000, signal }), await runner.log(job.id, 10_000)).toEqual(ended(0));
    expect(await lines(job.id)).toEqual([
      { progress: "half of it" },
      { credentials: { user: "u", password: "made-by-bundle" } },
      { state: { later: "state" } },
    ]);
    expect(await runner.log(job.id, 10_000)).toBe("the password is ***\n***\n");
    expect(await lab.kubectl(["get", "configmap", "made", "-n", lab.target, "-o", "name"])).toContain("made");
    await until("its sandbox and its role are gone", async () => {
      return (await isGone("namespace", name)) && (await isGone("rolebinding", name, "-n", lab.target));
    });
    // What is kept of it has none of the operator's secrets.
    const { items } = JSON.parse(await lab.kubectl(["get", "secret", "-n", lab.namespace, "-o", "json"]));
    const kept = (items as readonly { readonly data?: Record<string, string> }[]).flatMap(({ data = {} }) =>
      Object.values(data).map((text) => Buffer.from(text, "base64").toString("utf8")),
    );
    expect(kept.join("\n")).toContain("made-by-bundle");
    expect(kept.join("\n")).not.toContain("s3cret-of-operator");
    await runner.forget(job.id);
    expect(await runner.output(job.id, 0)).toEqual({ lines: [], next: 0 });
    expect(await runner.jobs()).toEqual([]);
  });

  test("of runtime 1 is asked for its credentials while it runs, by whoever looks", async () => {
    const artifact = await lab.classic({
      entrypoint: 'echo \'{"a":"b"}\' | base64 >/tmp/credentials; until [ -e /tmp/taken ]; do sleep 0.1; done',
      "broker-bind-creds": "#!/bin/sh\ncat /tmp/credentials && touch /tmp/taken\n",
    });
    const job = classicJob(artifact, 1);
    await runner.start(job, signal);
    expect(await (await lab.runner()).look(job.id, { waitMs: 60_000, signal })).toEqual(ended(0));
    expect(await lines(job.id)).toEqual([{ credentials: { a: "b" } }]);
  });

  test("says why it failed in its termination message, and where its dashboard is on its pod", async () => {
    const artifact = await lab.classic({
      entrypoint: `${call(lab.url)}
echo '{"metadata":{"annotations":{"apb_dashboard_url":"https://dashboard.example/1"}}}' | call PATCH "/api/v1/namespaces/$POD_NAMESPACE/pods/$POD_NAME" application/merge-patch+json >/dev/null
printf 'the disk is full' >/dev/termination-log; exit 7`,
    });
    const job = classicJob(artifact, 2);
    await runner.start(job, signal);
    expect(await runner.look(job.id, { waitMs: 60_000, signal })).toEqual(ended(7));
    expect(await lines(job.id)).toEqual([
      { dashboard: "https://dashboard.example/1" },
      { refused: "the disk is full" },
    ]);
  });

  test("that takes too long is ended by the kubelet, and its log is kept", async () => {
    const artifact = await lab.classic({ entrypoint: "echo begun; trap '' TERM; while :; do sleep 1; done" });
    const job = classicJob(artifact, 1, { action: "unbind", limits: { timeoutMs: 3_000 } });
    await runner.start(job, signal);
    expect(await runner.look(job.id, { waitMs: 90_000, signal })).toMatchObject({ kind: "ended", cause: "timeout" });
    expect(await runner.log(job.id, 10_000)).toMatch(/^begun$/m);
  });

  test("that is stopped is gone with its sandbox, and is not started again", async () => {
    const made =
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\'$POD_NAME\'"},"data":{"made":"at the end"}}';
    const artifact = await lab.classic({
      entrypoint: `${call(lab.url)}
clear_up() { echo '${made}' | call POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" application/json >/dev/null; exit 9; }
trap clear_up TERM
echo begun
while :; do sleep 0.1; done`,
    });
    const job = classicJob(artifact, 2);
    await runner.start(job, signal);
    await until("it has begun", async () => (await runner.log(job.id, 100)) === "begun\n");
    await runner.stop(job.id);
    expect(await runner.look(job.id, { waitMs: 0, signal })).toMatchObject({ kind: "ended", cause: "stopped" });
    expect(await lines(job.id)).toEqual([{ state: { made: "at the end" } }]);
    expect(await runner.log(job.id, 1_000)).toMatch(/^begun$/m);
    await until("its sandbox is gone", () => isGone("namespace", jobName(job.id)));
    await runner.start(job, signal);
    expect(await isGone("namespace", jobName(job.id))).toBe(true);
  });

  test("of runtime 2 is refused where it may have no sandbox", async () => {
    const job = classicJob(await lab.classic({ entrypoint: "exit 0" }), 2);
    const strict = await lab.runner({ sandbox: "never" });
    await expect(strict.start(job, signal)).rejects.toThrow(/needs the setting of sandboxes/);
    expect(await strict.look(job.id, { waitMs: 0, signal })).toEqual({ kind: "unknown" });
  });
});
