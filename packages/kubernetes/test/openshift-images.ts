import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { apply, type Kubectl } from "../../../tools/cluster/kubectl.js";
import type { ClusterFacts } from "../../../tools/cluster/options.js";

type Json = Readonly<Record<string, unknown>>;

/**
 * Stands in for OpenShift's API of images, which no custom resource can: names of its objects hold `@` and `:`. It is an API server of its own, as OpenShift's
 * is, and a real kube-apiserver aggregates it: that one knows who asks, checks with RBAC what he may, and says so if this one is down. Shapes are those of
 * OpenShift 4; OpenShift itself was not asked.
 */
export interface OpenShiftImages {
  /** By `NAMESPACE/NAME`. */
  readonly streams: Map<string, Json>;
  /** By `NAMESPACE/NAME@DIGEST`. */
  readonly images: Map<string, Json>;
  /** Of pages, whatever is asked for. */
  mostItems: number;
  stop(): Promise<void>;
}

const group = "/apis/image.openshift.io/v1";

export async function startOpenShiftImages(facts: ClusterFacts, kubectl: Kubectl): Promise<OpenShiftImages> {
  const pki = (name: string) => readFileSync(join(facts.directory, "pki", name));
  const streams = new Map<string, Json>();
  const images = new Map<string, Json>();
  const state = { mostItems: 500 };
  const server = createServer({ cert: pki("apiserver.crt"), key: pki("apiserver.key") }, (request, response) => {
    const url = new URL(request.url ?? "/", "https://localhost");
    const [status, body] = answer(decodeURIComponent(url.pathname), url.searchParams);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const answer = (path: string, query: URLSearchParams): readonly [number, unknown] => {
    if (path === group) return [200, resources];
    const [, namespace, plural, name] =
      /^\/apis\/image\.openshift\.io\/v1\/namespaces\/([^/]+)\/(\w+)(?:\/([^/]+))?$/.exec(path) ?? [];
    const objects = plural === "imagestreams" ? streams : plural === "imagestreamimages" ? images : undefined;
    if (plural === undefined || objects === undefined) return [404, {}];
    if (name !== undefined) {
      const found = objects.get(`${namespace}/${name}`);
      return found === undefined ? [404, notFound(plural, name)] : [200, found];
    }
    const all = [...objects].filter(([key]) => key.startsWith(`${namespace}/`)).map(([, object]) => object);
    const from = Number(query.get("continue") ?? 0);
    const next = from + state.mostItems;
    const metadata = { resourceVersion: "7", ...(next < all.length && { continue: String(next) }) };
    return [200, { kind: "ImageStreamList", apiVersion, metadata, items: all.slice(from, next) }];
  };
  await listen(server);
  const { port } = server.address() as AddressInfo;
  const service = { name: "openshift-apiserver", namespace: "default" };
  await apply(kubectl, [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: service,
      spec: { type: "ExternalName", externalName: "localhost", ports: [{ port, protocol: "TCP" }] },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1.image.openshift.io" },
      spec: {
        group: "image.openshift.io",
        version: "v1",
        service: { ...service, port },
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 2_000,
        versionPriority: 15,
      },
    },
  ]);
  await kubectl(["wait", "--for=condition=Available", "apiservice/v1.image.openshift.io", "--timeout=60s"]);
  return {
    streams,
    images,
    get mostItems() {
      return state.mostItems;
    },
    set mostItems(most) {
      state.mostItems = most;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const apiVersion = "image.openshift.io/v1";

const resources = {
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion: apiVersion,
  resources: [
    {
      name: "imagestreams",
      singularName: "imagestream",
      namespaced: true,
      kind: "ImageStream",
      verbs: ["get", "list"],
    },
    { name: "imagestreamimages", singularName: "", namespaced: true, kind: "ImageStreamImage", verbs: ["get"] },
  ],
};

function notFound(plural: string, name: string) {
  const details = { name, group: "image.openshift.io", kind: plural };
  const message = `${plural}.image.openshift.io "${name}" not found`;
  return { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404, message, details };
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve());
  });
}
