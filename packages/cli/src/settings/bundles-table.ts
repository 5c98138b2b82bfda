import { defaultLimits, mirrorPolicies } from "@osbert/bundles";
import type { Fields } from "./shape.js";

const mebibyte = 1_048_576;

/** Where bundles come from, and what they may do. */
export const bundleFields = {
  sources: {
    shape: { kind: "documents" },
    meaning:
      "Registries and folders that bundles are read from, each with a `name` that stays, and a `type`: `distribution`, `images`, `dockerhub`, `quay`, `imagestreams` (of the cluster that `cluster` names), `folder`, or `push` for what is sent to this broker with `osbert bundles add`. Paths in them start from the folder of this file. An empty list offers no bundles, and lets those that have instances go on.",
    otherwise: "none",
    reloads: true,
    example: [{ name: "ours", type: "folder", path: "bundles" }],
  },
  registry: {
    shape: { kind: "documents" },
    meaning:
      "The same, as the Ansible Service Broker has it: its block `registry` as it is written there. What `sources` can say is more, and stricter.",
    otherwise: "none",
    reloads: true,
    example: [{ type: "dockerhub", name: "dh", org: "example", white_list: [".*-apb$"] }],
  },
  directory: {
    shape: { kind: "path" },
    meaning:
      "The folder for files and images of bundles and for their runs, on a disk of this machine. Instances are deprovisioned with what is in it, whatever became of the registry. Several machines may share its folder `files`, but not `runs` and `containers`: another machine would take a job that runs for lost.",
    otherwise: "the folder `bundles` in `data`",
    example: "/var/lib/osbert/bundles",
  },
  mirror: {
    shape: { kind: "choice", of: mirrorPolicies },
    meaning:
      "When images of bundles are copied into `directory`, so that what was made of them can be removed when the registry has lost them. `onProvision`: when an action first runs them here. `onDiscovery`: as soon as they are offered, and files of bundles, too. `never`: images are left to the engine of containers.",
    default: "onProvision",
  },
  runner: {
    shape: { kind: "choice", of: ["process", "container", "kubernetes"] },
    meaning:
      "What runs bundles. `process`: bundles of files as programs of this machine, shut in by bubblewrap. `container`: these, too, in containers, of `containers.image`. Bundles in images, classic ones among them, run in containers with both. `kubernetes`: all of them as Jobs of the cluster that `cluster` names, see `jobs`; classic bundles of runtime 2 run only so. Finish what runs before you change it: jobs are found only where they were started.",
    default: "process",
  },
  containers: {
    shape: {
      kind: "group",
      fields: {
        program: {
          shape: { kind: "text" },
          meaning:
            "The program that runs containers: podman, docker or a path to one. One that is named has to answer, unless it has run bundles here before.",
          otherwise: "podman, or else docker; without one, bundles in images cannot be run",
          example: "podman",
        },
        image: {
          shape: { kind: "text" },
          meaning:
            "What bundles of files run in with `runner: container`. Name it by its digest, so that it stays the same.",
          otherwise: "none",
          example: "registry.example/base@sha256:…",
        },
        network: {
          shape: { kind: "text" },
          meaning: "The engine's network for bundles that get one.",
          otherwise: "the engine's own default",
          example: "bundles",
        },
        arguments: {
          shape: { kind: "list", of: { kind: "text" } },
          meaning: "What the program is given before its command.",
          default: [],
          example: ["--root", "/var/lib/osbert/images"],
        },
        runArguments: {
          shape: { kind: "list", of: { kind: "text" } },
          meaning:
            "What every container is run with, beside its limits: files that classic bundles need, such as the access to a cluster, or `--ulimit` where the engine may not give its own.",
          default: [],
          example: ["--volume", "/etc/osbert/kubeconfig:/tmp/.kube/config:ro"],
        },
      },
    },
    meaning: "How containers are run.",
  },
  jobs: {
    shape: {
      kind: "group",
      fields: {
        namespace: {
          shape: { kind: "text", longest: 63 },
          meaning:
            "Where jobs run that need no sandbox, and where what is known of all is kept. Nobody else may work in it: whoever reads Secrets there reads what bundles are given.",
          otherwise: "**must be there** with `runner: kubernetes`",
          example: "osbert-jobs",
        },
        helperImage: {
          shape: { kind: "text" },
          meaning:
            "An image with a busybox that needs no library; it prepares pods and keeps what bundles print. Name it by its digest.",
          otherwise: "**must be there** with `runner: kubernetes`",
          example: "registry.example/busybox@sha256:…",
        },
        image: {
          shape: { kind: "text" },
          meaning: "What bundles of files run in.",
          otherwise: "none: bundles of files cannot be run",
          example: "registry.example/base@sha256:…",
        },
        role: {
          shape: { kind: "text", longest: 253 },
          meaning: "A ClusterRole that bundles get in the namespace that an instance is for, and in their sandbox.",
          otherwise: "none, and no token",
          example: "edit",
        },
        sandbox: {
          shape: { kind: "choice", of: ["classic", "always", "never"] },
          meaning: "Which bundles get a namespace of their own for each action. Classic bundles of runtime 2 need one.",
          default: "classic",
        },
        sandboxRole: {
          shape: { kind: "text", longest: 253 },
          meaning: "The ClusterRole of classic bundles in their sandbox.",
          default: "osbert-bundle-sandbox",
        },
        pullSecrets: {
          shape: { kind: "list", of: { kind: "text", longest: 253 } },
          meaning: "Secrets in `namespace` that images are pulled with.",
          default: [],
          example: ["registry"],
        },
        runAsNonRoot: {
          shape: { kind: "flag" },
          meaning: "Refuses images that would run as root. Bundles of files never do.",
          default: false,
        },
        cpu: {
          shape: { kind: "text", longest: 20 },
          meaning: "How much processor a bundle may use at a time, as Kubernetes writes it.",
          default: "1",
        },
        podSpec: {
          shape: { kind: "json" },
          meaning: "More for the pods: `nodeSelector`, `tolerations`, `priorityClassName`, `runtimeClassName`.",
          default: {},
          example: { nodeSelector: { "osbert.io/jobs": "true" } },
        },
      },
    },
    meaning: "How Jobs of a cluster are run, with `runner: kubernetes`. Limits are those of `limits`.",
  },
  unsandboxed: {
    shape: { kind: "flag" },
    meaning: "Runs bundles without bubblewrap: they can do all that the broker's user can.",
    default: false,
  },
  network: {
    shape: { kind: "flag" },
    meaning: "Bundles that ask for the network get it. The others never do.",
    default: false,
  },
  secrets: {
    shape: {
      kind: "map",
      name: "secret",
      of: {
        kind: "group",
        fields: {
          sources: {
            shape: { kind: "list", of: { kind: "text", longest: 200 } },
            meaning: "Names of the sources whose bundles may have it. Who can push a bundle there can get at it.",
            required: true,
            example: ["ours"],
          },
          services: {
            shape: { kind: "list", of: { kind: "text", longest: 1_000 } },
            meaning: "Patterns of RE2 for the whole names of the services that may have it.",
            required: true,
            example: ["postgres-.*"],
          },
          values: {
            shape: { kind: "map", name: "key", of: { kind: "secret" } },
            meaning:
              "What the bundles get, by keys that they choose: each a text, `{ file: path }` or `{ env: NAME }`. A parameter that is called like a key is asked of no user, and filled in.",
            required: true,
            example: { host: "db.example.org", username: "broker" },
          },
        },
      },
    },
    meaning:
      "What bundles need and no user may know, such as the account on a server that they make databases on. Of a key that two of them have for one bundle, the later one counts. A reload gives new values to the next action.",
    otherwise: "none",
    reloads: true,
  },
  concurrency: {
    shape: { kind: "number", from: 1, to: 1_000 },
    meaning: "Actions of bundles that run at the same time, of those that this process has started.",
    default: 16,
  },
  limits: {
    shape: {
      kind: "group",
      fields: {
        time: {
          shape: { kind: "duration", to: 7 * 86_400_000 },
          meaning: "How long an action may take. A bundle may ask for less.",
          default: `${defaultLimits.timeoutMs / 60_000}m`,
        },
        cpu: {
          shape: { kind: "duration", to: 7 * 86_400_000 },
          meaning: "How much of a processor's time each of its processes may use.",
          default: `${defaultLimits.cpuSeconds / 60}m`,
        },
        memory: {
          shape: { kind: "number", from: 16, to: 1_048_576 },
          meaning: "Memory, in MiB.",
          default: defaultLimits.memoryBytes / mebibyte,
        },
        processes: {
          shape: { kind: "number", from: 1, to: 100_000 },
          meaning:
            "Processes at a time. Where the broker is root, programs of the machine share what `concurrency` of them may have, and without a sandbox have no such limit.",
          default: defaultLimits.processes,
        },
        output: {
          shape: { kind: "number", from: 1, to: 1_024 },
          meaning: "All that it prints, in MiB. What is beyond ends it.",
          default: defaultLimits.outputBytes / mebibyte,
        },
      },
    },
    meaning: "What one action of a bundle may use.",
  },
} as const satisfies Fields;
