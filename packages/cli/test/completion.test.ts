import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { completionScript } from "../src/completion-command.js";
import { osbertProgram } from "../src/main.js";

const script = completionScript(osbertProgram(), "bash");

/** What the platform lists, as the program prints it. A name that no platform gives is there, too: one may lie. */
const listed = "NAME  SERVICE\nmy-db  postgres\nmy.other_1  postgres\n$(echo\tnobody>&2)  x\n";

/** What bash itself offers after these words; the last one is not whole yet. */
function offered(...words: readonly string[]): readonly string[] {
  const line = `osbert() { printf '%s' '${listed}'; }\n${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _osbert; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync("bash", ["-c", line, "bash", ...words], { encoding: "utf8" });
  expect(stderr).toBe("");
  return stdout.split("\n").filter((word) => word !== "");
}

test("bash completes commands, those of a group, and options", () => {
  expect(offered("osbert", "misb")).toEqual(["misbehave"]);
  expect(offered("osbert", "platform", "cre")).toEqual(["create", "credentials"]);
  expect(offered("osbert", "platform", "target", "")).toEqual(expect.arrayContaining(["add", "use", "list", "remove"]));
  expect(offered("osbert", "platform", "delete", "my-db", "--ca")).toEqual(["--cascade", "--ca"]);
  expect(offered("osbert", "admin", "--nothing")).toEqual([]);
});

test("bash completes the names of a platform's instances, and obeys none of them", () => {
  const show = offered("osbert", "platform", "show", "");
  expect(show.filter((word) => !word.startsWith("--"))).toEqual(["my-db", "my.other_1"]);
  expect(offered("osbert", "platform", "show", "my.")).toEqual(["my.other_1"]);
  expect(offered("osbert", "platform", "show", "my-db", "my")).toEqual([]);
  expect(offered("osbert", "platform", "register", "my")).toEqual([]);
});

test("no name of a command or an option means anything to a shell", () => {
  const fish = completionScript(osbertProgram(), "fish");
  for (const line of fish.trim().split("\n"))
    expect(line.replace(/ -a '\(osbert platform list [^']+\)'$/, " -a names")).toMatch(
      /^complete -c osbert(?: -f)?(?: -n '[a-z_; -]+')? -[al] [a-z0-9-]+$/,
    );
  expect(completionScript(osbertProgram(), "zsh")).toContain("bashcompinit");
});
