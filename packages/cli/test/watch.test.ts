import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { watchFiles } from "../src/serve/watch.js";
import { digestOf, realSystem } from "../src/settings/system.js";
import { folderWith } from "./program.js";

/** A busy machine takes its time; a quiet one does not wait. */
const patience = { timeout: 20_000 };

const open: { close(): void }[] = [];
afterEach(() => {
  for (const watch of open.splice(0)) watch.close();
});

/** A watch that has looked once, and from now on sees only what the system tells it. */
async function watching(...files: readonly string[]) {
  const system = realSystem();
  let reads = 0;
  const readFile = (path: string, most: number) => {
    reads += 1;
    return system.readFile(path, most);
  };
  const changed = vi.fn();
  const watch = watchFiles({ system: { ...system, readFile }, changed, failed: vi.fn() });
  open.push(watch);
  watch.follow(new Map(files.map((file) => [file, digestOf(system, file)])));
  await vi.waitFor(() => expect(reads).toBe(files.length), patience);
  return { changed, told: (times: number) => vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(times), patience) };
}

test("a file that is written, replaced, removed and made again is seen each time", async () => {
  const folder = folderWith({ file: "1" });
  const file = join(folder, "file");
  const { told } = await watching(file);
  writeFileSync(file, "2");
  await told(1);
  writeFileSync(join(folder, "next"), "3");
  renameSync(join(folder, "next"), file);
  await told(2);
  renameSync(file, join(folder, "away"));
  await told(3);
  writeFileSync(file, "4");
  await told(4);
});

test("what a link leads to is watched, too", async () => {
  const [folder, elsewhere] = [folderWith({}), folderWith({ real: "1" })];
  symlinkSync(join(elsewhere, "real"), join(folder, "link"));
  const { told } = await watching(join(folder, "link"));
  writeFileSync(join(elsewhere, "real"), "2");
  await told(1);
});

test("a volume of Kubernetes is swapped as a whole", async () => {
  const folder = folderWith({});
  const version = (name: string) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "file"), name);
    symlinkSync(name, join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  version("v1");
  symlinkSync("..data/file", join(folder, "file"));
  const { told } = await watching(join(folder, "file"));
  version("v2");
  await told(1);
});

test("a file that is missing is seen when it comes, and others in its folder are not", async () => {
  const folder = folderWith({});
  const { changed, told } = await watching(join(folder, "late"));
  for (let time = 0; time < 50; time++) writeFileSync(join(folder, "other"), String(time));
  writeFileSync(join(folder, "late"), "here");
  await told(1);
  writeFileSync(join(folder, "late"), "changed");
  await told(2);
  expect(changed).toHaveBeenCalledTimes(2);
});

test("what changed between reading and watching is told", async () => {
  const file = join(folderWith({ file: "1" }), "file");
  const changed = vi.fn();
  const watch = watchFiles({ system: realSystem(), changed, failed: vi.fn() });
  open.push(watch);
  watch.follow(new Map([[file, "the digest of what it was"]]));
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1), patience);
});

test("a folder that is not there is told of, and breaks nothing", () => {
  const failed = vi.fn();
  const watch = watchFiles({ system: realSystem(), changed: vi.fn(), failed });
  open.push(watch);
  watch.follow(new Map([["/no/such/folder/file", ""]]));
  expect(failed).toHaveBeenCalledWith("/no/such/folder", expect.anything());
});
