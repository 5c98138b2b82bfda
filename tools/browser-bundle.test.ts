import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What a browser is given of an entry, and the names of the modules of Node.js that it asks for. */
async function bundled(entry: string): Promise<{ readonly code: string; readonly asksFor: readonly string[] }> {
  const asksFor = new Set<string>();
  const built = await build({
    root,
    configFile: false,
    logLevel: "silent",
    resolve: { conditions: ["@osbert/source", "browser", "module"] },
    plugins: [
      {
        name: "modules of Node.js",
        enforce: "pre",
        resolveId: (id) => {
          if (id.startsWith("node:")) asksFor.add(id);
        },
      },
    ],
    build: {
      write: false,
      minify: false,
      lib: { entry: join(root, "packages", entry), formats: ["es"] },
    },
  });
  const outputs = (Array.isArray(built) ? built : [built]).flatMap((one) => ("output" in one ? one.output : []));
  const code = outputs.map((file) => (file.type === "chunk" ? file.code : "")).join("\n");
  return { code, asksFor: [...asksFor].sort() };
}

test.each(["protocol/src/index.ts", "protocol/src/client/index.ts"])("%s runs in a browser", async (entry) => {
  const { code, asksFor } = await bundled(entry);
  expect(asksFor).toEqual([]);
  expect(code).not.toMatch(/\bnode:[a-z]|__vite-browser-external/);
  expect(code).toMatch(/^export \{/m);
  // It is there, and does what it does, without anything that only Node.js has.
  const { apiVersion, createClient } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as Record<
    string,
    unknown
  >;
  expect(apiVersion ?? createClient).toBeDefined();
});

test("an entry that does not run there is found out", async () => {
  const { asksFor } = await bundled("protocol/src/node/broker-fetch.ts");
  expect(asksFor).toEqual(["node:http", "node:https", "node:net", "node:tls"]);
});
