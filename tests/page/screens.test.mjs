// The screens Now, Hidden and Health, and the page in place of an editor's webview.

import assert from "node:assert/strict";
import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";

import { connectByMessages, scenario, show, turn, until } from "./harness.mjs";
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
  // Each part has its size and its source.
  const part = page.locator(".part", { hasText: "Open Tabs" });
  assert.match(await part.innerText(), /\d+ tokens[^]*from the tabs of the editor/);
  await part.click();
  await part.getByText("environment.sections.openTabs").waitFor();
});

scenario("Now shows the block of a stored conversation, and how full its window is", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const request = (method, params) => shop.run(["request", method, JSON.stringify({ taskId: "t1", ...params })]);
  request("appendMessages", { messages: [{ role: "user", content: "Fix the parser" }] });
  request("recordModel", { modelId: "claude-sonnet-4-5", providerId: "anthropic", mode: "act" });
  request("readFile", { path: "README.md" });
  await shop.write({ "README.md": "# Changed\n" });
  const page = await browser.open((await start(shop)).address);
  await show(page, "now");
  await page.getByLabel("As seen by").selectOption({ label: "in the conversation Fix the parser" });
  await page.getByText(/1 message · \d+ tokens of 200,000 \(claude-sonnet-4-5\) · changed since it saw them: README\.md/).waitFor();
  await page.getByTestId("now-block").getByText("# Recently Modified Files").waitFor();
  assert.deepEqual(page.problems, []);
});

scenario("a screen that was left does not come back", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  // Timers are called by the test.
  const before = (page) =>
    page.addInitScript(() => {
      window.timers = [];
      const { setTimeout } = window;
      window.setTimeout = (run, pause, ...args) => (pause === 200 ? window.timers.push(() => run(...args)) : setTimeout(run, pause, ...args));
    });
  const page = await browser.open((await start(shop)).address, { before });
  await show(page, "hidden");
  await page.getByTestId("access-input").fill("README.md");
  await page.waitForFunction(() => window.timers.length === 2);
  await page.evaluate(() => {
    document.querySelector("[data-testid=nav-health]").click();
    window.timers.forEach((run) => run());
  });
  await page.locator("[data-testid=nav-health][aria-current=page]").waitFor();
  assert.match(page.url(), /#\/health$/);
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
  await ask("cat src/cart.ts .env | sort", /^\s*Denied[^]*\.env/);
  await ask("wc -l src/cart.ts", /^\s*Allowed/);
  await ask("../other", /^\s*Outside/);
  await shop.write({ ".npmrc": "//registry.npmjs.org/:_authToken=npm_planted_secret_4\n" });
  await ask(".npmrc", /^\s*Denied: hidden from agents: it contains a credential built-in secrets:\d+/);
  assert.match(page.url(), /check=/);
  // Where a link leads.
  await symlink(path.join(shop.folder, ".env"), path.join(shop.folder, "link"));
  await ask("link", /^\s*Denied[^]*It leads to [^]*\/shop\/\.env/);
  // Several entries of a folder are opened by a click, and counted by whose rule hides them.
  await shop.write({ "packages/a/.env": "A=1\n", "packages/b/.env": "B=1\n", ".clineignore": "# Not for agents\nnotes/\n\n" });
  await page.getByText("packages/ 2 entries").click();
  await page.locator(".table .table li", { hasText: "b/.env" }).waitFor();
  await page.getByText(/entries: \d+ by built-in rules, \d+ by yours/).waitFor();
  await ask("README.md", /^\s*Allowed/);
  await shop.write({ ".clineignore": "notes/\nREADME.md\n" });
  await until("the new rule", async () => /^\s*Denied[^]*\.clineignore:2/.test(await page.getByTestId("access-verdict").innerText()));
  await page.locator(".table li", { hasText: "README.md" }).waitFor();
  // Rules that cannot be used hide everything.
  await shop.write({ ".clineignore": "a\n".repeat(200_000) });
  const hidden = page.locator(".card", { has: page.getByRole("heading", { name: "Hidden now" }) });
  await hidden.getByRole("alert").waitFor();
  assert.match(await hidden.innerText(), /^Hidden now\s+cannot use the access rules of /);
});

