import { mask } from "@osbert/server/yaml";

/** An address without what is secret in it: its password, and every value of its query. */
export function showUrl(text: string): string {
  if (!text.includes("://")) return text;
  try {
    const url = new URL(text);
    if (url.password !== "") url.password = mask;
    for (const name of [...url.searchParams.keys()]) url.searchParams.set(name, mask);
    return url.href;
  } catch {
    return `${text.slice(0, text.indexOf("://"))}://${mask}`;
  }
}
