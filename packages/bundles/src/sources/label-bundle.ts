import { bundleLabels } from "./bundle-media-types.js";
import type { BundleFormat } from "./source.js";

/** What labels or annotations say of a bundle. */
export type LabelBundle =
  | { readonly kind: "bundle"; readonly format: BundleFormat; readonly text: string; readonly runtime: number | null }
  | { readonly kind: "invalid"; readonly why: string };

/** `null`: no label makes it a bundle. One that has both is a bundle of Osbert's own format. */
export function labelBundle(labels: ReadonlyMap<string, string>, longestBytes: number): LabelBundle | null {
  const format = labels.has(bundleLabels.osbert) ? "osbert" : "apb";
  const label = bundleLabels[format];
  const encoded = labels.get(label);
  if (encoded === undefined) return null;
  const invalid = (why: string) => ({ kind: "invalid", why: `the label ${label} ${why}` }) as const;
  const bytes = decodeBase64(encoded);
  if (bytes === undefined) return invalid("is not base64");
  if (bytes.length > longestBytes) return invalid(`holds more than ${longestBytes} bytes`);
  const text = decodeUtf8(bytes);
  if (text === undefined) return invalid("does not hold UTF-8");
  if (format === "osbert") return { kind: "bundle", format, text, runtime: null };
  const runtimeLabel = bundleLabels.apbRuntime.find((name) => labels.has(name));
  const runtime = runtimeLabel === undefined ? "1" : (labels.get(runtimeLabel) ?? "").trim();
  if (!/^[0-9]{1,4}$/.test(runtime)) return { kind: "invalid", why: `the label ${runtimeLabel} is not a number` };
  return { kind: "bundle", format, text, runtime: Number(runtime) };
}

/** Of either alphabet, padded or not, in lines or not, as the tools of the predecessor wrote it. */
function decodeBase64(text: string): Buffer | undefined {
  const plain = text.replaceAll(/\s+/g, "");
  if (plain === "" || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(plain)) return undefined;
  return plain.replaceAll("=", "").length % 4 === 1 ? undefined : Buffer.from(plain, "base64");
}

export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
