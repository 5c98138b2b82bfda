/** Where the next page is, from a Link header (RFC 8288), as it is written there. `null`: this was the last page. */
export function nextLink(header: string): string | null {
  const link = /[\s,]*<([^>]*)>((?:[ \t]*;[ \t]*[A-Za-z*-]+(?:[ \t]*=[ \t]*(?:"[^"]*"|[^\s,;"]+))?)*)/y;
  for (let match = link.exec(header); match !== null; match = link.exec(header)) {
    const [, target = "", parameters = ""] = match;
    const [, quoted, bare] = /;[ \t]*rel[ \t]*=[ \t]*(?:"([^"]*)"|([^\s,;"]+))/i.exec(parameters) ?? [];
    if ((quoted ?? bare ?? "").toLowerCase().split(" ").includes("next")) return target;
  }
  return null;
}
