import { expect, test } from "vitest";
import { namespaceOf } from "../src/applications/platform-namespace.js";
import { flowPlace } from "../src/wiring/flow-place.js";

test("the namespace of an instance is the path under which its platform asks, whatever the platform says of the place", () => {
  const context = { namespace: "other", instance_name: "x".repeat(300) };
  expect(flowPlace({ platform: "shop", id: "i", context })).toMatchObject({
    ...{ namespace: "shop", platform: "shop", instance: "i", instanceName: "x".repeat(200) },
  });
  expect(() => flowPlace({ platform: "", id: "i", context })).toThrow(/under the path of a namespace/);
  expect(["", "Shop", "a/b", "x".repeat(64)].map(namespaceOf)).toEqual([undefined, undefined, undefined, undefined]);
});
