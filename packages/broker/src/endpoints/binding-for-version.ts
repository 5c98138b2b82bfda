import { type ApiVersion, type Binding, isSupported } from "@osbert/protocol";

/**
 * A binding as a platform of this version can read it. `endpoints` came with 2.15, with ports as texts; the Go client of 2.14, which
 * Service Catalog has, already reads them, but as numbers, and takes the whole answer for garbled. What else came with later versions
 * (`metadata`, `maintenance_info`…) is unknown to older platforms, and ignored by them.
 */
export function bindingForVersion(version: ApiVersion, binding: Binding): Binding {
  if (isSupported(version, endpointsSince)) return binding;
  const { endpoints: _, ...rest } = binding;
  return rest;
}

const endpointsSince: ApiVersion = { major: 2, minor: 15 };
