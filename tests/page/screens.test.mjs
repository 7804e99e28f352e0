// The screens Now, Hidden and Health, and the page in place of an editor's webview.

import assert from "node:assert/strict";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";

import { scenario, show, turn, until } from "./harness.mjs";
import { SHOP, history } from "./project.mjs";

/** The context that the answer of a prompt hook adds. */
function context(answer) {
  return answer?.hookSpecificOutput?.additionalContext ?? "";
}

/** The time in a block is that of its making. */
function withoutTime(block) {
  return block.replace(/(# Current Time\n).*/, "$1").trim();
}

scenario("Now is what the hook of each agent delivers next", async ({ browser, project, start, keep }) => {
  const shop = await project(SHOP);
  const page = await browser.open((await start(shop)).address);
  await show(page, "now");
  await page.getByText("Nothing is added to the next prompt of claude").waitFor();
  keep(await shop.edit("src/cart.ts"), (end) => end());
  const block = page.getByTestId("now-block");
  for (const [agent, event] of [["claude", "UserPromptSubmit"], ["codex", "UserPromptSubmit"], ["gemini", "BeforeAgent"]]) {
    await page.getByLabel("As seen by").selectOption(agent);
    await until("the block with the file", async () => (await page.getByText("Nothing is added").count()) === 0 && (await block.textContent()).includes("src/cart.ts"));
    const shown = await block.textContent();
    const delivered = context(shop.hook(agent, event, "s9", { prompt: "hello" }));
    assert.match(delivered, /src\/cart\.ts/);
    assert.equal(withoutTime(shown), withoutTime(delivered), agent);
    await page.getByText(`Nothing is added to the next prompt of ${agent}`).waitFor();
  }
});

scenario("Hidden answers for paths and commands, and follows the rule file", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const page = await browser.open((await start(shop)).address);
  await show(page, "hidden");
  const ask = async (text, expected) => {
    await page.getByTestId("access-input").fill(text);
    await until(`${expected} for ${text}`, async () => expected.test(await page.getByTestId("access-verdict").innerText()));
  };
  await ask(".env", /^\s*Denied[^]*built-in secrets/);
  await ask("src/cart.ts", /^\s*Allowed/);
  await ask("notes/private.md", /^\s*Denied[^]*\.clineignore:2/);
  await ask("cat src/cart.ts .env | wc -l", /^\s*Denied[^]*\.env/);
  await ask("wc -l src/cart.ts", /^\s*Allowed/);
  await ask("../other", /^\s*Outside/);
  assert.match(page.url(), /check=/);
  await page.getByText("Hidden now").waitFor();
  await ask("README.md", /^\s*Allowed/);
  await shop.write({ ".clineignore": "notes/\nREADME.md\n" });
  await until("the new rule", async () => /^\s*Denied[^]*\.clineignore:2/.test(await page.getByTestId("access-verdict").innerText()));
  await page.locator(".table li", { hasText: "README.md" }).waitFor();
});

scenario("refusals are logged as they happen", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const page = await browser.open((await start(shop)).address);
  await show(page, "hidden");
  await page.getByText("No decisions yet.").waitFor();
  shop.hook("claude", "PreToolUse", "s1", { tool_name: "Read", tool_input: { file_path: path.join(shop.folder, ".env") } });
  const decision = page.getByTestId("decision");
  await decision.waitFor();
  assert.match(await decision.innerText(), /refused[^]*\.env[^]*claude[^]*Read/);
});

scenario("Health shows the agents, checks their hooks, and verifies the checkpoints", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  await mkdir(path.join(shop.home, ".claude"));
  shop.run(["agents", "install", "--agent", "claude", "--user", "--yes"]);
  const page = await browser.open((await start(shop)).address);
  await show(page, "health");
  const card = (title) => page.locator(".card", { has: page.getByRole("heading", { name: title }) });
  await card("Agents").getByText("1 agent connected.").waitFor();
  await card("Agents").getByRole("button", { name: /^Check hooks/ }).click();
  await card("Agents").locator(".plus", { hasText: "✓" }).first().waitFor();
  await card("Checkpoints").getByRole("button", { name: "Verify now" }).click();
  await card("Checkpoints").getByText("Every checkpoint is intact.").waitFor();
  await card("This machine").getByText("data directory").waitFor();
});

/** An MCP server with one tool. */
const SERVER = `#!/usr/bin/env node
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const results = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "clock", version: "1" } },
    "tools/list": { tools: [{ name: "time", inputSchema: { type: "object" } }] },
  };
  console.error("clock: " + method);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? {} }));
});
`;

scenario("MCP servers are listed and switched as by the command line", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const program = path.join(shop.home, "clock.js");
  await writeFile(program, SERVER);
  await chmod(program, 0o755);
  shop.run(["mcp", "add", "clock", "--", process.execPath, program]);
  const page = await browser.open((await start(shop)).address);
  await show(page, "health");
  const row = page.locator("[data-server=clock]");
  await row.getByRole("button", { name: "Disable" }).click();
  await row.getByText("off").waitFor();
  assert.match(shop.run(["mcp", "list"]), /clock.*(disabled|off)/);
  await row.getByRole("button", { name: "Enable" }).click();
  await row.getByRole("button", { name: "Disable" }).waitFor();
  assert.doesNotMatch(shop.run(["mcp", "list"]), /clock.*(disabled|off)/);
});

scenario("the same page works over the messages of an editor", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  // The extension forwards to its server; here, to the one of `sightline ui`, without the requests that only that has.
  const page = await browser.open(ui.origin, {
    before: async (page) => {
      await page.exposeFunction("forward", (method, params) => (method.startsWith("page/") ? { error: { code: -32601, message: "no such request" } } : ui.rpc(method, params)));
      await page.addInitScript(() => {
        window.acquireVsCodeApi = () => ({
          postMessage: ({ id, method, params }) => void window.forward(method, params).then((answer) => window.postMessage({ id, ...answer })),
        });
      });
    },
  });
  await turn(page, "claude-1.1").click();
  await page.getByTestId("file").filter({ hasText: "src/parser.ts" }).click();
  await page.getByTestId("diff").waitFor();
  await page.getByTestId("restore").click();
  await page.getByTestId("confirm-restore").click();
  await page.getByTestId("undo").click();
  await page.getByText("Restore undone:").waitFor();
  await show(page, "now");
  assert.match(await page.getByTestId("now-block").textContent(), /^<environment_details>/);
  await show(page, "hidden");
  await page.getByTestId("access-input").fill(".env");
  await page.getByTestId("access-verdict").getByText("Denied").waitFor();
  await show(page, "health");
  await page.getByText("checkpoints in").waitFor();
  assert.ok(page.requests.every((url) => !url.includes("/rpc") && !url.includes("/events")));
  assert.deepEqual(page.problems, []);
  assert.equal(await readFile(path.join(shop.folder, "docs/intro.md"), "utf8"), "# Intro\n");
});
