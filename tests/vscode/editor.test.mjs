// Tests that the block contains the editor state.

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
      "server.pem": "a private key\n",
      "data.json": '{\n  "price": 1,,\n}\n',
    },
    config: 'access.secrets = "allow"\n',
    machine: { "sightline.environment.sections": { diagnostics: { enabled: true } } },
  });
});

after(async () => {
  await editor?.stop();
});

scenario("the block contains tabs and visible files of a split, without denied files", () => editor, async () => {
  await editor.open("prices.py", { keep: true });
  await editor.open(".env", { keep: true });
  await editor.open("cart.py", { keep: true });
  // In a different order than opened, which the server cannot derive.
  await editor.command("View: Move Editor Left");
  await editor.command("View: Move Editor Left");
  await editor.page.keyboard.press("Control+\\");
  await editor.open("README.md");

  const block = await editor.environment((text) => text.includes("README.md"));

  // VS Code does not specify the order.
  assert.deepEqual(section(block, "Visible Files").sort(), ["README.md", "src/cart.py"], block);
  assert.deepEqual(section(block, "Open Tabs"), ["src/cart.py", "src/prices.py", "README.md"], block);
  assert.ok(!block.includes("secret") && !section(block, "Open Tabs").includes(".env"), block);

  await editor.command("View: Close All Editor Groups");
  const closed = await editor.environment((text) => text.includes("(No open tabs)"));
  assert.deepEqual(section(closed, "Visible Files"), ["(No visible files)"], closed);
});

scenario("defaults of VS Code do not precede the configuration file", () => editor, async () => {
  await editor.open("server.pem", { keep: true });

  const block = await editor.environment((text) => section(text, "Visible Files").includes("server.pem"));

  assert.ok(section(block, "Open Tabs").includes("server.pem"), block);
  await editor.command("View: Close All Editor Groups");
});

scenario("unsaved changes are in the block until they are saved", () => editor, async () => {
  await editor.open("prices.py");
  await editor.page.keyboard.type("pear = 3 ");
  const dirty = await editor.environment((text) => section(text, "Unsaved Files") !== undefined);
  assert.deepEqual(section(dirty, "Unsaved Files"), ["src/prices.py"], dirty);

  await editor.command("File: Save");
  await editor.environment((text) => section(text, "Unsaved Files") === undefined);
});

scenario("errors that a language server reports are in the block", () => editor, async () => {
  await editor.open("data.json");

  const block = await editor.environment((text) => section(text, "Diagnostics") !== undefined);

  assert.match(section(block, "Diagnostics")[0], /^data\.json:2:\d+: error: /, block);
});

scenario("the command and output of a terminal are in the block", () => editor, async () => {
  await editor.command("Terminal: Create New Terminal");
  await editor.page.locator(".terminal .xterm-screen").waitFor();
  // The mark next to the prompt shows that shell integration is active.
  await editor.page.locator(".terminal-command-decoration").first().waitFor();
  // VS Code may lose the output of a command that exits immediately.
  await editor.page.keyboard.type("for n in 1 2 3; do sleep 0.3; echo sold-$((41+n)); done");
  await editor.page.keyboard.press("Enter");

  const block = await editor.environment((text) => text.includes("sold-44"));

  const shown = section(block, "Inactive Terminals") ?? section(block, "Actively Running Terminals") ?? [];
  assert.ok(shown.includes("sold-42"), block);
  assert.ok(shown.some((line) => line.includes("for n in 1 2 3")), block);
  await editor.command("Terminal: Kill All Terminals");
});

scenario("the status bar shows a hidden file as soon as the rules change", () => editor, async ({ status, workspace }) => {
  await editor.open("README.md");
  await until("an open eye", () => status.locator(".codicon-eye").count());

  await writeFile(path.join(workspace, ".clineignore"), ".env\nREADME.md\n");

  await until("a closed eye", () => status.locator(".codicon-eye-closed").count());
});
