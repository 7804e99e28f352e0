// Tests the turns of agents in the view: what each changed, restore, undo, filter, deletion, and the gutter.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";

import { scenario, startEditor, until } from "./harness.mjs";

const FILES = { "src/cart.py": "apples = 1\npears = 2\n", "src/lib/prices.py": "apple = 2\n", "README.md": "# Shop\n" };

let editor;

before(async () => {
  editor = await startEditor({ files: FILES });
  await promisify(execFile)("git", ["init", "-q", editor.workspace]);
  // An agent makes three turns, and the user edits between.
  await editor.createCheckpoint("start of day");
  await editor.turn("add plums", { "src/cart.py": "apples = 1\npears = 2\nplums = 3\n" });
  await writeFile(file("mine.md"), "mine\n");
  await editor.turn("break it", { "src/cart.py": "broken\n", "src/lib/prices.py": "broken too\n", "README.md": undefined });
  await editor.turn("look around", {});
  await editor.command("Sightline: Refresh Checkpoints");
  await editor.row("look around").waitFor();
});

after(async () => {
  await editor?.stop();
});

const file = (name) => path.join(editor.workspace, name);
const content = (name) => readFile(file(name), "utf8").catch(() => undefined);
const text = async (name) => (await editor.row(name).textContent()) ?? "";
const dialog = (button) => editor.page.locator(".monaco-dialog-box").getByRole("button", { name: button });

scenario("turns are grouped by day and session, each with what it changed", () => editor, async ({ page }) => {
  await editor.row("Today").waitFor();
  assert.match(await text("claude-1"), /claude-1.*3 turns/);
  assert.match(await text("look around"), /no changes · claude-1\.3 · \d\d:\d\d/);
  assert.match(await text("break it"), /\+2 −5 · 3 files · claude-1\.2/);
  assert.match(await text("add plums"), /\+1 −0 · 1 file · claude-1\.1/);
  assert.match(await text("You, or another program"), /1 file · before \d\d:\d\d/);
  // The checkpoints of turns have no rows.
  assert.equal(await page.locator(".pane-body .monaco-list-row").filter({ hasText: "claude-1.2 “break it”" }).count(), 0);

  await editor.rowToggle("add plums");
  await editor.row("cart.py").waitFor();
  assert.match(await text("cart.py"), /src · \+1 −0/, "what the turn changed, not what came later");
  await editor.row("cart.py").click();
  await editor.tab("before claude-1.1 ↔ after claude-1.1").waitFor();
  const lines = page.locator(".editor.modified .view-line");
  await until("the state after the turn", async () => (await lines.allTextContents()).join("\n").includes("plums"));
  await editor.rowToggle("add plums");

  await editor.row("break it").hover();
  await editor.row("break it").getByRole("button", { name: "Show Changes of This Turn" }).click();
  await editor.tab("before claude-1.2 ↔ after claude-1.2 (3 files)").waitFor();
  await until("the texts", async () => (await page.locator(".multiDiffEntry:visible").count()) === 3);
  await editor.command("View: Close All Editor Groups");
});

scenario("changed files are shown as folders", () => editor, async ({ page }) => {
  await editor.rowToggle("break it");
  await editor.row("prices.py").waitFor();
  assert.match(await text("prices.py"), /src\/lib · /);
  await editor.command("Sightline: View Changed Files as Tree");
  await editor.row("src").waitFor();
  await until("a row without its folder", async () => !(await text("prices.py")).includes("src/lib"));
  await editor.command("Sightline: View Changed Files as List");
  await until("a row with its folder", async () => (await text("prices.py")).includes("src/lib"));
  await editor.rowToggle("break it");
  await until("folded files", async () => (await page.locator(".pane-body .monaco-list-row").filter({ hasText: "prices.py" }).count()) === 0);
});

scenario("rows are filtered by prompts and files", () => editor, async () => {
  await editor.command("Sightline: Filter Turns…");
  await editor.answer("lib/prices");
  await until("one turn", async () => (await editor.row("add plums").count()) === 0);
  assert.equal(await editor.row("break it").count(), 1);
  assert.equal(await editor.row("start of day").count(), 0);
  await editor.command("Sightline: Clear Filter of Turns");
  await editor.row("start of day").waitFor();
});

scenario("lines that changed since a turn began are marked in the gutter", () => editor, async ({ page }) => {
  await writeFile(file("mine.md"), "mine\n");
  await editor.open("cart.py", { keep: true });
  const marks = page.locator(".dirty-diff-glyph:visible");
  assert.equal(await marks.count(), 0);
  await editor.rowMenu("add plums", "Mark Changes Since in Gutter");
  await marks.first().waitFor();
  await editor.command("Sightline: Remove Marks of Changes from Gutter");
  await until("no marks", async () => (await marks.count()) === 0);
  await editor.command("View: Close All Editor Groups");
});