scenario("Now and Hidden follow the rule file, and no answer has the content of a denied file", async ({ browser, project, start, keep }) => {
  const shop = await project(SHOP);
  keep(await shop.edit("src/cart.ts"), (end) => end());
  const bodies = [];
  const page = await browser.open((await start(shop)).address, {
    before: (page) => page.on("response", async (answer) => bodies.push(await answer.text().catch(() => ""))),
  });
  await show(page, "now");
  const block = page.getByTestId("now-block");
  const lists = (expected) => until(`the file to be ${expected ? "listed" : "gone"}`, async () => (await block.textContent()).includes("src/cart.ts") === expected);
  await lists(true);
  await shop.write({ ".clineignore": "notes/\ncart.ts\n" });
  await lists(false);
  await show(page, "hidden");
  await page.locator(".table li", { hasText: "src/cart.ts" }).waitFor();
  await shop.write({ ".clineignore": "notes/\n# cart.ts\n" });
  await page.locator(".table li", { hasText: "src/cart.ts" }).waitFor({ state: "detached" });
  await show(page, "now");
  await lists(true);
  assert.ok(bodies.length > 10);
  assert.doesNotMatch(bodies.join("\n"), /planted_secret/);
}, { http: true });

scenario("a hidden link is listed with the rule of what it leads to", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  await symlink(path.join(shop.folder, ".env"), path.join(shop.folder, "link"));
  await symlink("loop", path.join(shop.folder, "loop"));
  const page = await browser.open((await start(shop)).address);
  await show(page, "hidden");
  const row = (name) => page.locator(".table li").filter({ has: page.locator("bdi", { hasText: new RegExp(`^${name}$`) }) });
  assert.match(await row("link").innerText(), /built-in secrets:\d+/);
  assert.match(await row("loop").innerText(), /loop\s+\S+/);
});

scenario("the user pauses what agents get from the editor", async ({ browser, project, start, keep }) => {
  const shop = await project(SHOP);
  const ui = await start(shop);
  const page = await browser.open(ui.address);
  const isPaused = () => JSON.parse(shop.run(["request", "connectedAgents"])).isPaused;
  for (const screen of ["now", "health"]) {
    await show(page, screen);
    assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);
  }
  keep(await shop.edit("src/cart.ts"), (end) => end());
  await page.getByText(/In front: src\/cart\.ts\. Last change /).waitFor();
  await page.getByText("No agent follows the focus and selection of the editor.").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal(isPaused(), true);
  // What another client does at once is shown, too.
  shop.run(["request", "connectedAgents", '{"isPaused":false}']);
  await page.getByRole("button", { name: "Pause" }).waitFor();
  const reader = await start(shop, ["--read-only"]);
  const refused = await reader.rpc("sightline/connectedAgents", { isPaused: true });
  assert.match(refused.error.message, /only reads/);
  assert.equal((await reader.rpc("sightline/connectedAgents")).result.isPaused, false);
  assert.equal(isPaused(), false);
});

scenario("refusals are logged as they happen", async ({ browser, project, start }) => {
  const shop = await project(SHOP);
  const page = await browser.open((await start(shop)).address);
  await show(page, "hidden");
  await page.getByText("No decisions yet.").waitFor();
  shop.hook("claude", "PreToolUse", "s1", { tool_name: "Read", tool_input: { file_path: path.join(shop.folder, ".env") } });
  const decision = page.getByTestId("decision");
  await decision.waitFor();
  assert.match(await decision.innerText(), /denied[^]*\.env[^]*claude[^]*Read/);
  // Of commands, not everything is kept, unless the user wants it.
  const how = page.getByText("keeps them whole");
  assert.equal(await how.count(), 0);
  const runs = (command) => shop.hook("codex", "PreToolUse", "c1", { tool_name: "Bash", tool_input: { command } });
  runs("cat .env");
  await how.waitFor();
  assert.match(await decision.first().innerText(), /cat #[0-9a-f]{12}/);
  await writeFile(path.join(shop.home, ".config/sightline/config.toml"), 'log.commands = "full"\n');
  runs("head -n 1 .env");
  await decision.getByText("head -n 1 .env").waitFor();
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
  await page.reload();
  await card("Checkpoints").getByText(/, verified Today, /).waitFor();
  await card("This machine").getByText("data directory").waitFor();
  await writeFile(path.join(shop.folder, "huge.dat"), Buffer.alloc(21 * 1024 * 1024));
  shop.run(["checkpoint", "create"]);
  await card("Checkpoints").getByText(/Not in the newest one:.*huge\.dat \(/).waitFor();
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
  // The extension forwards to its server, which does not have the requests of `sightline ui`.
  const page = await browser.open(ui.origin, { before: (page) => connectByMessages(page, ui, (method) => method.startsWith("page/")) });
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
}, { http: true });
