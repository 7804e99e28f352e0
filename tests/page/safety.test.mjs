// What the page must never do, what it says when something is wrong, and who can use it.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";

import { Ui, openRestore, read, scenario, show, turn, until } from "./harness.mjs";
import { SHOP, history } from "./project.mjs";

const SCREENS = ["timeline", "now", "hidden", "health"];

scenario("every request goes to the server of the page, and the token is nowhere in the address", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  const bodies = [];
  const page = await browser.open(ui.address, {
    before: (page) => page.on("response", async (answer) => bodies.push(await answer.text().catch(() => ""))),
  });
  for (const screen of SCREENS) {
    await show(page, screen);
    assert.ok(!page.url().includes(ui.token), page.url());
  }
  await show(page, "timeline");
  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").first().click();
  await page.getByTestId("diff").waitFor();
  assert.deepEqual(page.requests.filter((url) => new URL(url).origin !== ui.origin), []);
  assert.ok(!page.requests.slice(1).join().includes(ui.token));
  assert.deepEqual(page.problems, []);
  // No denied content is in any answer.
  assert.ok(bodies.length > 10);
  assert.doesNotMatch(bodies.join("\n"), /planted_secret/);
  // A second tab has no token.
  const other = await page.context().newPage();
  await other.goto(ui.origin);
  await other.getByText("This address has no token.").waitFor();
});

scenario("the token is only in the address that is printed", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const ui = await start(shop);
  let log = "";
  ui.child.stderr.on("data", (text) => (log += text));
  const referrers = [];
  const page = await browser.open(ui.address, { before: (page) => page.on("request", (request) => referrers.push(request.headers().referer ?? "")) });
  await show(page, "health");
  const seen = await page.evaluate(() => [location.href, document.referrer, document.cookie, JSON.stringify(localStorage), JSON.stringify(history.state)]);
  await page.goBack();
  seen.push(page.url(), ...referrers, log, execFileSync("ps", ["axww", "-o", "args"], { encoding: "utf8" }));
  for (const folder of [".local/share/sightline", "tmp"]) {
    const files = await readdir(path.join(shop.home, folder), { recursive: true, withFileTypes: true }).catch(() => []);
    seen.push(...(await Promise.all(files.filter((file) => file.isFile()).map((file) => readFile(path.join(file.parentPath, file.name), "latin1")))));
  }
  assert.deepEqual(seen.filter((text) => text.includes(ui.token)), []);
});

scenario("it needs no other program and no network", async ({ browser, project, keep }) => {
  const shop = await project(SHOP);
  shop.env.PATH = path.join(shop.home, "nothing");
  const ui = keep(await Ui.start(shop), (one) => one.stop());
  const page = await browser.open(ui.address);
  for (const screen of SCREENS) {
    await show(page, screen);
    await until(`${screen} to be loaded`, async () => (await page.locator(".loading").count()) === 0);
    assert.deepEqual(await page.getByRole("alert").allInnerTexts(), []);
  }
  assert.deepEqual(page.problems, []);
});

scenario("while another program uses the checkpoints, a restore says so and is not lost", async ({ keep, ...opened }) => {
  const { shop, page } = await openRestore(opened);
  const [store] = await readdir(path.join(shop.home, ".local/share/sightline/projects"));
  const other = keep(spawn("flock", [path.join(shop.home, ".local/share/sightline/projects", store, "state/lock"), "sh", "-c", "echo locked; cat"]), (one) => one.stdin.end());
  await once(other.stdout, "data");
  await page.getByTestId("confirm-restore").click();
  await page.getByRole("alert").waitFor();
  assert.equal(await read(shop, "docs/intro.md"), "# Intro\n");
  other.stdin.end();
  await until("the other program to end", async () => (await page.getByTestId("undo").count()) || (await page.getByTestId("confirm-restore").click({ timeout: 1000 }).catch(() => {}), false));
  assert.equal(await read(shop, "docs/intro.md"), undefined);
});

scenario("when the editor ends, the page shows the files on disk", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const end = await shop.edit("src/cart.ts");
  const page = await browser.open((await start(shop)).address);
  await show(page, "now");
  const block = page.getByTestId("now-block");
  await until("the file of the editor", async () => (await block.textContent()).includes("src/cart.ts"));
  await end();
  await page.getByText("no editor", { exact: true }).waitFor();
  await until("the file of the editor to be gone", async () => !/# (Editor )?Open Tabs\nsrc\/cart\.ts/.test(await block.textContent()));
  await show(page, "health");
  await page.getByText("Agents get files as they are on disk.").waitFor();
  assert.deepEqual(page.problems, []);
});

