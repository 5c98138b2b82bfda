import { describe, expect, test } from "vitest";
import { podState } from "../src/jobs/pod-state.js";

const running = { running: { startedAt: "2026-01-01T00:00:00Z" } };
const pod = (bundle: object, more: object = {}, keeper: object = running) => ({
  status: {
    phase: "Running",
    containerStatuses: [
      { name: "bundle", state: bundle },
      { name: "keeper", state: keeper },
    ],
    ...more,
  },
});
const terminated = (more: object) => ({ terminated: { exitCode: 0, reason: "Completed", ...more } });

describe("a pod", () => {
  test("that is new waits, and one without a status, too", () => {
    expect(podState({})).toMatchObject({ kind: "waiting", failure: null });
    expect(podState({ status: { phase: "Pending" } })).toMatchObject({ kind: "waiting", failure: null });
  });

  test("that no node has room for says what the scheduler says", () => {
    const conditions = [
      { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes are available" },
    ];
    const why = "no node has room for it: 0/3 nodes are available";
    expect(podState({ status: { phase: "Pending", conditions } })).toEqual({
      kind: "waiting",
      why,
      failure: "not started",
    });
  });

  test.each([
    ["ErrImagePull", "failed to resolve reference: not found", "image not found"],
    ["ImagePullBackOff", "Back-off pulling image: unauthorized", "image forbidden"],
    ["ErrImagePull", "dial tcp: connection refused", "no image"],
    ["CreateContainerConfigError", 'secret "x" not found', "not started"],
  ])("that waits with %s (%s) is one with %s", (reason, message, failure) => {
    expect(podState(pod({ waiting: { reason, message } }, {}, {}))).toEqual({ kind: "waiting", why: message, failure });
  });

  test("whose helper image cannot be pulled says so, though its bundle only waits for that", () => {
    const initContainerStatuses = [{ name: "prepare", state: { waiting: { reason: "ErrImagePull", message: "404" } } }];
    const waits = { waiting: { reason: "PodInitializing" } };
    expect(podState(pod(waits, { phase: "Pending", initContainerStatuses }, waits))).toMatchObject({
      failure: "image not found",
    });
  });

  test.each([
    ["an exit", { exitCode: 3, reason: "Error" }, {}, "exit"],
    ["a kill for memory", { exitCode: 137, reason: "OOMKilled" }, {}, "memory"],
    [
      "a kill for memory of one of its processes, which it has survived",
      { exitCode: 75, reason: "OOMKilled" },
      {},
      "exit",
    ],
    ["a program that is none", { exitCode: 128, reason: "StartError" }, {}, "start"],
    ["its time", { exitCode: 137, reason: "Error" }, { phase: "Failed", reason: "DeadlineExceeded" }, "timeout"],
    [
      "its temporary directory",
      { exitCode: 137, reason: "Error" },
      { phase: "Failed", reason: "Evicted", message: 'Usage of EmptyDir volume "tmp" exceeds the limit "1Gi". ' },
      "disk",
    ],
  ])("that has ended with %s", (_, end, more, cause) => {
    expect(podState(pod(terminated(end), more))).toMatchObject({ kind: "ended", exitCode: end.exitCode, cause });
  });

  test("whose bundle has ended is asked only if its keeper is there", () => {
    const end = terminated({ exitCode: 0 });
    expect(podState(pod(end))).toMatchObject({ kind: "ended", keeper: "there" });
    expect(podState(pod(end, {}, { waiting: {} }))).toMatchObject({ keeper: "not yet" });
    expect(podState(pod(end, {}, terminated({})))).toMatchObject({ keeper: "over" });
    expect(podState(pod(end, { phase: "Failed", reason: "Evicted" }, {}))).toMatchObject({ keeper: "over" });
  });

  test("that was evicted before anything ran, or whose end the kubelet had to make up, says nothing of its bundle", () => {
    const evicted = { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." };
    expect(podState({ status: evicted })).toEqual({ kind: "gone", why: `Evicted: ${evicted.message}`, cause: null });
    const madeUp = terminated({ exitCode: 137, reason: "ContainerStatusUnknown" });
    expect(podState(pod(madeUp, { phase: "Failed" }, madeUp))).toMatchObject({ kind: "gone", cause: null });
  });

  test("that could not be prepared never ran", () => {
    const initContainerStatuses = [
      { name: "prepare", state: terminated({ exitCode: 1, reason: "Error", message: "no busybox" }) },
    ];
    expect(podState({ status: { phase: "Failed", initContainerStatuses } })).toMatchObject({
      kind: "gone",
      cause: "start",
    });
  });
});
