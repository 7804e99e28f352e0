// Hiding files from agents in the explorer.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { badge, scenario, startEditor, until } from "./harness.mjs";

let editor;

before(async () => {
  editor = await startEditor({ files: { "plan [1].md": "plan\n", "notes/a.md": "a\n", ".env": "KEY=1\n", ".clineignore": "# mine\n*.key\n" } });
});

after(() => editor?.stop());

scenario("a line is written for a file or folder, and taken out again", () => editor, async () => {
  const rules = () => readFile(path.join(editor.workspace, ".clineignore"), "utf8");
  const choose = async (name, title, expected) => {
    // The rule file, which the last choice opened, may still take the focus from the menu.
    await until(`the menu of ${name}`, async () => {
      await editor.explorerRow(name).click({ button: "right" });
      const item = editor.page.locator(".context-view").getByRole("menuitem", { name: title });
      const isChosen = await item.hover({ timeout: 3_000 }).then(() => true, () => false);
      await editor.page.keyboard.press(isChosen ? "Enter" : "Escape");
      return isChosen;
    });
    await until(`${title} ${name}`, async () => (await rules()) === expected);
  };
  const hidden = (name) => until(`the badge of ${name}`, async () => (await badge(editor.explorerRow(name))).includes("⊘"));
  await choose("plan [1].md", "Hide from Agents", "# mine\n*.key\n/plan \\[1].md\n");
  await hidden("plan [1].md");
  await choose("notes", "Hide from Agents", "# mine\n*.key\n/plan \\[1].md\n/notes/\n");
  await choose("plan [1].md", "Allow for Agents", "# mine\n*.key\n/notes/\n");
  await choose(".env", "Allow for Agents", "# mine\n*.key\n/notes/\n!/.env\n");
  await choose(".env", "Hide from Agents", "# mine\n*.key\n/notes/\n/.env\n");
});
