// Tests a workspace with two folders: one row for what was saved of both, and the turns of each.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { scenario, startEditor, until } from "./harness.mjs";

let editor, beta;

before(async () => {
  editor = await startEditor({
    files: { "src/cart.py": "apples = 1\n", "a.txt": "one\n" },
    others: { beta: { "a.txt": "one\n", "lib/b.txt": "one\n" } },
  });
  beta = path.join(editor.home, "beta");
  await editor.createCheckpoint("start of day");
});

after(async () => {
  await editor?.stop();
});

const rows = () => editor.page.locator(".pane-body .monaco-list-row");
const texts = async () => await rows().allTextContents();
const shop = (name) => readFile(path.join(editor.workspace, name), "utf8");
const other = (name) => readFile(path.join(beta, name), "utf8");

scenario("a checkpoint of all folders is one row, with the files of each folder", () => editor, async () => {
  assert.equal((await texts()).filter((text) => text.includes("start of day")).length, 1);
  await writeFile(path.join(editor.workspace, "a.txt"), "two\n");
  await writeFile(path.join(beta, "a.txt"), "two\n");
  await writeFile(path.join(beta, "lib/b.txt"), "two\n");
  await editor.rowToggle("start of day");
  await editor.row("b.txt").waitFor();
  const shown = (await texts()).slice(-5);
  const expected = [/^shop$/, /^a\.txt\+1 −1/, /^beta$/, /^a\.txt\+1 −1/, /^b\.txtlib · \+1 −1/];
  shown.forEach((text, at) => assert.match(text, expected[at], shown.join("\n")));
  await editor.command("Sightline: View Changed Files as Tree");
  await until("a folder for each level", async () => (await texts()).slice(-3).join() === "lib,b.txt+1 −1,a.txt+1 −1");
  await editor.command("Sightline: View Changed Files as List");
  await until("a list again", async () => (await texts()).at(-1)?.includes("lib · "));
});

scenario("a restore of all folders names the files by their folders", () => editor, async () => {
  await editor.rowAction("start of day", "Restore Checkpoint");
  await until("3 files in the preview", async () => (await editor.choices.count()) === 3);
  const listed = await editor.choices.allTextContents();
  for (const name of ["shop/a.txt", "beta/a.txt", "beta/lib/b.txt"]) {
    assert.ok(listed.some((text) => text.includes(name)), listed.join("\n"));
  }
  await editor.accept();
  await editor.toast("3 files restored from “start of day”.").waitFor();
  assert.deepEqual([await shop("a.txt"), await other("a.txt"), await other("lib/b.txt")], ["one\n", "one\n", "one\n"]);
  await editor.command("Notifications: Clear All Notifications");
  await editor.row("Before restore").waitFor();
  assert.equal((await texts()).filter((text) => text.includes("Before restore")).length, 1);
});

scenario("turns are those of their folder, also with the same name", () => editor, async () => {
  await editor.turn("add plums", { "src/cart.py": "plums = 3\n" }, "s1");
  await editor.turn("break beta", { "a.txt": "broken\n" }, "s2", beta);
  await editor.command("Sightline: Refresh Checkpoints");
  await editor.row("break beta").waitFor();
  const sessions = (await texts()).filter((text) => text.startsWith("claude-1"));
  assert.deepEqual(sessions.sort(), ["claude-1beta · 1 turn", "claude-1shop · 1 turn"]);

  await editor.rowMenu("break beta", "Revert This Turn…");
  await until("1 file in the preview", async () => (await editor.choices.count()) === 1);
  assert.match(await editor.choices.first().textContent(), /beta\/a\.txt/);
  await editor.accept();
  await editor.toast("1 file restored without “claude-1.1”.").waitFor();
  assert.deepEqual([await other("a.txt"), await shop("src/cart.py")], ["one\n", "plums = 3\n"]);
  await editor.command("Notifications: Clear All Notifications");

  await editor.rowAction("add plums", "Restore to Before This Turn");
  await until("1 file in the preview", async () => (await editor.choices.count()) === 1);
  assert.match(await editor.choices.first().textContent(), /shop\/src\/cart\.py/);
  await editor.accept();
  await editor.toast("1 file restored from “before claude-1.1”.").waitFor();
  assert.equal(await shop("src/cart.py"), "apples = 1\n");
});
