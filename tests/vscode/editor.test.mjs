// What the editor shows reaches the block.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { scenario, section, startEditor, until } from "./harness.mjs";

let editor;

before(async () => {
  editor = await startEditor({
    files: {
      "src/cart.py": Array.from({ length: 200 }, (_, line) => `line_${line} = ${line}\n`).join(""),
      "src/prices.py": "apple = 2\n",
      "README.md": "# Shop\n",
      ".env": "TOKEN=secret\n",
      ".clineignore": ".env\n",
    },
  });
});

after(async () => {
  await editor?.stop();
});

scenario("the block has the tabs and the visible files of a split, and hides what is denied", () => editor, async () => {
  await editor.open("prices.py", { keep: true });
  await editor.open(".env", { keep: true });
  await editor.open("cart.py", { keep: true });
  // In another order than they were opened in, which the server would know anyway.
  await editor.command("View: Move Editor Left");
  await editor.command("View: Move Editor Left");
  await editor.page.keyboard.press("Control+\\");
  await editor.open("README.md");

  const block = await editor.environment((text) => text.includes("README.md"));

  // The order is that of the editor, which is not specified.
  assert.deepEqual(section(block, "Visible Files").sort(), ["README.md", "src/cart.py"], block);
  assert.deepEqual(section(block, "Open Tabs"), ["src/cart.py", "src/prices.py", "README.md"], block);
  assert.ok(!block.includes("secret") && !section(block, "Open Tabs").includes(".env"), block);

  await editor.command("View: Close All Editor Groups");
  const closed = await editor.environment((text) => text.includes("(No open tabs)"));
  assert.deepEqual(section(closed, "Visible Files"), ["(No visible files)"], closed);
});

scenario("what is typed and not saved is in the block until it is saved", () => editor, async () => {
  await editor.open("prices.py");
  await editor.page.keyboard.type("pear = 3 ");
  const dirty = await editor.environment((text) => section(text, "Unsaved Files") !== undefined);
  assert.deepEqual(section(dirty, "Unsaved Files"), ["src/prices.py"], dirty);

  await editor.command("File: Save");
  await editor.environment((text) => section(text, "Unsaved Files") === undefined);
});

scenario("a terminal's command and output are in the block", () => editor, async () => {
  await editor.command("Terminal: Create New Terminal");
  await editor.page.locator(".terminal .xterm-screen").waitFor();
  // Shell integration shows itself by the mark beside the prompt.
  await editor.page.locator(".terminal-command-decoration").first().waitFor();
  // One that ends at once may be over before VS Code hands its output out.
  await editor.page.keyboard.type("for n in 1 2 3; do sleep 0.3; echo sold-$((41+n)); done");
  await editor.page.keyboard.press("Enter");

  const block = await editor.environment((text) => text.includes("sold-44"));

  const shown = section(block, "Inactive Terminals") ?? section(block, "Actively Running Terminals") ?? [];
  assert.ok(shown.includes("sold-42"), block);
  assert.ok(shown.some((line) => line.includes("for n in 1 2 3")), block);
  await editor.command("Terminal: Kill All Terminals");
});

scenario("the status bar tells that a file is hidden from agents, as soon as the rules say so", () => editor, async ({ status, workspace }) => {
  await editor.open("README.md");
  await until("an open eye", () => status.locator(".codicon-eye").count());

  await writeFile(path.join(workspace, ".clineignore"), ".env\nREADME.md\n");

  await until("a closed eye", () => status.locator(".codicon-eye-closed").count());
});
