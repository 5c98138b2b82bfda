import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type LeftOut, startRegistry } from "../../../tools/servers.js";
import { type Figure, megabytes } from "./figure.js";
import { catalogOf, type Memory, residentBytes } from "./many-bundles.js";
import { pushArtifact } from "./push-artifact.js";
import { ServerProcess } from "./server-process.js";
import { sideBySide } from "./side-by-side.js";

const pushedAtOnce = 8;

/** The memory of a broker, in a process of its own, that reads a real registry for the first time, with the catalog that comes of it. */
export async function firstReading(folder: string, repositories: number): Promise<Figure | LeftOut> {
  const registry = await startRegistry({ kind: "none" });
  if ("leftOut" in registry) return registry;
  const place = join(folder, "first-reading");
  await mkdir(place, { recursive: true });
  try {
    const numbers = Array.from({ length: repositories }, (_, index) => index);
    await sideBySide(numbers, pushedAtOnce, (number) =>
      pushArtifact(registry.url, `team/bundle-${String(number).padStart(5, "0")}`, description(number)),
    );
    const server = new ServerProcess("registry", place, registry.url);
    try {
      await catalogOf(server, repositories);
      const { peakBytes, rssBytes }: Memory = JSON.parse(await server.ask("memory"));
      return {
        what: `resident memory in a first reading of ${repositories.toLocaleString("en")} bundles of a registry, at most`,
        ...{
          measured: megabytes(peakBytes),
          target: `< ${megabytes(residentBytes)}`,
          isMet: peakBytes < residentBytes,
        },
        absolute: `${megabytes(rssBytes)} when its catalog is answered`,
      };
    } finally {
      server.kill();
    }
  } finally {
    await registry.stop();
  }
}

/** As large as those that people offer, and each with schemas of its own. */
function description(number: number): string {
  const plan = (name: string) => `  ${name}:
    description: The ${name} one
    provision:
      type: object
      properties:
        name: { type: string, pattern: '^[a-z]{1,40}$' }
        size: { type: integer, minimum: 1, maximum: ${100 + number} }
      additionalProperties: false
`;
  return `osbert: 1
name: bundle-${number}
version: 1.0.0
description: A bundle like those that people offer, with a description of some length
tags: [sql, managed]
command: [sh, ./run.sh]
plans:
${plan("small")}${plan("large")}`;
}
