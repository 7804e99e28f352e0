// Test harness: VS Code with the extension, controlled through a browser.
//
// Each instance has its own home, data directory and workspace. Tests wait for
// text on the screen or files on disk, never for a fixed time.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { chromium } from "playwright-core";

/** Timeout for anything to appear, in milliseconds. Generous for slow, busy machines. */
const PATIENCE = 90_000;

/** Timeout of a click on a row before the row is located again, in milliseconds. */
const CLICK = 3_000;

/** Time without changes after which a view is no longer refreshed, in milliseconds. */
const QUIET = 500;

/** Timeout for a list to appear before the click is repeated, in milliseconds. */
const EFFECT = 10_000;

const SETTINGS = {
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.editor.enablePreview": true,
  "telemetry.telemetryLevel": "off",
  "chat.disableAIFeatures": true,
  "window.restoreWindows": "none",
  "files.autoSave": "off",
  "files.hotExit": "off",
  "git.enabled": false,
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "update.mode": "none",
};

/** Environment variables of the tests. */
function given(name) {
  const value = process.env[name];
  assert.ok(value, `${name} must be set; tests/vscode/run does that`);
  return value;
}

/**
 * Starts a VS Code with the workspace `files` (name to text, or a folder to
 * copy) and opens it in a browser. `others` are files of further workspace folders, by their names. `machine` are settings that a folder cannot change,
 * `config` is the configuration file of the server. `icon` is what the status bar shows at the start.
 */
