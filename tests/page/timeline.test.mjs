// The screen Timeline: turns, diffs, restore and undo.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { symlink, unlink, writeFile } from "node:fs/promises";
import path from "node:path";

import { openRestore, read, scenario, turn, until } from "./harness.mjs";
import { SHOP, history } from "./project.mjs";

scenario("turns, the changes between them, and restores are listed with their files", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const page = await browser.open((await start(shop)).address);
  await turn(page, "claude-1.3").waitFor();
  const names = await page.getByTestId("turn").evaluateAll((rows) => rows.map((row) => row.dataset.name));
  assert.deepEqual(names, ["claude-1.3", "gemini-1.1", "codex-1.1", "claude-1.2", "claude-1.1"]);
  const rows = (await page.locator("[data-row]").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));
  assert.ok(rows.some((text) => /restore You, and the restore|Restored/.test(text)), rows.join("\n"));
  assert.ok(rows.some((text) => /You 1 file .*README\.md/.test(text)), rows.join("\n"));
  // It was saved before the first edit.
  assert.match(rows.at(-1), /first state/);

  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").filter({ hasText: "src/parser.ts" }).click();
  const diff = await page.getByTestId("diff").innerText();
  assert.match(diff, /export const rule7 = 7;/);
  assert.match(diff, /export const rule7 = 70;/);
  assert.match(page.url(), /#\/timeline\?id=claude-1\.1$/);
  await page.getByRole("button", { name: "Name …" }).click();
  await page.getByLabel("Name", { exact: true }).fill("it works");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await turn(page, "claude-1.1").getByText("claude-1.1: it works").waitFor();

  // The address shows the same again, in another tab with the same token.
  await page.reload();
  await page.getByTestId("file").filter({ hasText: "src/parser.ts" }).waitFor();

  // The filters.
  await page.getByLabel("Agent, session or conversation").selectOption("codex");
  await until("only the turn of codex", async () => (await page.getByTestId("turn").count()) === 1);
  await page.getByLabel("Agent, session or conversation").selectOption("");
  await page.getByLabel(/^Filter/).fill("prices.ts");
  await until("only the turn with the file", async () => (await page.getByTestId("turn").count()) === 1);
  await page.getByLabel(/^Filter/).fill("");

  // Two entries are compared from the older to the newer one.
  await turn(page, "codex-1.1").click();
  await turn(page, "claude-1.1").click({ modifiers: ["Shift"] });
  await page.getByText("Compared with").waitFor();
  await until("the files of both turns", async () => (await page.getByTestId("file").allInnerTexts()).join().includes("cart.ts"));
  assert.match((await page.getByTestId("file").allInnerTexts()).join(), /parser\.ts/);
  assert.deepEqual(page.problems, []);
});

scenario("a turn that runs appears without a reload", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const page = await browser.open((await start(shop)).address);
  await page.getByText("Nothing has happened here yet.").waitFor();
  const requests = page.requests.filter((url) => url.endsWith("/")).length;
  await shop.turn("s1", "Say hello", { "hello.txt": "hello\n" });
  await turn(page, "claude-1.1").waitFor();
  await page.getByTestId("file").filter({ hasText: "hello.txt" }).waitFor();
  assert.equal(page.requests.filter((url) => url.endsWith("/")).length, requests);
  shop.hook("claude", "UserPromptSubmit", "s1", { prompt: "And what now?" });
  await turn(page, "claude-1.2").click();
  await page.getByText("This turn has changed no files yet.").waitFor();
  shop.hook("claude", "Stop", "s1", {});
  await page.getByText("This turn has changed no files.").waitFor();
  shop.interrupt("s1", "Stop here", "hello.txt");
  await turn(page, "claude-1.3").click();
  await page.getByText("The state after is not saved.").waitFor();
});

scenario("a turn that runs before events can be read appears", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  let read = () => {};
  const ready = new Promise((resolve) => (read = resolve));
  const before = (page) => page.route("**/events", (route) => ready.then(() => route.continue()));
  const page = await browser.open((await start(shop)).address, { before });
  await page.getByText("Nothing has happened here yet.").waitFor();
  await shop.turn("s1", "Say hello", { "hello.txt": "hello\n" });
  read();
  await page.getByTestId("file").filter({ hasText: "hello.txt" }).waitFor();
}, { http: true });

