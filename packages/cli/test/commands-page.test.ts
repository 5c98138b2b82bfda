import { expect, test } from "vitest";
import { commandsPage } from "../src/commands-page.js";
import { osbertProgram } from "../src/main.js";

test("the reference page of the commands is what the program says of itself (write it anew with vitest -u)", async () => {
  await expect(commandsPage(osbertProgram())).toMatchFileSnapshot("../../../docs/reference/commands.md");
});

test("every command has a description, and an explanation of each argument and option", () => {
  for (const command of osbertProgram().commands) {
    expect(command.description(), command.name()).not.toBe("");
    for (const item of [...command.registeredArguments, ...command.options])
      expect(item.description, `${command.name()} ${item.name()}`).not.toBe("");
  }
});
