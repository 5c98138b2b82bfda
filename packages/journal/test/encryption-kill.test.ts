import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { encryptedStore, newKey, parseKeyRing } from "../src/encryption/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { contentsOf, keysUsed, textsOf } from "./encryption-fixture.js";
import { change } from "./postgres-change.js";
import { databasePath } from "./sqlite-fixture.js";

test("a rotation that is killed leaves every text readable and the old key in use; the next one does the rest", async () => {
  const path = await databasePath();
  const [a, b] = [newKey("a"), newKey("b")];
  const first = encryptedStore(sqliteStore(path), parseKeyRing(a));
  await first.open();
  const changes = Array.from({ length: 400 }, (_, index) =>
    change(`k${index}`, null, { state: `"state ${index}"`, putParts: [{ id: "p", body: `"part ${index}"` }] }),
  );
  await Promise.all(changes.map((each) => first.commit(each)));
  const clear = await contentsOf(first);
  await first.close();

  for (const pages of [1, 2]) {
    await killedAfter(pages, path, `${b}\n${a}`);
    const bare = sqliteStore(path);
    const store = encryptedStore(bare, parseKeyRing(`${b}\n${a}`));
    await store.open();
    expect(await contentsOf(store)).toEqual(clear);
    expect(keysUsed(textsOf(await contentsOf(bare)))).toMatchObject({ a: expect.anything(), b: expect.anything() });
    await store.close();
    await expect(encryptedStore(sqliteStore(path), parseKeyRing(b)).open()).rejects.toMatchObject({
      code: "key-missing",
    });
  }

  const store = encryptedStore(sqliteStore(path), parseKeyRing(`${b}\n${a}`));
  await store.open();
  expect(await store.rotate()).toMatchObject({ left: 0, unused: ["a"] });
  await store.close();
  const last = encryptedStore(sqliteStore(path), parseKeyRing(b));
  await last.open();
  expect(await contentsOf(last)).toEqual(clear);
  await last.close();
});

/** Runs a rotation in a process of its own, which is killed after so many pages. */
async function killedAfter(pages: number, path: string, keys: string): Promise<void> {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const file = fileURLToPath(new URL("./encryption-child.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", tsx, file, path, String(pages)], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, KEYS: keys },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
}