scenario("a restore shows a preview, restores byte for byte, and is undone", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const page = await browser.open((await start(shop)).address);
  const files = [...Object.keys(SHOP), "tests/parser.test.ts", "docs/intro.md"];
  const state = async () => JSON.stringify(await Promise.all(files.map((name) => read(shop, name))));
  const before = await state();
  await turn(page, "claude-1.1").click();
  await page.getByTestId("restore").click();
  await page.getByTestId("confirm-restore").click();
  await page.getByTestId("undo").waitFor();
  assert.deepEqual(JSON.parse(await state()).slice(0, 4), Object.values(SHOP).slice(0, 4));
  assert.equal(await read(shop, "tests/parser.test.ts"), undefined);
  await page.getByTestId("undo").click();
  await page.getByText("Restore undone:").waitFor();
  assert.equal(await state(), before);
});

scenario("only the ticked files are restored", async (opened) => {
  const { shop, page } = await openRestore(opened);
  for (const box of await page.locator(".change", { hasNotText: "parser.ts" }).getByRole("checkbox").all()) {
    await box.uncheck();
  }
  await page.getByRole("button", { name: "Restore 1 file", exact: true }).click();
  await page.getByTestId("undo").waitFor();
  assert.equal(await read(shop, "src/parser.ts"), SHOP["src/parser.ts"]);
  assert.equal(await read(shop, "docs/intro.md"), "# Intro\n");
});

scenario("a file saved after the preview is a conflict, and nothing is changed", async (opened) => {
  const { shop, page } = await openRestore(opened);
  await shop.write({ "src/parser.ts": "saved meanwhile\n" });
  await page.getByTestId("confirm-restore").click();
  await page.getByText("This is the new preview").waitFor();
  assert.equal(await read(shop, "src/parser.ts"), "saved meanwhile\n");
  assert.equal(await read(shop, "docs/intro.md"), "# Intro\n");
  // The new preview can be accepted.
  await page.getByTestId("confirm-restore").click();
  await page.getByTestId("undo").waitFor();
  assert.equal(await read(shop, "src/parser.ts"), SHOP["src/parser.ts"]);
});

scenario("only what a turn changed is reverted, whole or in parts, and later edits stay", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const page = await browser.open((await start(shop)).address);
  const parser = () => read(shop, "src/parser.ts");
  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").filter({ hasText: "src/parser.ts" }).click();
  await page.getByLabel("Part 1").check();
  await page.getByRole("button", { name: "Revert 1 part …" }).click();
  await page.getByTestId("confirm-restore").click();
  await page.getByTestId("undo").waitFor();
  assert.match(await parser(), /rule7 = 7;[^]*rule40 = 41;/);
  await page.getByTestId("undo").click();
  await page.getByText("Restore undone:").waitFor();
  assert.match(await parser(), /rule7 = 70;[^]*rule40 = 41;/);

  await page.getByTestId("restore").click();
  await page.getByLabel("only this turn; later edits stay").check();
  await page.getByRole("button", { name: "Restore 1 file, delete 1" }).click();
  await page.getByText(": 2 files.").waitFor();
  assert.equal(await parser(), SHOP["src/parser.ts"]);
  assert.equal(await read(shop, "tests/parser.test.ts"), undefined);
  assert.equal(await read(shop, "docs/intro.md"), "# Intro\n");
});

scenario("the lines of a file are shown with the turns that wrote them", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const page = await browser.open((await start(shop)).address);
  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").filter({ hasText: "src/parser.ts" }).click();
  await page.getByRole("button", { name: "Authors" }).click();
  const group = page.locator(".lines.blame", { hasText: "rule7 = 70" });
  assert.match(await group.innerText(), /^claude-1\.1[^]*rule7 = 70;\s*$/);
  assert.match(await page.locator(".lines.blame").first().innerText(), /before the first checkpoint/);
  await page.getByRole("button", { name: "Back to the changes" }).click();
  await page.getByTestId("file").first().waitFor();
});

