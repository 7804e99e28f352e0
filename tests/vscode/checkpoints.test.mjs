// Checkpoints by the view: create, compare, restore with preview, undo.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { scenario, startEditor, until } from "./harness.mjs";

let editor;

before(async () => {
  editor = await startEditor({
    files: {
      "src/cart.py": "apples = 1\npears = 2\n",
      "src/prices.py": "apple = 2\n",
      "README.md": "# Shop\n",
    },
  });
});

after(async () => {
  await editor?.stop();
});

const file = (name) => path.join(editor.workspace, name);
const content = (name) => readFile(file(name), "utf8").catch(() => undefined);

scenario("a checkpoint is created, compared with, restored and the restore undone", () => editor, async ({ page }) => {
  await editor.open("cart.py", { keep: true });
  await editor.showCheckpoints();

  await page.getByRole("button", { name: "Create Checkpoint" }).first().click();
  await editor.answer("before the sale");
  await editor.row("before the sale").waitFor();

  // What an agent does: one file changed, one new, one gone.
  await writeFile(file("src/cart.py"), "apples = 100\npears = 2\n");
  await writeFile(file("src/sale.py"), "sale = True\n");
  await rm(file("README.md"));
  await editor.rowToggle("before the sale");
  for (const name of ["src/cart.py", "src/sale.py", "README.md"]) {
    await editor.row(name).waitFor();
  }
  assert.equal(await editor.row("src/prices.py").count(), 0, "what did not change is not listed");

  // Compared in a diff editor that has both texts.
  await editor.row("src/cart.py").click();
  await editor.tab("before the sale").waitFor();
  const original = page.locator(".editor.original .view-line").first();
  const modified = page.locator(".editor.modified .view-line").first();
  await until("the old text", async () => (await original.textContent()) === "apples = 1".replaceAll(" ", "\u00a0"));
  await until("the new text", async () => (await modified.textContent()) === "apples = 100".replaceAll(" ", "\u00a0"));

  // Nothing happens when the preview is dismissed.
  await editor.rowAction("before the sale", "Restore Checkpoint");
  const previewed = page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row");
  await previewed.first().waitFor();
  assert.equal(await previewed.count(), 3);
  await page.keyboard.press("Escape");
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n");

  await editor.rowAction("before the sale", "Restore Checkpoint");
  await previewed.first().waitFor();
  await page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
  await editor.toast(/3 files restored from/).waitFor();
  assert.equal(await content("src/cart.py"), "apples = 1\npears = 2\n");
  assert.equal(await content("README.md"), "# Shop\n");
  assert.equal(await content("src/sale.py"), undefined);

  await editor.toast(/3 files restored from/).getByRole("button", { name: "Undo" }).click();
  await editor.toast(/3 files put back/).waitFor();
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n");
  assert.equal(await content("README.md"), undefined);
  assert.equal(await content("src/sale.py"), "sale = True\n");
});

scenario("one file is restored alone, and unsaved text is left alone unless it is picked", () => editor, async ({ page }) => {
  await editor.rowAction("src/sale.py", "Restore This File");
  const previewed = page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row");
  await previewed.first().waitFor();
  assert.equal(await previewed.count(), 1);
  await page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
  await until("the file to go", async () => (await content("src/sale.py")) === undefined);
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n", "the others stay");

  await editor.open("cart.py");
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("plums = 4 ");
  await page.locator(".tab.dirty").first().waitFor();
  await editor.rowAction("before the sale", "Restore Checkpoint");
  const conflict = previewed.filter({ hasText: "left alone unless picked" }).filter({ hasText: "src/cart.py" });
  await conflict.waitFor();
  await page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
  await until("the other file to be as it was", async () => (await content("README.md")) === "# Shop\n");
  assert.equal(await content("src/cart.py"), "apples = 100\npears = 2\n");
  assert.notEqual(await page.locator(".tab.dirty").count(), 0, "what was typed is still there");

  await editor.rowAction("before the sale", "Restore Checkpoint");
  await conflict.click();
  await page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
  await until("the file to be as it was", async () => (await content("src/cart.py")) === "apples = 1\npears = 2\n");
  const line = page.locator(".editor-group-container.active .view-line").first();
  await until("the editor to show it", async () => (await line.textContent()) === "apples = 1".replaceAll(" ", "\u00a0"));
});