export async function startEditor({ files, others = {}, settings = {}, machine = {}, config = "", icon = "eye", viewport = { width: 1280, height: 800 } }) {
  const tools = given("SIGHTLINE_VSCODE_TOOLS");
  const home = await mkdtemp(path.join(tmpdir(), "sightline-vscode-"));
  const workspace = path.join(home, "shop");
  await fill(workspace, files);
  for (const [name, inside] of Object.entries(others)) {
    await fill(path.join(home, name), inside);
  }
  const folders = ["shop", ...Object.keys(others)];
  const file = path.join(home, "all.code-workspace");
  await writeFile(file, JSON.stringify({ folders: folders.map((name) => ({ path: name })) }));
  await fill(path.join(home, ".config/sightline"), { "config.toml": config });
  await fill(path.join(home, "user"), {
    "User/settings.json": JSON.stringify({ ...SETTINGS, ...settings }),
    // Machine settings of a remote editor.
    "Machine/settings.json": JSON.stringify({
      "sightline.server.path": given("SIGHTLINE_SERVER"),
      "sightline.storage.path": path.join(home, "data"),
      ...machine,
    }),
    "config.yaml": "",
  });
  const entry = path.join(tools, "node_modules/code-server/out/node/entry.js");
  const common = [entry, "--config", `${home}/user/config.yaml`, "--user-data-dir", `${home}/user`, "--extensions-dir", `${home}/extensions`];
  const temporary = path.join(home, "tmp");
  await mkdir(temporary);
  // Pass only the variables that programs need: no settings, no git.
  const env = { PATH: process.env.PATH, HOME: home, TMPDIR: temporary, LANG: "C.UTF-8", TZ: "UTC", SHELL: "/bin/bash" };

  const installing = spawn(process.execPath, [...common, "--install-extension", given("SIGHTLINE_VSIX")], { env, stdio: ["ignore", "pipe", "pipe"] });
  const installed = text(installing.stdout, installing.stderr);
  const [code] = await once(installing, "exit");
  assert.equal(code, 0, `the extension could not be installed: ${await installed}`);

  // A separate process group, so that all children can be stopped.
  const server = spawn(
    process.execPath,
    [...common, "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-workspace-trust"],
    { env, stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  let browser;
  const stop = async () => {
    await browser?.close();
    await end(server);
    await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  };
  try {
    const address = await listening(server, text(server.stderr));
    browser = await chromium.launch({
      executablePath: path.join(tools, "browser/chromium"),
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
      timeout: PATIENCE,
      env,
    });
    const context = await browser.newContext({ viewport, permissions: ["clipboard-read", "clipboard-write"] });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const opened = folders.length === 1 ? `folder=${encodeURIComponent(workspace)}` : `workspace=${encodeURIComponent(file)}`;
    await page.goto(`${address}/?${opened}`);
    await page.locator(".explorer-folders-view .monaco-list-row").first().waitFor();
    const editor = new Editor(page, workspace, home, stop);
    // An open or closed eye shows that the server is running.
    await editor.status.locator(`[class*='codicon-${icon}']`).waitFor();
    return editor;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Stops a process and all its children. */
async function end(leader) {
  if (leader.exitCode !== null || leader.signalCode !== null) {
    return;
  }
  const ended = once(leader, "exit");
  process.kill(-leader.pid, "SIGTERM");
  const patience = setTimeout(() => process.kill(-leader.pid, "SIGKILL"), PATIENCE);
  await ended;
  clearTimeout(patience);
}

/** Writes `files` below `folder`. */
async function fill(folder, files) {
  if (typeof files === "string") {
    await cp(files, folder, { recursive: true });
    return;
  }
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
}

async function text(...streams) {
  const parts = streams.map(async (stream) => (await stream.setEncoding("utf8").toArray()).join(""));
  return (await Promise.all(parts)).join("");
}

/** Returns the address on which code-server listens. */
async function listening(server, errors) {
  for await (const line of createInterface({ input: server.stdout })) {
    const address = /listening on (http:\S+?)\/?$/.exec(line)?.[1];
    if (address) {
      server.stdout.resume();
      return address;
    }
  }
  throw new Error(`code-server exited before it listened: ${await errors}`);
}

/** Defines a test that saves a screenshot and prints the editor messages if it fails. */
export function scenario(name, editor, run) {
  test(name, async () => {
    try {
      await run(editor());
    } catch (error) {
      const folder = path.join(given("SIGHTLINE_VSCODE_TOOLS"), "failures");
      const picture = path.join(folder, `${name.replaceAll(/[^a-z]+/g, "-")}.png`);
      await mkdir(folder, { recursive: true });
      await editor()?.page.screenshot({ path: picture }).catch(() => undefined);
      const said = await editor()?.messages().catch(() => []);
      console.error(`${name}: screenshot: ${picture}; messages: ${JSON.stringify(said)}`);
      throw error;
    }
  });
}

/** User actions in the editor, and what it shows. */
class Editor {
  constructor(page, workspace, home, stop) {
    this.page = page;
    this.workspace = workspace;
    this.home = home;
    this.stop = stop;
    /** The item in the status bar. */
    this.status = page.locator("[id$='sightline.status']").first();
    /** The list that is offered to pick from, and its rows. */
    this.offered = page.locator(".quick-input-widget:visible .quick-input-list");
    this.choices = this.offered.locator(".monaco-list-row");
  }

  /** Opens a file by Ctrl+P; with `keep` as a tab that stays. */
  async open(name, { keep = false } = {}) {
    // A search that began before the file was there does not find it later.
    await until("the file is offered", async () => {
      await this.page.keyboard.press("Control+P");
      const offered = await this.pickRow(name, name, 10_000).then(() => true, () => false);
      if (!offered) {
        await this.page.keyboard.press("Escape");
      }
      return offered;
    });
    await this.tab(name).waitFor();
    await this.page.locator(".editor-group-container.active .monaco-editor").first().waitFor();
    if (keep) {
      await this.command("View: Keep Editor");
      await this.page.locator(`.tab:not(:has(.monaco-icon-label.italic)):has-text("${name}")`).first().waitFor();
    }
  }

  /** Runs a command by its name in the palette. */
  async command(name) {
    await this.page.keyboard.press("F1");
    await this.pickRow(name, `>${name}`);
  }

  /** Types into the open quick input and accepts the row that has all of `name`. */
  async pickRow(name, typed = name, timeout = undefined) {
    const input = this.page.locator(".quick-input-widget:visible .quick-input-box input");
    await input.waitFor();
    await input.fill(typed);
    const row = this.choices.filter({ hasText: name }).first();
    await row.click({ timeout });
    await row.waitFor({ state: "hidden" });
  }

  /** Accepts what is ticked in the list that is offered. */
  async accept() {
    await this.page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
    await this.offered.waitFor({ state: "hidden" });
  }

  /** Dismisses the list that is offered. */
  async dismiss() {
    await this.page.locator(".quick-input-widget:visible .quick-input-box input").press("Escape");
    await this.offered.waitFor({ state: "hidden" });
  }

  /** Answers an input box. */
  async answer(value) {
    const input = this.page.locator(".quick-input-widget:visible .quick-input-box input");
    await input.waitFor();
    await input.fill(value);
    await this.page.keyboard.press("Enter");
  }

  tab(name) {
    return this.page.locator(".tabs-container .tab").filter({ hasText: name }).first();
  }

  /** A row of the explorer. */
  explorerRow(name) {
    return this.page.locator(".explorer-folders-view .monaco-list-row").filter({ has: this.page.getByText(name, { exact: true }) });
  }

  /** A row of the view of checkpoints. */
  row(name) {
    return this.page.locator(".pane-body .monaco-list-row").filter({ hasText: name }).first();
  }

  /** Creates a checkpoint by the button of the view. */
  async createCheckpoint(name) {
    await this.showCheckpoints();
    // Buttons move when the button for an undo appears or disappears.
    await this.viewIsQuiet();
    await this.page.getByRole("button", { name: "Create Checkpoint…" }).first().click();
    await this.answer(name);
    await this.row(name).waitFor();
  }

  /** A button that appears when the pointer is over a row, and leads to a list. */
  async rowAction(name, title) {
    const timeout = CLICK;
    await this.viewIsQuiet();
    await until(`a list after “${title}” of ${name}`, async () => {
      const row = this.row(name);
      try {
        await row.hover({ timeout });
        await row.getByRole("button", { name: title }).first().click({ timeout });
        await this.choices.first().waitFor({ timeout: EFFECT });
        return true;
      } catch {
        return false;
      }
    });
  }

  /**
   * Waits until the rows of the side bar no longer change: during a refresh rows move, and VS Code does not say which
   * one was clicked.
   */
  async viewIsQuiet() {
    await this.page.locator(".part.sidebar").evaluate(
      (view, quiet) =>
        new Promise((resolve) => {
          const done = () => {
            observer.disconnect();
            resolve();
          };
          let timer = setTimeout(done, quiet);
          const observer = new MutationObserver(() => {
            clearTimeout(timer);
            timer = setTimeout(done, quiet);
          });
          observer.observe(view, { childList: true, subtree: true, characterData: true });
        }),
      QUIET,
    );
  }

  /** Selects an entry of the context menu of a row. */
  async rowMenu(name, title) {
    await this.viewIsQuiet();
    await this.row(name).click({ button: "right" });
    // A menu that has just opened ignores clicks.
    await this.page.locator(".context-view").getByRole("menuitem", { name: title }).hover();
    await this.page.keyboard.press("Enter");
  }

  /** Unfolds or folds a row. */
  async rowToggle(name) {
    await this.row(name).locator(".monaco-tl-twistie").click();
  }

  /** Opens the view of checkpoints. */
  async showCheckpoints() {
    const title = this.page.locator(".pane-header, .composite.title").filter({ hasText: /Turns/i }).first();
    // A click on the tab of a visible view hides it.
    if (!(await title.isVisible())) {
      await this.page.locator(".activitybar").getByRole("tab", { name: "Sightline" }).click();
      await title.waitFor();
    }
  }

  /** A notification with this text. */
  toast(textOrPattern) {
    return this.page.locator(".notifications-toasts .notification-list-item").filter({ hasText: textOrPattern }).first();
  }

  /** What the messages say that are on the screen. */
  async messages() {
    return await this.page.locator(".notifications-toasts .notification-list-item-message").allTextContents();
  }

  /** The block, by the command that copies it, once it satisfies `wanted`. */
  async environment(wanted) {
    let last = "";
    return await until(
      () => `the block as wanted; the last one was:\n${last}`,
      async () => {
        const mark = `not copied yet ${Math.random()}`;
        await this.page.evaluate((text) => navigator.clipboard.writeText(text), mark);
        await this.command("Sightline: Copy Environment Details");
        last = await until("the clipboard to change", async () => {
          const text = await this.clipboard();
          return text !== mark && text;
        });
        return wanted(last) && last;
      },
    );
  }

  /** Runs a command of the user in the workspace. */
  async sightline(...words) {
    const env = { HOME: this.home, PATH: process.env.PATH };
    const arguments_ = [...words, "--storage", path.join(this.home, "data")];
    const command = spawn(given("SIGHTLINE_SERVER"), arguments_, { cwd: this.workspace, env, stdio: ["ignore", "ignore", "inherit"] });
    const [code] = await once(command, "exit");
    assert.equal(code, 0);
  }

  /** Runs the hook of Claude Code for an event of a session, as `agents install` connects it; with `brief`, by an
   * agent that ends at once. */
  async hook(event, fields, session = "s1", folder = this.workspace, brief = false) {
    const arguments_ = ["hook", event, "--agent", "claude", "--checkpoints", "--storage", path.join(this.home, "data")];
    const env = { HOME: this.home, PATH: process.env.PATH };
    const agent = ["-e", "require('child_process').execFileSync(process.argv[1], process.argv.slice(2), { stdio: 'inherit' })", "--"];
    const command = [...(brief ? [process.execPath, ...agent] : []), given("SIGHTLINE_SERVER"), ...arguments_];
    const hook = spawn(command[0], command.slice(1), { cwd: folder, env, stdio: ["pipe", "ignore", "inherit"] });
    hook.stdin.end(JSON.stringify({ session_id: session, cwd: folder, ...fields }));
    const [code] = await once(hook, "exit");
    assert.equal(code, 0);
  }

  /** Plays a turn of an agent that writes files: name to text, or `undefined` to delete. */
  async turn(prompt, files, session, folder = this.workspace) {
    await this.hook("UserPromptSubmit", { prompt }, session, folder);
    for (const [name, content] of Object.entries(files)) {
      await this.hook("PreToolUse", { tool_name: "Write", tool_input: { file_path: name } }, session, folder);
      const file = path.join(folder, name);
      await (content === undefined ? rm(file) : writeFile(file, content));
    }
    await this.hook("Stop", {}, session, folder);
  }

  /** Starts `sightline mcp` as an agent does. */
  mcp() {
    const env = { HOME: this.home, PATH: process.env.PATH };
    const arguments_ = ["mcp", "--storage", path.join(this.home, "data")];
    const agent = spawn(given("SIGHTLINE_SERVER"), arguments_, { cwd: this.workspace, env, stdio: ["pipe", "pipe", "inherit"] });
    const waiting = new Map();
    createInterface({ input: agent.stdout }).on("line", (line) => {
      const { id, result } = JSON.parse(line);
      waiting.get(id)?.(result);
    });
    let last = 0;
    const ask = (method, params) =>
      new Promise((resolve) => {
        waiting.set(++last, resolve);
        agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
      });
    const opened = ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "agent", version: "1" } });
    return {
      tools: async () => {
        await opened;
        return (await ask("tools/list", {})).tools.map(({ name }) => name);
      },
      end: async () => {
        agent.stdin.end();
        return (await once(agent, "exit"))[0];
      },
    };
  }

  async clipboard() {
    return await this.page.evaluate(() => navigator.clipboard.readText());
  }
}

/** Returns the badge of a row, which VS Code draws with CSS. */
export async function badge(row) {
  return await row.evaluate((element) =>
    [element, ...element.querySelectorAll("*")]
      .map((one) => getComputedStyle(one, "::after").content)
      .filter((content) => content.startsWith('"'))
      .map((content) => JSON.parse(content))
      .join(""),
  );
}

/** Returns the lines below a heading of a block. */
export function section(block, heading) {
  const lines = block.split("\n");
  const start = lines.findIndex((line) => line === `# ${heading}` || line.endsWith(heading));
  if (start < 0) {
    return undefined;
  }
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => line.startsWith("# ") || line === "</environment_details>");
  return rest.slice(0, end).filter((line) => line !== "");
}

/** Waits until `check` returns a truthy value, and returns it. */
export async function until(what, check) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const value = await check();
    if (value) {
      return value;
    }
    assert.ok(Date.now() < end, `waited in vain for ${typeof what === "string" ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
