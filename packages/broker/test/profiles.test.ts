import { describe, expect, test } from "vitest";
import { bound, expectRefusal, flowOn, lab, ready, unchanged, wires } from "./lab.js";

const sync = { acceptsIncomplete: false };

const cloudFoundry = {
  platform: "cloudfoundry",
  organization_guid: "org-guid",
  organization_name: "org",
  space_guid: "space-guid",
  space_name: "space",
  instance_name: "mine",
  organization_annotations: { "prefix/name": "a" },
  space_annotations: {},
  instance_annotations: { b: "c" },
};

const kubernetes = {
  platform: "kubernetes",
  namespace: "default",
  clusterid: "cluster",
  instance_name: "mine",
  namespace_annotations: { a: "b" },
  instance_annotations: {},
};

/** What the functions are given as context. */
function watching() {
  const seen: Record<string, unknown> = {};
  const { service } = lab({ allowContextUpdates: true });
  return {
    seen,
    service: {
      ...service,
      async provision(_work: unknown, { instance }: { instance: { context: unknown } }) {
        seen.provision = instance.context;
      },
      async update(_work: unknown, { instance }: { instance: { context: unknown } }) {
        seen.update = instance.context;
      },
      async bind(_work: unknown, { binding }: { binding: { context: unknown } }) {
        seen.bind = binding.context;
        return {};
      },
    },
  };
}

describe.each(wires)("%s: profiles", (wire) => {
  test.each([
    ["PROF-01, PROF-02, PROF-03, PROF-05: Cloud Foundry", cloudFoundry],
    ["PROF-01, PROF-04, PROF-05: Kubernetes", kubernetes],
    ["PROF-13: a platform that nobody knows", { platform: "mine", anything: [1, { a: null }], more: {} }],
    ["PROF-13: a platform without a name", { anything: 1 }],
  ])("%s: the context reaches the functions whole", async (_, context) => {
    const { service, seen } = watching();
    const flow = await flowOn(wire, { service });
    await ready(flow, "i1", { with: { context } });
    expect(seen.provision).toEqual(context);
    await flow.update("i1", { ...sync, with: { context: { ...context, instance_name: "renamed" } } });
    expect(seen.update).toEqual({ ...context, instance_name: "renamed" });
    const { instance_name: _name, ...binding } = context as { instance_name?: string };
    await bound(flow, "i1", "b1", { with: { context: binding } });
    expect(seen.bind).toEqual(binding);
  });

  test("PROF-06, B2: names, annotations and the cluster's id change, and a repeat stays a repeat", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1", { with: { context: cloudFoundry } });
    await bound(flow, "i1", "b1", { with: { context: cloudFoundry } });
    const renamed = { ...cloudFoundry, space_name: "other", instance_name: "other", space_annotations: { x: "y" } };
    expect((await flow.provision("i1", { with: { context: renamed } })).status).toBe(200);
    expect((await flow.bind("i1", "b1", { with: { context: renamed } })).status).toBe(200);
    await ready(flow, "i2", { with: { context: kubernetes } });
    const moved = { ...kubernetes, clusterid: "other", namespace_annotations: {} };
    expect((await flow.provision("i2", { with: { context: moved } })).status).toBe(200);
  });

  test("PROF-08: what Cloud Foundry adds to a bind resource is taken, and has to be a text where it is one", async () => {
    const flow = await flowOn(wire, lab());
    await ready(flow, "i1");
    const bind_resource = {
      app_guid: "a",
      space_guid: "s",
      credential_client_id: "c",
      app_annotations: { "p/n": "v" },
    };
    await bound(flow, "i1", "b1", { with: { bind_resource } });
    for (const field of ["space_guid", "credential_client_id", "route"]) {
      for (const wrong of [1, {}]) {
        const ask = () => flow.bind("i1", "b2", { with: { bind_resource: { [field]: wrong } } });
        expect(expectRefusal(await unchanged(flow, ask), 400)).toContain(field);
      }
    }
  });

  test("PROF-12: metadata.shareable stands in the catalog", async () => {
    const flow = await flowOn(wire, lab({ metadata: { shareable: true } }));
    expect((await flow.request("GET", "/v2/catalog")).body.services[0].metadata).toEqual({ shareable: true });
  });
});
