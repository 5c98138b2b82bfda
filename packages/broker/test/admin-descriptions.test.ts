import type { Page } from "@osbert/journal";
import type { Shaped } from "@osbert/server/client";
import { expect, expectTypeOf, test } from "vitest";
import {
  adminDescriptions,
  adminRoutes,
  type BindingView,
  type BulkItem,
  type adminDescriptions as Descriptions,
  type EntryView,
  type InstanceSummary,
  type InstanceView,
  type OperationDetails,
  type OperationView,
  type ServiceView,
} from "../src/admin/index.js";

type Answer<Name extends keyof typeof Descriptions> = Shaped<(typeof Descriptions)[Name]["answer"]>;

test("the admin API answers what its routes describe to a client", () => {
  expectTypeOf<Page<InstanceSummary>>().toExtend<Answer<"instances">>();
  expectTypeOf<InstanceView>().toExtend<Answer<"instance">>();
  expectTypeOf<Page<BindingView>>().toExtend<Answer<"bindings">>();
  expectTypeOf<Page<EntryView>>().toExtend<Answer<"journal">>();
  expectTypeOf<OperationDetails>().toExtend<Answer<"operation">>();
  expectTypeOf<Page<OperationView>>().toExtend<Answer<"operations">>();
  expectTypeOf<Page<ServiceView>>().toExtend<Answer<"services">>();
  expectTypeOf<Page<BulkItem>>().toExtend<Answer<"retryAll">>();
  expectTypeOf<ServiceView & { readonly was_paused: boolean }>().toExtend<Answer<"pause">>();
  expect(Object.keys(adminDescriptions).sort()).toEqual(adminRoutes.map(([, , name]) => name).sort());
});
