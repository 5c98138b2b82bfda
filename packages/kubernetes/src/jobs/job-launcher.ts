import { RunnerError } from "@osbert/bundles";
import type { Cluster, PatchOperation } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject, ObjectKind } from "../cluster/cluster-object.js";
import { type JobClearing, removeJob } from "./job-clearing.js";
import { labels, resumedAnnotation } from "./job-names.js";
import {
  denyAll,
  inputSecrets,
  type JobPlan,
  jobObject,
  roleBindings,
  sandboxNamespace,
  serviceAccount,
} from "./job-objects.js";
import type { JobRecord, JobRecords } from "./job-record.js";
import type { JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";

const resumedPath = `/metadata/annotations/${resumedAnnotation.replaceAll("/", "~1")}`;

/** Makes what a job needs, and lets it run: steps 2 to 4 of a start, see `openJobRunner`. */
export class JobLauncher {
  readonly #settings: JobRunnerSettings;
  readonly #cluster: Cluster;
  readonly #records: JobRecords;
  readonly #clearing: JobClearing;

  constructor(settings: JobRunnerSettings, records: JobRecords, clearing: JobClearing) {
    this.#clearing = clearing;
    this.#settings = settings;
    this.#cluster = settings.cluster;
    this.#records = records;
  }

  /** Answers with the record as it is then. */
  async launch(plan: JobPlan, placed: JobRecord, signal: AbortSignal): Promise<JobRecord> {
    if (plan.facts.sandbox) await this.#makeSandbox(plan);
    signal.throwIfAborted();
    const made = await this.#make(kinds.job, jobObject(plan, this.#settings));
    const uid = made.metadata.uid ?? "";
    if (made.metadata.deletionTimestamp !== undefined)
      throw new RunnerError("not started", "a Job that was abandoned is still going away");
    try {
      await this.#makeOwn(kinds.serviceAccount, serviceAccount(plan, uid), uid);
      for (const binding of roleBindings(plan, this.#settings)) await this.#bindRole(binding);
      for (const secret of inputSecrets(plan, uid)) await this.#makeOwn(kinds.secret, secret, uid);
      if (!plan.job.limits.network) await this.#makeOwn(kinds.networkPolicy, denyAll(plan, uid), uid);
      signal.throwIfAborted();
    } catch (error) {
      // Somebody may have ended it meanwhile: then that is the answer.
      const record = await this.#records.read(plan.job.id);
      if (record === undefined || record.state.kind === "placed") throw error;
    }
    const started = await this.#records.change(placed, { kind: "started", uid, stopping: false });
    const record = started ?? (await this.#records.read(plan.job.id));
    const { name, facts } = plan;
    if (record === undefined) {
      await this.#clearing.removeObjects({ name, facts });
      throw new RunnerError("not started", "its record was removed meanwhile");
    }
    const { state } = record;
    if (state.kind === "placed") throw new RunnerError("not started", "its record was changed meanwhile");
    if (state.kind !== "started") await this.#clearing.clear(record);
    else if (state.uid === uid) await this.resume(record);
    // Another one is the job: this one would never run.
    else await removeJob(this.#cluster, { namespace: facts.namespace, name }, uid);
    return record;
  }

  /**
   * Lets a Job run that the record names. Once: a starter that comes to it late must not bring back what was suspended since, by whoever
   * stops it or by a person.
   */
  async resume(record: JobRecord): Promise<void> {
    await this.#patch(record, [
      { op: "test", path: resumedPath, value: "no" },
      { op: "replace", path: resumedPath, value: "yes" },
      { op: "replace", path: "/spec/suspend", value: false },
    ]);
  }

  /** No pod is made of it any more, and the cluster deletes the one that there is. All else that the pod needs to clear up stays. */
  async suspend(record: JobRecord): Promise<void> {
    await this.#patch(record, [
      { op: "replace", path: resumedPath, value: "yes" },
      { op: "replace", path: "/spec/suspend", value: true },
    ]);
  }

  async #patch({ name, facts, state }: JobRecord, operations: readonly PatchOperation[]): Promise<void> {
    if (state.kind !== "started") return;
    const named: PatchOperation = { op: "test", path: "/metadata/uid", value: state.uid };
    try {
      await this.#cluster.patch(kinds.job, { namespace: facts.namespace, name }, [named, ...operations]);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.failure !== "conflict") throw error;
    }
  }

  async #makeSandbox(plan: JobPlan): Promise<void> {
    const made = await this.#make(kinds.namespace, sandboxNamespace(plan));
    if (made.metadata.labels?.[labels.job] !== plan.name)
      throw new RunnerError("not started", `the namespace ${plan.facts.namespace} was made by somebody else`);
    if (made.metadata.deletionTimestamp !== undefined)
      throw new RunnerError("not started", "its sandbox is going away");
    for (const name of this.#settings.imagePullSecrets) {
      const found = await this.#cluster.read(kinds.secret, { namespace: this.#settings.namespace, name });
      if (found === undefined) continue;
      const copy = {
        ...found,
        metadata: { name, namespace: plan.facts.namespace, labels: sandboxNamespace(plan).metadata.labels ?? {} },
      };
      await this.#make(kinds.secret, copy);
    }
  }

  /** A namespace that is gone has nothing left to act on: a deprovision must not fail for that. */
  async #bindRole(binding: ClusterObject): Promise<void> {
    await this.#make(kinds.roleBinding, binding).catch((error: unknown) => {
      if (!(error instanceof ClusterError) || error.failure !== "not found") throw error;
    });
  }

  /** Makes an object, or finds it. */
  async #make(kind: ObjectKind, object: ClusterObject): Promise<ClusterObject> {
    try {
      return await this.#cluster.create(kind, object);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.failure !== "conflict") throw error;
      const { name, namespace = "" } = object.metadata;
      const found = await this.#cluster.read(kind, { namespace, name });
      if (found === undefined) throw error;
      return found;
    }
  }

  /** The same of what belongs to the Job; what an earlier Job of the name has left is on its way out. */
  async #makeOwn(kind: ObjectKind, object: ClusterObject, jobUid: string): Promise<void> {
    const made = await this.#make(kind, object);
    if (made.metadata.ownerReferences?.some(({ uid }) => uid === jobUid) === true) return;
    const { name, namespace = "", uid } = made.metadata;
    if (uid !== undefined) await this.#cluster.remove(kind, { namespace, name }, { uid });
    throw new RunnerError("not started", "what an abandoned start has left is still going away");
  }
}
