import { type CloudEvent, type EventSink, sendToChannel, startSink } from "../../../tools/cluster/events.js";
import { apply } from "../../../tools/cluster/kubectl.js";
import type { ClusterFacts } from "../../../tools/cluster/options.js";
import { freshNamespace, type TestCluster } from "../../../tools/cluster/test-cluster.js";
import { until } from "../../../tools/until.js";
import type { FlowSettings } from "../src/flows/flow-settings.js";
import type { Loose } from "./loose.js";

export { type FlowBroker, type FlowBrokerOptions, flowBroker, SaidApplications } from "./flow-broker.js";

/** The part of a cluster that a test has for itself: channels of its applications, namespaces with sinks. */
export class FlowLab {
  readonly integration = freshNamespace("integration");
  readonly sink: EventSink;
  #test: TestCluster;
  #events = 0;

  private constructor(test: TestCluster, sink: EventSink) {
    this.#test = test;
    this.sink = sink;
  }

  get test(): TestCluster {
    return this.#test;
  }

  /** The cluster has more than it had. */
  hasMore(facts: ClusterFacts): void {
    this.#test = { ...this.#test, facts };
  }

  static async open(test: TestCluster): Promise<FlowLab> {
    const lab = new FlowLab(test, await startSink());
    await apply(test.kubectl, [namespaceObject(lab.integration)]);
    return lab;
  }

  get settings(): Partial<FlowSettings> {
    return { integrationNamespace: this.integration, lingerMs: 500, debounceMs: 500, hysteresisMs: 500 };
  }

  /** A namespace whose events end in the sink, by a Trigger, unless it is to have none. */
  async namespace(withTrigger = false): Promise<string> {
    const namespace = freshNamespace("flows");
    await apply(this.test.kubectl, [namespaceObject(namespace)]);
    await apply(this.test.kubectl, [this.sink.service({ namespace, name: "sink" })]);
    if (withTrigger) await this.trigger(namespace);
    return namespace;
  }

  async trigger(namespace: string): Promise<void> {
    await apply(this.test.kubectl, [
      {
        apiVersion: "eventing.knative.dev/v1",
        kind: "Trigger",
        metadata: { namespace, name: "all" },
        spec: {
          broker: "default",
          subscriber: { ref: { apiVersion: "v1", kind: "Service", name: "sink" }, uri: `/${namespace}` },
        },
      },
    ]);
  }

  async channel(application: string): Promise<void> {
    await apply(this.test.kubectl, [
      {
        apiVersion: "messaging.knative.dev/v1",
        kind: "Channel",
        metadata: { namespace: this.integration, name: application, labels: { "application-name": application } },
      },
    ]);
  }

  /** Sends events of an application until one of them has arrived in the namespace. */
  async arrives(application: string, namespace: string): Promise<void> {
    await until(`an event of ${application} in ${namespace}`, async () => {
      const event = await this.send(application);
      return this.#hasArrived(event.id, namespace);
    });
  }

  async send(application: string): Promise<CloudEvent> {
    const { knative } = this.test.facts;
    if (knative === undefined) throw new Error("there is no Knative");
    this.#events += 1;
    const event = { id: `${application}-${this.#events}`, type: "order.created", source: `/${application}`, data: {} };
    await sendToChannel(knative, { namespace: this.integration, name: application }, event);
    return event;
  }

  async #hasArrived(id: string, namespace: string): Promise<boolean> {
    for (let looks = 0; looks < 10; looks++) {
      if (this.sink.received.some((event) => event.id === id && event.path === `/${namespace}`)) return true;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return false;
  }

  async get(kind: string, namespace: string, name?: string): Promise<Loose> {
    const args = [
      "get",
      kind,
      ...(name === undefined ? [] : [name]),
      "-n",
      namespace,
      "-o",
      "json",
      "--ignore-not-found",
    ];
    const text = await this.test.kubectl(args);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** The Subscriptions that bring events into a namespace. */
  async subscriptions(namespace: string): Promise<readonly Loose[]> {
    const found = await this.get("subscriptions.messaging.knative.dev", this.integration);
    return (found?.items ?? []).filter((each: Loose) => each.spec.subscriber.ref?.namespace === namespace);
  }

  async close(): Promise<void> {
    await this.sink.stop();
  }
}

function namespaceObject(name: string): object {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}