scenario("long, binary, renamed, linked, executable and skipped files are shown or explained", async ({ browser, project, start }) => {
  const long = Array.from({ length: 5000 }, (_, index) => `line ${index}\n`);
  const shop = await project({ "long.txt": long.join(""), "old-name.txt": "the same content\n".repeat(20), "tool.sh": "#!/bin/sh\n", "a.bin": "\0\x01" });
  await shop.turn("s1", "start", { "first.txt": "1\n" });
  await shop.turn("s1", "change everything", { "first.txt": "2\n" }, { end: false });
  await shop.write({ "long.txt": long.map((line) => line.toUpperCase()).join(""), "new-name.txt": "the same content\n".repeat(20), "a.bin": "\0\x02", ".npmrc": "save-exact=true\n" });
  await unlink(path.join(shop.folder, "old-name.txt"));
  execFileSync("chmod", ["+x", path.join(shop.folder, "tool.sh")]);
  await symlink("long.txt", path.join(shop.folder, "link"));
  await writeFile(path.join(shop.folder, "huge.dat"), Buffer.alloc(21 * 1024 * 1024));
  shop.hook("claude", "Stop", "s1", {});
  const page = await browser.open((await start(shop)).address);
  await turn(page, "claude-1.2").click();
  // A file whose content decides whether it is hidden counts in both.
  await page.getByTestId("file").filter({ hasText: ".npmrc" }).waitFor();
  const count = async (part) => /\d+ files/.exec(await part.innerText())?.[0];
  assert.equal(await count(turn(page, "claude-1.2")), await count(page.locator("article")));
  const open = async (name) => {
    const file = page.getByTestId("file").filter({ hasText: name });
    await file.click();
    const item = page.locator("li", { has: file });
    await item.getByTestId("diff").waitFor();
    return item;
  };
  const longDiff = await open("long.txt");
  assert.match(await longDiff.innerText(), /Show 9,600 more lines/);
  await longDiff.getByRole("button", { name: /more lines/ }).click();
  assert.match(await longDiff.getByTestId("diff").innerText(), /LINE 4999/);
  assert.match(await (await open("a.bin")).innerText(), /binary file/);
  assert.match(await (await open("new-name.txt")).innerText(), /renamed from old-name\.txt/);
  assert.match(await (await open("tool.sh")).innerText(), /is an executable file/);
  assert.match(await (await open("link")).innerText(), /symbolic link/);
  await page.getByText("not saved").click();
  await page.getByText("huge.dat").waitFor();
  assert.deepEqual(page.problems, []);
});

scenario("of thousands of entries, only the visible ones are in the document", async ({ browser, project, start }) => {
  const shop = await project({ "a.txt": "0\n" });
  await shop.turn("s1", "a turn", { "a.txt": "1\n" });
  const ui = await start(shop);
  const turns = Array.from({ length: 3000 }, (_, index) => {
    const number = 3000 - index;
    const at = Date.UTC(2026, 0, 1) + number * 60_000;
    const agent = ["claude", "codex", "gemini"][number % 3];
    return { name: `${agent}-1.${number}`, agent, session: agent, number, prompt: `prompt ${number}`, root: `file://${shop.folder}`, startedAt: at, endedAt: at + 1000, files: [] };
  });
  // The server is asked for pages, as for a real store.
  const page = await browser.open(ui.address, {
    before: (page) =>
      page.route("**/rpc", async (route) => {
        const { method, params } = route.request().postDataJSON();
        if (method !== "sightline/listTurns") {
          return await route.continue();
        }
        const from = params.before ? turns.findIndex(({ name }) => name === params.before) + 1 : 0;
        return await route.fulfill({ json: { result: { turns: turns.slice(from, from + Math.min(params.limit, 1000)) } } });
      }),
  });
  await turn(page, "claude-1.3000").waitFor();
  const isShort = async () => assert.ok((await page.locator("[data-row]").count()) <= 60);
  await isShort();
  const list = page.getByRole("list", { name: /^Turns/ });
  await until("the oldest turn", async () => {
    await list.evaluate((element) => (element.scrollTop = element.scrollHeight));
    return (await turn(page, "codex-1.1").count()) === 1;
  });
  await isShort();
  // The keyboard moves the selection, which stays in view.
  await turn(page, "codex-1.1").click();
  for (let step = 0; step < 30; step++) {
    await page.keyboard.press("k");
  }
  assert.ok(await page.locator("[data-row][aria-current=true]").isVisible());
  assert.match(page.url(), /id=codex-1\.31$/);
}, { http: true });
