// Tests what the extension shows about agents that are connected by their IDE protocol.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import path from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";

import { scenario, startEditor, until } from "./harness.mjs";

let editor, agent;

before(async () => {
  editor = await startEditor({
    files: { "cart.py": "apples = 1\npears = 2\nplums = 3\n", "stock.py": "before = 1\n", ".clineignore": "" },
    machine: { "sightline.bridges.claudeIde": true },
    settings: { "files.encoding": "windows1252", "files.autoSave": "afterDelay", "files.autoSaveDelay": 200 },
  });
});

after(async () => {
  agent?.socket.destroy();
  await editor?.stop();
});

/** Connects as Claude Code does. `text` has all that was received. */
async function connectAgent() {
  const folder = path.join(editor.home, ".claude/ide");
  const name = await until("a lock file", async () => (await readdir(folder).catch(() => [])).find((file) => file.endsWith(".lock")));
  const port = Number.parseInt(name);
  const { authToken } = JSON.parse(await readFile(path.join(folder, name), "utf8"));
  const connected = { socket: connect(port, "127.0.0.1"), text: "" };
  connected.socket.on("data", (data) => (connected.text += data));
  connected.socket.write(
    ["GET / HTTP/1.1", `Host: 127.0.0.1:${port}`, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", `x-claude-code-ide-authorization: ${authToken}`, "", ""].join("\r\n"),
  );
  await until("the handshake", () => connected.text.includes("101 Switching Protocols"));
  for (const message of [
    { id: 1, method: "initialize", params: { clientInfo: { name: "claude-code" } } },
    { method: "notifications/initialized" },
  ]) {
    send(connected, message);
  }
  return connected;
}

/** Sends a frame of less than 64 KiB, with an empty mask. */
function send({ socket }, message) {
  const text = Buffer.from(JSON.stringify(message));
  socket.write(Buffer.concat([Buffer.from([0x81, 0xfe, text.length >> 8, text.length & 255, 0, 0, 0, 0]), text]));
}

const label = () => editor.status.locator("[aria-label]").first().getAttribute("aria-label");

scenario("the status bar lists the agents, which get what is sent, and nothing while paused", () => editor, async ({ page }) => {
  await editor.open("cart.py");
  assert.doesNotMatch(await label(), /agents:/);
  agent = await connectAgent();
  await until("the agent in the status bar", async () => (await label()).includes("Connected agents: claude-code"));
  await until("the file", () => agent.text.includes("cart.py"));

  await page.locator(".view-line").nth(1).click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await until("the selection", () => agent.text.includes('"text":"pears = 2"'));
  // An agent in a terminal finds this window without an option.
  await editor.command("Terminal: Create New Terminal");
  await page.locator(".terminal-wrapper.active .xterm-screen").waitFor();
  const printed = path.join(editor.home, "port");
  await page.keyboard.type(`echo $CLAUDE_CODE_SSE_PORT > ${printed}\n`);
  const [lock] = await readdir(path.join(editor.home, ".claude/ide"));
  await until("the port", async () => `${(await readFile(printed, "utf8").catch(() => "")).trim()}.lock` === lock);
  await editor.command("View: Focus Active Editor Group");
  await editor.command("Sightline: Send Selection to Agent");
  await until("the lines", () => /"method":"at_mentioned".*?"lineEnd":1,"lineStart":1|"lineEnd":1,"lineStart":1.*?at_mentioned/.test(agent.text));

  agent.text = "";
  await editor.command("Sightline: Pause/Resume Showing the Selection");
  await until("an empty selection", () => agent.text.includes('"filePath":""'));
  await until("the pause in the status bar", async () => (await label()).includes("The selection is not shown to agents"));
  await editor.command("Sightline: Pause/Resume Showing the Selection");
  await until("the selection", () => agent.text.includes('"text":"pears = 2"'));
  agent.socket.destroy();
  await until("no agent in the status bar", async () => !(await label()).includes("agents:"));
});

scenario("a proposed change is edited and accepted, rejected, and closed by the agent", () => editor, async ({ page }) => {
  agent = await connectAgent();
  const propose = (id, name, contents) => {
    const file = path.join(editor.workspace, name);
    const parameters = { old_file_path: file, new_file_path: file, new_file_contents: contents, tab_name: `change ${id}` };
    agent.text = "";
    send(agent, { id, method: "tools/call", params: { name: "openDiff", arguments: parameters } });
  };
  const title = page.locator(".tab", { hasText: "claude-code: " });
  const shown = () => until("the diff", async () => (await title.count()) === 1);
  const gone = () => until("no diff", async () => (await title.count()) === 0);

  propose(5, "cart.py", "apples = 9\n");
  await shown();
  await page.locator(".modified .view-line").first().click();
  await page.keyboard.press("End");
  await page.keyboard.type(" # mine");
  await page.locator('.editor-actions [aria-label^="Accept Change"]').first().click();
  await until("the accepted text", () => agent.text.includes("FILE_SAVED") && agent.text.includes("apples = 9 # mine"));
  await gone();

  propose(6, "new.py", "new = 1\n");
  await shown();
  await page.locator('.editor-actions [aria-label^="Reject Change"]').first().click();
  await until("the rejection", () => agent.text.includes("DIFF_REJECTED"));
  await gone();

  propose(7, "cart.py", "apples = 0\n");
  await shown();
  await page.keyboard.press("Control+w");
  await until("the rejection", () => agent.text.includes("DIFF_REJECTED"));
  await gone();

  propose(8, "cart.py", "apples = 0\n");
  await shown();
  send(agent, { id: 9, method: "tools/call", params: { name: "close_tab", arguments: { tab_name: "change 8" } } });
  await until("the answer", () => agent.text.includes("TAB_CLOSED"));
  await gone();

  // It can be closed before its editor is open.
  propose(20, "cart.py", "apples = 0\n");
  send(agent, { id: 21, method: "tools/call", params: { name: "close_tab", arguments: { tab_name: "change 20" } } });
  await until("the answer", () => agent.text.includes("TAB_CLOSED"));
  propose(22, "cart.py", "apples = 1\n");
  await shown();
  send(agent, { id: 23, method: "tools/call", params: { name: "close_tab", arguments: { tab_name: "change 22" } } });
  await gone();

  // Edits outlive the proposal.
  propose(10, "cart.py", "apples = 0\n");
  await shown();
  await page.locator(".modified .view-line").first().click();
  await page.keyboard.press("End");
  await page.keyboard.type(" # kept");
  // The extension learns of the edit a little later.
  await page.waitForTimeout(500);
  send(agent, { id: 11, method: "tools/call", params: { name: "close_tab", arguments: { tab_name: "change 10" } } });
  await gone();
  await editor.toast("Your edits are in a new editor").waitFor();
  await page.locator(".editor-group-container .view-line", { hasText: "# kept" }).first().waitFor();
  agent.socket.destroy();
});

scenario("text is accepted byte for byte in any encoding, and only when the user saves it", () => editor, async ({ page }) => {
  agent = await connectAgent();
  const file = path.join(editor.workspace, "café.py");
  const propose = (id, contents) => {
    agent.text = "";
    const parameters = { old_file_path: file, new_file_path: file, new_file_contents: contents, tab_name: `change ${id}` };
    send(agent, { id, method: "tools/call", params: { name: "openDiff", arguments: parameters } });
  };
  const title = page.locator(".tab", { hasText: "claude-code: " });
  const gone = () => until("no diff", async () => (await title.count()) === 0);
  const saved = (text) => until(JSON.stringify(text), () => agent.text.includes("FILE_SAVED") && agent.text.includes(JSON.stringify(text).slice(1, -1)));

  const mixed = "\ufeffcafé = 1\r\ny\nz\r\n";
  propose(20, mixed);
  await title.first().waitFor();
  await page.locator('.editor-actions [aria-label^="Accept Change"]').first().click();
  await saved(mixed);
  await gone();

  propose(21, "café = 9\n");
  await title.first().waitFor();
  await page.locator(".modified .view-line").first().click();
  await page.keyboard.press("End");
  await page.keyboard.type(" # ü");
  // Longer than the delay of the automatic save.
  await page.waitForTimeout(1000);
  assert.ok(!agent.text.includes("FILE_SAVED"), agent.text);
  await page.keyboard.press("Control+s");
  await saved("café = 9 # ü\n");
  await gone();
  agent.socket.destroy();
});

scenario("a proposal says that the file has unsaved text, which is kept", () => editor, async ({ page }) => {
  await editor.command("File: Toggle Auto Save");
  agent = await connectAgent();
  agent.text = "";
  const file = path.join(editor.workspace, "cart.py");
  await editor.open("cart.py", { keep: true });
  await page.keyboard.type("mine = 1 ");
  await page.locator(".tab.active.dirty", { hasText: "cart.py" }).waitFor();

  const parameters = { old_file_path: file, new_file_path: file, new_file_contents: "apples = 4\n", tab_name: "change" };
  send(agent, { id: 30, method: "tools/call", params: { name: "openDiff", arguments: parameters } });
  await page.locator(".tab", { hasText: "without the unsaved text of the file" }).waitFor();
  await editor.toast("cart.py has unsaved text that is not in the proposed change").waitFor();
  await page.locator('.editor-actions [aria-label^="Accept Change"]').first().click();
  await until("the accepted text", () => agent.text.includes("FILE_SAVED"));
  await writeFile(file, "apples = 4\n");

  const kept = editor.toast("The unsaved text in the editor is kept");
  await kept.waitFor();
  await kept.getByRole("button", { name: "Compare with Saved" }).click();
  await page.locator(".original .view-line", { hasText: /apples.=.4/ }).first().waitFor();
  await page.locator(".modified .view-line", { hasText: /mine.=.1/ }).first().waitFor();
  assert.equal(await readFile(file, "utf8"), "apples = 4\n");
  agent.socket.destroy();
});

scenario("a restore by the command line is shown in open files", () => editor, async ({ home, page, workspace }) => {
  const file = path.join(workspace, "stock.py");
  await editor.open("stock.py", { keep: true });
  const line = (text) => page.locator(".editor-group-container.active .view-line", { hasText: text }).first().waitFor();
  await line(/before.=.1/);
  const run = async (...args) =>
    await promisify(execFile)(process.env.SIGHTLINE_SERVER, ["checkpoint", ...args, "--offline"], { cwd: workspace, env: { HOME: home, PATH: process.env.PATH } });
  await run("create");
  await writeFile(file, "after = 1\n");
  await line(/after.=.1/);
  await run("restore", "last", "stock.py", "--yes");
  await line(/before.=.1/);
});
