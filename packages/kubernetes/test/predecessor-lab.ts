import { fileURLToPath } from "node:url";
import { apply, applyArgs } from "../../../tools/cluster/kubectl.js";
import { until } from "../../../tools/until.js";
import type { Cluster } from "../src/cluster/cluster.js";
import { readinessOf } from "../src/flows/observed.js";
import { catalogKinds } from "../src/import/predecessor-objects.js";
import type { FlowLab } from "./flow-lab.js";

const crds = fileURLToPath(new URL("crds/service-catalog.yaml", import.meta.url));

/** The kinds of the platform that the application broker served. */
export async function installServiceCatalog({ test }: FlowLab): Promise<void> {
  await test.kubectl([...applyArgs, "-f", crds]);
  const names = ["serviceinstances", "serviceclasses", "serviceplans"].map(
    (name) => `crd/${name}.servicecatalog.k8s.io`,
  );
  await test.kubectl(["wait", "--for=condition=Established", "--timeout=60s", ...names]);
}

/** Leaves a cluster as the application broker has left it. */
export class PredecessorLab {
  readonly #lab: FlowLab;
  readonly #cluster: Cluster;

  constructor(lab: FlowLab, cluster: Cluster) {
    this.#lab = lab;
    this.#cluster = cluster;
  }

  /** Labelled, with the Broker that Knative has made then, and a Trigger that leads to the sink. */
  async namespace(): Promise<string> {
    const namespace = await this.#lab.namespace(true);
    const { kubectl } = this.#lab.test;
    await kubectl(["label", "namespace", namespace, "knative-eventing-injection=enabled"]);
    await apply(kubectl, [
      { apiVersion: "eventing.knative.dev/v1", kind: "Broker", metadata: { namespace, name: "default" } },
    ]);
    return namespace;
  }

  /** The application broker built the address of the Broker itself. */
  async subscription(namespace: string, application: string): Promise<string> {
    const { kubectl } = this.#lab.test;
    const subscription = {
      apiVersion: "messaging.knative.dev/v1",
      kind: "Subscription",
      metadata: {
        namespace: this.#lab.integration,
        generateName: "brokersub-",
        labels: {
          "broker-namespace": namespace,
          "application-name": application,
          "application-service-id": `${application}-events`,
        },
      },
      spec: {
        channel: { apiVersion: "messaging.knative.dev/v1", kind: "Channel", name: application },
        subscriber: { uri: `http://broker-ingress.knative-eventing.svc.cluster.local/${namespace}/default` },
      },
    };
    const made = await kubectl(["create", "-f", "-", "-o", "jsonpath={.metadata.name}"], JSON.stringify(subscription));
    await this.#ready("subscription", this.#lab.integration, made);
    await this.#ready("broker", namespace, "default");
    return made;
  }

  async instance(namespace: string, application: string, name: string): Promise<string> {
    const id = `${name}-of-${namespace}`;
    const service = `${application}-events`;
    const { kubectl } = this.#lab.test;
    const apiVersion = "servicecatalog.k8s.io/v1beta1";
    const instance = { apiVersion, kind: "ServiceInstance", metadata: { namespace, name } };
    await apply(kubectl, [
      {
        ...{ apiVersion, kind: "ServiceClass", metadata: { namespace, name: `class-${application}` } },
        spec: { externalID: service, externalName: application, serviceBrokerName: "application-broker" },
      },
      {
        ...{ apiVersion, kind: "ServicePlan", metadata: { namespace, name: `plan-${application}` } },
        spec: { externalID: `${service}-plan`, externalName: "default", serviceBrokerName: "application-broker" },
      },
      {
        ...instance,
        spec: {
          ...{ externalID: id, serviceClassExternalName: application, servicePlanExternalName: "default" },
          serviceClassRef: { name: `class-${application}` },
          servicePlanRef: { name: `plan-${application}` },
        },
      },
    ]);
    const status = { provisionStatus: "Provisioned", conditions: [{ type: "Ready", status: "True" }] };
    await this.#cluster.applyStatus(catalogKinds.instance, { ...instance, status });
    return id;
  }

  /** Everything that an import could have changed, as it is now. */
  async everything(namespace: string): Promise<unknown> {
    const { integration } = this.#lab;
    const kinds = "subscriptions.messaging.knative.dev,channels.messaging.knative.dev";
    const inNamespace = "brokers,triggers,serviceinstances,serviceclasses,serviceplans";
    return [
      await this.#lab.get(kinds, integration),
      await this.#lab.get(inNamespace, namespace),
      await this.#lab.get("namespace", namespace, namespace),
    ];
  }

  async #ready(kind: string, namespace: string, name: string): Promise<void> {
    await until(`${kind} ${name} to be ready`, async () => {
      const found = await this.#lab.get(kind, namespace, name);
      return found !== undefined && readinessOf(found).status === "True";
    });
  }
}
