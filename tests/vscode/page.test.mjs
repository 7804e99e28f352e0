// The page of `sightline ui` as a panel of the editor.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { scenario, startEditor } from "./harness.mjs";

let editor;

before(async () => {
  editor = await startEditor({ files: { "a.txt": "one\n", ".env": "KEY=1\n" } });
});

after(() => editor?.stop());

scenario("the page shows, restores and undoes, without a port", () => editor, async () => {
  await editor.open("a.txt");
  await editor.command("Sightline: Create Checkpoint…");
  await editor.answer("the first");
  await editor.command("Sightline: Open Page");
  // The page is in a frame of the frame that VS Code makes for extensions.
  const page = editor.page.frameLocator("iframe.webview").frameLocator("iframe");
  const row = page.locator("[data-row]", { hasText: "the first" });
  await row.click();
  await writeFile(path.join(editor.workspace, "a.txt"), "two\n");
  await page.getByTestId("restore").click();
  await page.getByTestId("confirm-restore").click();
  await page.getByTestId("undo").waitFor();
  assert.equal(await readFile(path.join(editor.workspace, "a.txt"), "utf8"), "one\n");
  await page.getByTestId("undo").click();
  await page.getByText("Restore undone:").waitFor();
  assert.equal(await readFile(path.join(editor.workspace, "a.txt"), "utf8"), "two\n");

  await page.getByTestId("nav-now").click();
  await page.getByTestId("now-block").getByText("a.txt").first().waitFor();
  await page.getByTestId("nav-hidden").click();
  await page.getByTestId("access-input").fill(".env");
  await page.getByTestId("access-verdict").getByText("Denied").waitFor();
  await page.getByTestId("nav-health").click();
  await page.getByText(/ is connected, /).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  const colors = await page.locator("html").evaluate((html) => ["--bg", "--vscode-editor-background"].map((name) => getComputedStyle(html).getPropertyValue(name)));
  assert.ok(colors[0] && colors[0] === colors[1], colors.join());
});