scenario("a line names its turn, and a turn is committed and reverted alone", () => editor, async ({ page, workspace }) => {
  await editor.turn("note plans", { "plans.md": "plans\n" });
  await editor.command("Sightline: Refresh Checkpoints");
  await editor.row("note plans").waitFor();
  await editor.open("plans.md", { keep: true });
  await editor.command("Sightline: Show Author of Line");
  await page.locator(".monaco-hover").filter({ hasText: /Written\sin\sclaude-1\.4,\sjust\snow/ }).first().waitFor();
  await page.keyboard.press("Escape");
  await editor.command("View: Close All Editor Groups");

  await editor.rowMenu("add plums", "Commit to a New Branch…");
  await editor.answer("plums");
  await editor.toast("Committed “after claude-1.1” to branch plums").waitFor();
  const { stdout } = await promisify(execFile)("git", ["show", "plums:src/cart.py"], { cwd: workspace });
  assert.equal(stdout, "apples = 1\npears = 2\nplums = 3\n");

  await editor.rowMenu("note plans", "Revert This Turn…");
  await until("1 file in the preview", async () => (await editor.choices.count()) === 1);
  await editor.accept();
  await editor.toast("1 file restored without “claude-1.4”.").waitFor();
  assert.equal(await content("plans.md"), undefined);
  assert.equal(await content("src/cart.py"), "broken\n");
  await editor.command("Sightline: Undo Last Restore…");
  await editor.accept();
  await until("the file again", async () => (await content("plans.md")) === "plans\n");
  await rm(file("plans.md"));
  await editor.command("Notifications: Clear All Notifications");
});

scenario("the workspace goes back to before a turn, and the undo stays offered", () => editor, async ({ page }) => {
  await editor.rowAction("break it", "Restore to Before This Turn");
  await page.locator(".quick-input-titlebar", { hasText: /Restore “before claude-1\.2”, .*, just now/ }).waitFor();
  await until("3 files in the preview", async () => (await editor.choices.count()) === 3);
  await editor.choices.filter({ hasText: "README.md" }).click();
  await editor.accept();
  await editor.toast("2 files restored from “before claude-1.2”.").waitFor();
  assert.equal(await content("src/cart.py"), "apples = 1\npears = 2\nplums = 3\n");
  assert.equal(await content("README.md"), undefined, "it was not selected");
  assert.equal(await content("mine.md"), "mine\n");

  await editor.command("Notifications: Clear All Notifications");
  await editor.row("Before restore").waitFor();
  await editor.command("Sightline: Undo Last Restore…");
  await editor.accept();
  await editor.toast("2 files restored to the state before the restore.").waitFor();
  assert.equal(await content("src/cart.py"), "broken\n");
  // There is no other restore to undo, but the undo can be undone.
  await editor.row("Before undo").first().waitFor();
  await until("the row is gone", async () => (await editor.row("Before restore").count()) === 0);
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget:visible .quick-input-box input").fill(">Sightline: Undo");
  await until("no undo in the palette", async () => (await editor.choices.filter({ hasText: "Undo Last Restore" }).count()) === 0);
  await page.keyboard.press("Escape");
});

scenario("a menu acts on its own row, and says if that is gone", () => editor, async ({ page }) => {
  await editor.createCheckpoint("gone soon");
  // Another row is selected.
  await editor.row("look around").click();
  await editor.viewIsQuiet();
  await editor.row("gone soon").click({ button: "right" });
  await page.locator(".context-view").getByRole("menuitem", { name: "Delete Checkpoint…" }).hover();
  await editor.sightline("checkpoint", "delete", "last", "--yes");
  // The view is refreshed.
  await editor.turn("note it", { "noted.md": "noted\n" });
  await editor.row("note it").waitFor();
  await page.keyboard.press("Enter");
  await editor.toast("The list has changed since the menu was opened. Nothing was done.").waitFor();
  await editor.command("Notifications: Clear All Notifications");
  await editor.viewIsQuiet();
});

scenario("several rows are deleted by one key, after one question", () => editor, async ({ page }) => {
  await editor.row("add plums").click();
  await editor.row("start of day").click({ modifiers: ["Control"] });
  await page.keyboard.press("Delete");
  await page.locator(".monaco-dialog-box").filter({ hasText: /Delete [23] checkpoints\?/ }).waitFor();
  await dialog("Delete").click();
  await until("the row is gone", async () => (await editor.row("start of day").count()) === 0);
  // A turn stays in the list when its checkpoints are gone.
  assert.equal(await editor.row("break it").count(), 1);
});

scenario("the disk usage is shown, and old checkpoints are removed", () => editor, async () => {
  await editor.command("Sightline: Show Disk Usage of Checkpoints");
  await editor.toast(/\d+ checkpoints use \d+ kB, the oldest from /).getByRole("button", { name: "Remove Old Checkpoints…" }).click();
  await editor.pickRow("Keep the newest 200 of each folder");
  await editor.toast("There are no checkpoints to remove.").waitFor();
});

scenario("a turn that was interrupted is not shown as one without changes", () => editor, async () => {
  await editor.hook("UserPromptSubmit", { prompt: "stop here" }, undefined, undefined, true);
  await editor.hook("PreToolUse", { tool_name: "Write", tool_input: { file_path: "mine.md" } });
  await editor.command("Sightline: Refresh Checkpoints");
  await editor.row("stop here").waitFor();
  assert.match(await text("stop here"), /its end was not saved · claude-1\.\d+/);
});
