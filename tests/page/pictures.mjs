// Takes the pictures of the page in docs/pictures. `tests/page/run tests/page/pictures.mjs` sets what it needs;
// review them.

import { mkdir } from "node:fs/promises";
import path from "node:path";

import { Browser, Project, Ui, show, turn } from "./harness.mjs";
import { SHOP, history } from "./project.mjs";

const TO = path.resolve(import.meta.dirname, "../../docs/pictures");

const shop = await Project.create(SHOP);
await history(shop);
await mkdir(path.join(shop.home, ".claude"));
shop.run(["agents", "install", "--agent", "claude", "--user", "--yes"]);
shop.hook("claude", "PreToolUse", "s1", { tool_name: "Read", tool_input: { file_path: path.join(shop.folder, ".env") } });
shop.hook("codex", "PreToolUse", "c1", { tool_name: "Bash", tool_input: { command: "cat notes/private.md" } });
const end = await shop.edit("src/cart.ts");
const ui = await Ui.start(shop);
const browser = await Browser.start();
try {
  for (const theme of ["light", "dark"]) {
    const page = await browser.open(ui.address, { theme, width: 1100, height: 700 });
    const take = async (name) => {
      await page.waitForFunction(() => !document.querySelector(".loading"));
      await page.mouse.move(0, 0);
      await page.screenshot({ path: path.join(TO, `page-${name}-${theme}.png`) });
    };
    await turn(page, "claude-1.1").click();
    await page.getByTestId("file").filter({ hasText: "src/parser.ts" }).click();
    await page.getByTestId("diff").waitFor();
    await take("timeline");
    await show(page, "now");
    await page.getByTestId("now-block").getByText("src/cart.ts").first().waitFor();
    await take("now");
    await show(page, "hidden");
    await page.getByTestId("access-input").fill("cat .env");
    await page.getByTestId("access-verdict").getByText("Denied").waitFor();
    await take("hidden");
    await show(page, "health");
    await page.getByText("data directory").waitFor();
    // Without the paths of this machine.
    await page.setViewportSize({ width: 1100, height: 640 });
    await take("health");
    await page.context().close();
  }
} finally {
  await browser.stop();
  await ui.stop();
  await end();
  shop.remove();
}