scenario("names and prompts are text, and invisible characters are shown", async ({ browser, project, start }) => {
  const bad = "<img src=x onerror=window.hacked=1>";
  const shop = await project({ "a.txt": "0\n" });
  await shop.turn("s1", `${bad}\u202e reversed`, { [`${bad}.txt`.replaceAll("/", "")]: "1\n", "new\nline.txt": "1\n", "bidi\u202etxt.exe": "<script>window.hacked=1</script>\u202e\n", [`${"long".repeat(60)}.txt`]: "1\n" });
  shop.run(["checkpoint", "create", "--label", `${bad}\u2066${"w".repeat(4000)}`.slice(0, 4096)]);
  const page = await browser.open((await start(shop)).address);
  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").nth(3).waitFor();
  for (const file of await page.getByTestId("file").all()) {
    await file.click();
  }
  await page.getByTestId("diff").nth(3).waitFor();
  const text = await page.locator("body").innerText();
  for (const shown of ["bidi⟨U+202E⟩txt.exe", "new␊line.txt", "<script>window.hacked=1</script>⟨U+202E⟩", `${bad}⟨U+202E⟩`, `${bad}⟨U+2066⟩ww`]) {
    assert.ok(text.includes(shown), `${shown} is not in:\n${text}`);
  }
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(page.problems, []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

scenario("a lost connection is said, and what was asked for is not lost", async ({ keep, ...opened }) => {
  const { shop, ui, page } = await openRestore(opened);
  const port = new URL(ui.address).port;
  await ui.stop("SIGKILL");
  const lost = page.getByRole("alert").filter({ hasText: "The connection is lost" });
  await lost.waitFor();
  await page.getByTestId("confirm-restore").click();
  await lost.nth(1).waitFor();
  assert.equal(await read(shop, "docs/intro.md"), "# Intro\n");
  // Another start has another token.
  const again = keep(await Ui.start(shop, ["--port", port]), (one) => one.stop());
  await page.getByText("This page belongs to an earlier start").waitFor();
  await page.goto("about:blank");
  await page.goto(again.address);
  await turn(page, "claude-1.1").waitFor();
});

scenario("two pages show the same", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  const first = await browser.open(ui.address);
  const second = await browser.open(ui.address);
  await turn(first, "claude-1.1").click();
  await first.getByTestId("restore").click();
  await first.getByTestId("confirm-restore").click();
  await first.getByTestId("undo").waitFor();
  await until("the restore in the other page", async () => (await second.locator(".row.restore").count()) === 2);
});

scenario("several pages share the connections", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  const pages = await Promise.all([1, 2, 3].map(() => browser.open(ui.address)));
  await Promise.all(
    pages.map(async (page) => {
      for (const screen of [...SCREENS, ...SCREENS]) {
        await show(page, screen);
        await until(`${screen} to be loaded`, async () => (await page.locator(".loading").count()) === 0);
        assert.deepEqual(await page.getByRole("alert").allInnerTexts(), []);
      }
    }),
  );
});

scenario("all of it works with the keyboard", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const page = await browser.open((await start(shop)).address);
  await turn(page, "claude-1.1").waitFor();
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  await press("?");
  await page.getByRole("dialog").waitFor();
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  for (let step = 0; step < 20 && !page.url().includes("id=claude-1.1"); step++) {
    await press("j");
  }
  await press("j", "k");
  await until("the first turn", async () => /id=claude-1\.1$/.test(page.url()) || (await press("j"), false));
  await press("Enter");
  await until("the focus on a file", () => page.evaluate(() => document.activeElement.dataset.testid === "file"));
  await press("Enter");
  await page.getByTestId("diff").waitFor();
  await press("r");
  await until("the focus on the button", () => page.evaluate(() => document.activeElement.dataset.testid === "confirm-restore"));
  await press("Enter");
  await page.getByTestId("undo").waitFor();
  assert.equal(await read(shop, "src/parser.ts"), SHOP["src/parser.ts"]);
  await press("u");
  await page.getByText("Restore undone:").waitFor();
  assert.notEqual(await read(shop, "src/parser.ts"), SHOP["src/parser.ts"]);
  // Two entries are compared.
  await press("c");
  await page.getByText("Select the entry to compare with.").waitFor();
  await press("k");
  const end = page.getByRole("button", { name: "End comparison" });
  await end.waitFor();
  await press("Escape");
  await end.waitFor({ state: "detached" });
  for (const [index, screen] of SCREENS.entries()) {
    await press(`${index + 1}`);
    await page.locator(`[data-testid=nav-${screen}][aria-current=page]`).waitFor();
  }
});

scenario("axe finds nothing serious, and nothing is cut off, in both themes and in narrow windows", async ({ browser, project, start }) => {
  const axe = await readFile(path.join(import.meta.dirname, "node_modules/axe-core/axe.min.js"), "utf8");
  const shop = await project(SHOP);
  await history(shop);
  await shop.turn("s1", "Write a component", { "src/cart.ts": SHOP["src/cart.ts"], "src/components/forms/AComponentWithAVeryLongNameThatExplainsWhatItDoesInEveryDetail.tsx": "export {};\n" });
  const ui = await start(shop);
  for (const theme of ["light", "dark"]) {
    // 640 pixels are 1,280 at a zoom of 200 %.
    for (const width of [1280, 640, 420]) {
      const page = await browser.open(ui.address, { theme, width });
      for (const screen of SCREENS) {
        await show(page, screen);
        if (screen === "timeline") {
          await turn(page, "claude-1.4").click();
          await page.getByTestId("file").first().click();
          await page.getByTestId("diff").waitFor();
          await page.getByTestId("restore").click();
          await page.getByTestId("confirm-restore").waitFor();
        }
        await until(`${screen} to be loaded`, async () => (await page.locator(".loading").count()) === 0);
        // By the debugger, which the policy of the page does not concern.
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        assert.deepEqual(serious.map(({ id, nodes }) => [screen, theme, width, id, nodes.map(({ html }) => html.slice(0, 200))]), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${screen} is wider than ${width}`);
        const cut = await page.locator(".file").evaluateAll((rows) => rows.filter((row) => row.scrollWidth > row.clientWidth).map((row) => row.innerText));
        assert.deepEqual(cut, [], `${screen} at ${width}`);
      }
      await page.context().close();
    }
  }
});
