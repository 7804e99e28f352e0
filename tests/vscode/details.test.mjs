// Tests what the extension shows about files and checkpoints: badges, marks of
// changes, the undo button, the help, and errors.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";

import { badge, scenario, startEditor, until } from "./harness.mjs";

/** A server in Python with one tool, which prints a line. */
const TILLS = `
import json, sys
print("the till is open", file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request: continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if request["method"] == "tools/list":
        result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
`;

let editor;

before(async () => {
  editor = await startEditor({
    files: {
      "cart.py": "apples = 1\n",
      "prices.py": "apple = 2\n",
      ".env": "TOKEN=secret\n",
      ".clineignore": ".env\n",
      ".mcp.json": JSON.stringify({ mcpServers: { tills: { command: "python3", args: ["-c", TILLS, "--stdio"] } } }),
    },
  });
});

after(async () => {
  await editor?.stop();
});

const file = (name) => path.join(editor.workspace, name);

scenario("the explorer marks files that agents may not see, as soon as the rules change", () => editor, async () => {
  await until("a badge on .env", async () => (await badge(editor.explorerRow(".env"))) === "⊘");
  assert.equal(await badge(editor.explorerRow("prices.py")), "");

  await writeFile(file(".clineignore"), "prices.py\n");

  await until("a badge on prices.py", async () => (await badge(editor.explorerRow("prices.py"))) === "⊘");
  assert.equal(await badge(editor.explorerRow("cart.py")), "");
});

scenario("the help opens", () => editor, async () => {
  await editor.command("Sightline: Show Help");
  await editor.tab(/Preview readme\.md/).waitFor();
});

scenario("an expanded checkpoint follows the workspace, and undo appears after a restore", () => editor, async ({ page }) => {
  await editor.createCheckpoint("before the sale");
  await editor.row("before the sale").filter({ hasText: "just now" }).waitFor();
  const undo = page.locator(".pane-header, .composite.title").getByRole("button", { name: "Undo Last Restore…" });
  await editor.rowToggle("before the sale");
  await editor.row("No changes").waitFor();
  assert.equal(await undo.count(), 0, "there is no restore to undo");

  // No action in the editor follows.
  await writeFile(file("cart.py"), "apples = 100\n");
  await until("M on cart.py", async () => (await editor.row("cart.py").count()) > 0 && (await badge(editor.row("cart.py"))) === "M");
  await writeFile(file("sale.py"), "sale = True\n");
  await until("A on sale.py", async () => (await editor.row("sale.py").count()) > 0 && (await badge(editor.row("sale.py"))) === "A");

  await editor.rowAction("before the sale", "Restore Checkpoint");
  await editor.accept();
  await editor.toast("2 files restored").waitFor();
  await page.mouse.move(0, 0);
  await editor.row("before the sale").hover();
  await undo.first().waitFor();
});

scenario("a checkpoint is renamed and deleted", () => editor, async ({ page }) => {
  await editor.createCheckpoint("first draft");

  await editor.rowMenu("first draft", "Rename Checkpoint…");
  await editor.answer("second draft");
  await editor.row("second draft").waitFor();
  assert.equal(await editor.row("first draft").count(), 0);

  await editor.rowMenu("second draft", "Delete Checkpoint…");
  await page.locator(".monaco-dialog-box").getByRole("button", { name: "Cancel" }).click();
  assert.equal(await editor.row("second draft").count(), 1);
  await editor.rowMenu("second draft", "Delete Checkpoint…");
  await page.locator(".monaco-dialog-box").getByRole("button", { name: "Delete" }).click();
  await until("the row is gone", async () => (await editor.row("second draft").count()) === 0);
});

scenario("an MCP server of the project is trusted after a question, disabled and restarted, and its agent sees it", () => editor, async ({ page }) => {
  const agent = editor.mcp();
  try {
    assert.ok(!(await agent.tools()).includes("tills__count"));
    await editor.showCheckpoints();
    await page.locator(".pane-header").filter({ hasText: "MCP Servers of Agents" }).click();
    await editor.row("tills").filter({ hasText: "untrusted" }).waitFor();
    await editor.rowMenu("tills", "Trust MCP Server…");
    const dialog = page.locator(".monaco-dialog-box");
    await dialog.filter({ hasText: "--stdio" }).getByRole("button", { name: "Trust" }).click();
    await editor.row("tills").filter({ hasText: "idle" }).waitFor();
    assert.ok((await agent.tools()).includes("tills__count"));
    await editor.row("tills").filter({ hasText: "ready · 1 tool · 0 calls" }).waitFor();
    await editor.rowMenu("tills", "Disable MCP Server");
    await editor.row("tills").filter({ hasText: "disabled" }).waitFor();
    assert.ok(!(await agent.tools()).includes("tills__count"));
    await editor.rowMenu("tills", "Enable MCP Server");
    await editor.row("tills").filter({ hasText: "idle" }).waitFor();
    assert.ok((await agent.tools()).includes("tills__count"));
    await editor.rowMenu("tills", "Restart MCP Server");
    await editor.rowMenu("tills", "Show Log of MCP Server");
    await page.locator(".view-lines").filter({ hasText: /the.till.is.open/ }).first().waitFor();
    await page.locator(".pane-header").filter({ hasText: "MCP Servers of Agents" }).click();
  } finally {
    assert.equal(await agent.end(), 0);
  }
});

scenario("an error of the server is shown without its kind and code", () => editor, async ({ page, workspace, home }) => {
  await editor.createCheckpoint("third draft");
  // The view does not notice that another program deletes a checkpoint.
  const program = process.env.SIGHTLINE_SERVER;
  await promisify(execFile)(program, ["checkpoint", "delete", "last", "--yes", "--root", workspace, "--storage", path.join(home, "data")]);

  await editor.rowMenu("third draft", "Rename Checkpoint…");
  await editor.answer("last draft");

  const message = editor.toast("sightline: no checkpoint").locator(".notification-list-item-message");
  assert.match(await message.textContent(), /^sightline: no checkpoint matches "[0-9a-f]{40}"; list the checkpoints to see their ids$/);
});

scenario("a missing server is reported with the path in the settings", () => editor, async ({ home }) => {
  const settings = path.join(home, "user/Machine/settings.json");
  const machine = JSON.parse(await readFile(settings, "utf8"));
  await writeFile(settings, JSON.stringify({ ...machine, "sightline.server.path": "/nope/sightline" }));

  await editor.toast("Cannot find the Sightline server: /nope/sightline (setting sightline.server.path) is not a program.").waitFor();
});
