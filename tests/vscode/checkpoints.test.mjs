// Tests the checkpoint view: create, compare, restore with preview, undo.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach } from "node:test";

import { scenario, startEditor, until } from "./harness.mjs";

/** Files of the workspace at the checkpoint. */
const FILES = {
  "src/cart.py": "apples = 1\npears = 2\n",
  "src/prices.py": "apple = 2\n",
  "README.md": "# Shop\n",
};

let editor;

beforeEach(async () => {
  editor = await startEditor({ files: FILES });
});

afterEach(async () => {
  await editor?.stop();
});

const file = (name) => path.join(editor.workspace, name);
const content = (name) => readFile(file(name), "utf8").catch(() => undefined);
/** Returns a line as rendered by the editor. */
const shown = (line) => line.replaceAll(" ", "\u00a0");

/** Modifies, adds and deletes a file as an agent would, and waits for the view to show it. */
async function letAgentWork(name) {
  await writeFile(file("src/cart.py"), "apples = 100\npears = 2\n");
  await writeFile(file("src/sale.py"), "sale = True\n");
  await rm(file("README.md"));
  await editor.rowToggle(name);
  for (const changed of ["cart.py", "sale.py", "README.md"]) {
    await editor.row(changed).waitFor();
  }
}

/** Opens a restore preview and waits for `count` files in it. */
async function preview(name, count) {
  let listed = [];
  await until(
    () => `${count} files in the preview, listed are ${JSON.stringify(listed)}`,
    async () => {
      if (listed.length === 0) {
        await editor.rowAction(name, "Restore Checkpoint");
      }
      listed = await editor.choices.allTextContents();
      // At the moment of a refresh, VS Code does not say which row was clicked, and all checkpoints are offered.
      if (listed.some((text) => text.startsWith(name))) {
        await editor.dismiss();
        listed = [];
      }
      return listed.length === count;
    },
  );
}

scenario("a checkpoint is created, compared and restored, and the restore is undone", () => editor, async ({ page }) => {
  await editor.open("cart.py", { keep: true });
  await editor.createCheckpoint("before the sale");
  await letAgentWork("before the sale");
  assert.equal(await editor.row("prices.py").count(), 0, "what did not change is not listed");

  // A diff editor shows both texts.
  assert.match((await editor.row("cart.py").textContent()) ?? "", /cart\.py.*src · \+1 −1/, "the name comes before the folder");
  await editor.row("cart.py").click();
  await editor.tab("before the sale").waitFor();
  const original = page.locator(".editor.original .view-line").first();
  const modified = page.locator(".editor.modified .view-line").first();
  await until("the old text", async () => (await original.textContent()) === shown("apples = 1"));
  await until("the new text", async () => (await modified.textContent()) === shown("apples = 100"));

  // One editor shows all files, none of them as renamed.
  await editor.row("before the sale").hover();
  await editor.row("before the sale").getByRole("button", { name: "Compare with Workspace" }).click();
  await editor.tab("before the sale ↔ now (3 files)").waitFor();
  const entries = page.locator(".multiDiffEntry:visible");
  await until("the files", async () => (await entries.count()) === 3);
  const statuses = async () => (await entries.locator(".status:visible").allTextContents()).join("");
  assert.ok(!(await statuses()).includes("R"), await statuses());

  // Dismissing the preview changes nothing.
  await preview("before the sale", 3);
  await editor.dismiss();
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n");

  await preview("before the sale", 3);
  await editor.accept();
  await editor.toast("3 files restored from “before the sale”.").waitFor();
  assert.equal(await content("src/cart.py"), FILES["src/cart.py"]);
  assert.equal(await content("README.md"), FILES["README.md"]);
  assert.equal(await content("src/sale.py"), undefined);

  // The undo has a preview. A file that changed after the restore is not selected, and one that the restore did not
  // change is not listed.
  await writeFile(file("src/cart.py"), "apples = 7\n");
  await writeFile(file("src/later.py"), "later = True\n");
  await editor.toast("3 files restored").getByRole("button", { name: "Undo" }).click();
  await until("3 files in the preview", async () => (await editor.choices.count()) === 3);
  const later = editor.choices.first();
  assert.match((await later.textContent()) ?? "", /cart\.py.*changed after the restore/);
  assert.equal(await later.getByRole("checkbox").isChecked(), false, "later work is not selected");
  await page.locator(".quick-input-list-separator", { hasText: "1 file changed after the restore" }).waitFor();
  assert.equal(await content("src/cart.py"), "apples = 7\n", "nothing is undone unasked");
  await later.click();
  await editor.accept();
  await editor.toast("3 files restored to the state before the restore.").waitFor();
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n");
  assert.equal(await content("README.md"), undefined);
  assert.equal(await content("src/sale.py"), "sale = True\n");
  assert.equal(await content("src/later.py"), "later = True\n");
});

scenario("a single file is restored", () => editor, async () => {
  await editor.createCheckpoint("before the sale");
  await letAgentWork("before the sale");

  await editor.rowAction("sale.py", "Restore This File");
  assert.equal(await editor.choices.count(), 1);
  await editor.accept();

  await editor.toast("1 file restored from “before the sale”.").waitFor();
  assert.equal(await content("src/sale.py"), undefined);
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n", "the others stay");
});

scenario("unsaved text is kept unless it is selected", () => editor, async ({ page }) => {
  // A file that is open without changes and deleted on disk is restored.
  await editor.open("README.md", { keep: true });
  await editor.open("cart.py", { keep: true });
  await editor.createCheckpoint("before the sale");
  await letAgentWork("before the sale");
  const line = page.locator(".editor-group-container.active .view-line").first();
  await until("the agent's text", async () => (await line.textContent()) === shown("apples = 100"));
  await editor.open("cart.py");
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("plums = 4 ");
  await page.locator(".tab.dirty").first().waitFor();

  await preview("before the sale", 3);
  const conflict = editor.choices.filter({ hasText: "kept unless selected" });
  assert.equal(await conflict.count(), 1);
  assert.match(await conflict.textContent(), /src\/cart\.py/);
  await editor.accept();
  await editor.toast(/2 files restored from “before the sale”; kept: src\/cart\.py \(/).waitFor();
  assert.equal(await content("README.md"), FILES["README.md"]);
  assert.equal(await content("src/sale.py"), undefined);
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n");
  assert.notEqual(await page.locator(".tab.dirty").count(), 0, "what was typed is still there");

  await preview("before the sale", 1);
  await conflict.click();
  await editor.accept();
  await editor.toast("1 file restored from “before the sale”.").waitFor();
  assert.equal(await content("src/cart.py"), FILES["src/cart.py"]);
  await until("the editor to show it", async () => (await line.textContent()) === shown("apples = 1"));
});
