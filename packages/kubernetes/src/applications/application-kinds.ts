import type { ObjectKind } from "../cluster/cluster-object.js";
import type { ApplicationKind } from "./application.js";

const kyma = { group: "applicationconnector.kyma-project.io", version: "v1alpha1" };
const own = { group: "events.osbert.io", version: "v1alpha1" };

/** What applications, and who may have them, are read from. */
export const applicationKinds: Readonly<
  Record<ApplicationKind, { readonly applications: ObjectKind; readonly grants: ObjectKind }>
> = {
  kyma: {
    applications: { ...kyma, kind: "Application", plural: "applications", namespaced: false },
    grants: { ...kyma, kind: "ApplicationMapping", plural: "applicationmappings", namespaced: true },
  },
  osbert: {
    applications: { ...own, kind: "Application", plural: "applications", namespaced: false },
    grants: { ...own, kind: "ApplicationGrant", plural: "applicationgrants", namespaced: true },
  },
};
