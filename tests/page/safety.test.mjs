// What the page must never do, what it says when something is wrong, and who can use it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";

import { Ui, read, scenario, show, turn, until } from "./harness.mjs";
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

scenario("names and prompts are text, and invisible characters are shown", async ({ browser, project, start }) => {
  const bad = "<img src=x onerror=window.hacked=1>";
  const shop = await project({ "a.txt": "0\n" });
  await shop.turn("s1", `${bad}\u202e reversed`, { [`${bad}.txt`.replaceAll("/", "")]: "1\n", "new\nline.txt": "1\n", "bidi\u202etxt.exe": "<script>window.hacked=1</script>\u202e\n", [`${"long".repeat(60)}.txt`]: "1\n" });
  shop.run(["checkpoint", "create", "--label", `${bad}\u2066`]);
  const page = await browser.open((await start(shop)).address);
  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").nth(3).waitFor();
  for (const file of await page.getByTestId("file").all()) {
    await file.click();
  }
  await page.getByTestId("diff").nth(3).waitFor();
  const text = await page.locator("body").innerText();
  for (const shown of ["bidi⟨U+202E⟩txt.exe", "new␊line.txt", "<script>window.hacked=1</script>⟨U+202E⟩", `${bad}⟨U+202E⟩`, `${bad}⟨U+2066⟩`]) {
    assert.ok(text.includes(shown), `${shown} is not in:\n${text}`);
  }
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(page.problems, []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

scenario("a lost connection is said, and what was asked for is not lost", async ({ browser, project, start, keep }) => {
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  const port = new URL(ui.address).port;
  const page = await browser.open(ui.address);
  await turn(page, "claude-1.1").click();
  await page.getByTestId("restore").click();
  await page.getByTestId("confirm-restore").waitFor();
  await ui.stop("SIGKILL");
  await page.getByText("The connection is lost").waitFor();
  await page.getByTestId("confirm-restore").click();
  await page.getByText("Sightline cannot be reached.").waitFor();
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
  await until("the restore in the other page", async () => (await second.locator(".row-restore").count()) === 2);
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
  for (const [index, screen] of SCREENS.entries()) {
    await press(`${index + 1}`);
    await page.locator(`[data-testid=nav-${screen}][aria-current=page]`).waitFor();
  }
});

scenario("axe finds nothing serious, and nothing is cut off, in both themes and in narrow windows", async ({ browser, project, start }) => {
  const axe = await readFile(path.join(import.meta.dirname, "node_modules/axe-core/axe.min.js"), "utf8");
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  for (const theme of ["light", "dark"]) {
    // 640 pixels are 1,280 at a zoom of 200 %.
    for (const width of [1280, 640, 420]) {
      const page = await browser.open(ui.address, { theme, width });
      for (const screen of SCREENS) {
        await show(page, screen);
        if (screen === "timeline") {
          await turn(page, "claude-1.1").click();
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
      }
      await page.context().close();
    }
  }
});
