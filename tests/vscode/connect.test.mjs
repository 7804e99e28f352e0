// Tests that agents are connected from a list, after the changes are shown.

import assert from "node:assert/strict";
import { access, mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { scenario, startEditor, until } from "./harness.mjs";

let editor;

before(async () => {
  editor = await startEditor({ files: { "README.md": "# Shop\n" } });
});

after(async () => {
  await editor?.stop();
});

const exists = (file) => access(file).then(() => true, () => false);

scenario("without an agent, nothing is offered", () => editor, async () => {
  await editor.command("Sightline: Connect Agents…");

  await editor.toast("No coding agent was found").waitFor();
  assert.equal(await editor.page.locator(".terminal").count(), 0);
});

scenario("the agents that are ticked are connected, once the changes are confirmed", () => editor, async ({ choices, home, page }) => {
  await mkdir(path.join(home, ".claude"));
  await mkdir(path.join(home, ".codex"));
  const settings = path.join(home, ".claude/settings.json");
  const connect = async () => {
    await editor.command("Sightline: Connect Agents…");
    await choices.filter({ hasText: "~/.claude/settings.json" }).waitFor();
    await choices.filter({ hasText: "Codex" }).click();
    await page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
    await choices.filter({ hasText: "Connect Claude Code" }).waitFor();
    await page.locator(".view-lines").filter({ hasText: "sightline" }).first().waitFor();
  };

  await connect();
  await editor.dismiss();
  assert.ok(!(await exists(settings)));

  await connect();
  await choices.filter({ hasText: "Connect Claude Code" }).click();
  await editor.toast("Connected Claude Code").waitFor();
  const written = await readFile(settings, "utf8");
  assert.match(written, /"SessionStart"[^]*sightline/);
  assert.ok(!(await exists(path.join(home, ".codex/config.toml"))));
  assert.equal(await page.locator(".terminal").count(), 0);
  await until("the changes to be closed", async () => !(await editor.tab("Connect Agents.diff").isVisible()));

  // An agent that is connected can still be shown the selection.
  await editor.command("Sightline: Connect Agents…");
  await choices.filter({ hasText: "Claude Code" }).click();
  await choices.filter({ hasText: "Codex" }).click();
  await page.locator(".quick-input-widget:visible").getByRole("button", { name: "OK" }).click();
  const done = editor.toast("Nothing to do: Claude Code is connected.");
  await done.getByRole("button", { name: "Also Show the Selection" }).click();
  const machine = path.join(home, "user/Machine/settings.json");
  await until("the setting", async () => /"sightline\.agents\.connect": \[\s*"claude"\s*\]/.test(await readFile(machine, "utf8")));
});
