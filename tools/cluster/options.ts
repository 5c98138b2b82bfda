/** What a cluster has besides its API server, controllers and scheduler. */
export interface ClusterOptions {
  /** A node that runs pods: kubelet, containerd, and a registry with an image to run. For root alone. */
  readonly node?: boolean;
  /** Knative Eventing, control plane and data plane. */
  readonly knative?: boolean;
  /** Istio's resources, with the rules that their definitions have. Nothing enforces the policies. */
  readonly istio?: boolean;
}

/** The processes of a cluster, which can be stopped and paused one by one. */
export const partNames = [
  "etcd",
  "apiserver",
  "controller-manager",
  "scheduler",
  "containerd",
  "kubelet",
  "knative-control",
  "knative-data",
] as const;

export type PartName = (typeof partNames)[number];

/** Where things are. Plain values: they cross from process to process. */
export interface ClusterFacts {
  /** Everything that the cluster has written. It goes when the cluster does. */
  readonly directory: string;
  /** Of an administrator. */
  readonly kubeconfig: string;
  /** Of a user, `plain`, who may do nothing but what a test allows him with RBAC. */
  readonly plainKubeconfig: string;
  /** The address of the API server. */
  readonly url: string;
  /** The program that is kubectl if that is its first argument. */
  readonly program: string;
  readonly node?: NodeFacts;
  readonly knative?: KnativeFacts;
}

export interface NodeFacts {
  /** Its registry of images, as `127.0.0.1:PORT`: what is pushed there, pods can run. */
  readonly registry: string;
  /** The name of an image with busybox, its applets in /bin. */
  readonly busyboxImage: string;
  readonly ip: string;
}

/** Ports of the loopback interface. */
export interface KnativeFacts {
  /** Takes events for channels; the Host header says for which. */
  readonly channelPort: number;
  /** Takes events for brokers, at `/NAMESPACE/NAME`. */
  readonly brokerPort: number;
}
