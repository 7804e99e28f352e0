// A turn of a real agent, with a model on loopback, while the page is open.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";

import { AGENTS } from "../agents/agents.mjs";
import { startModel } from "../agents/mock_model.mjs";
import { Workspace, agentProgram } from "../agents/workspace.mjs";
import { PROGRAM, Ui, scenario, show, turn } from "./harness.mjs";

const claude = AGENTS.find(({ name }) => name === "claude");
const program = agentProgram("claude", claude.program);

if (program) {
  scenario("the turn of a real agent appears without a reload", async ({ browser, keep }) => {
    const workspace = keep(new Workspace("page"), (one) => one.close());
    const model = keep(await startModel(), (one) => one.close());
    claude.configure(workspace, model.url);
    const installed = await workspace.sightline("agents", "install", "--agent", "claude", "--yes");
    assert.equal(installed.code, 0, installed.output);
    const project = { spawn: (args) => spawn(PROGRAM, args, { cwd: workspace.project, env: workspace.env, stdio: ["pipe", "pipe", "pipe"] }) };
    const ui = keep(await Ui.start(project), (one) => one.stop());
    const page = await browser.open(ui.address);
    await page.getByText("Nothing has happened here yet.").waitFor();
    const loads = page.requests.filter((url) => new URL(url).pathname === "/").length;
    await page.evaluate(() => new MutationObserver(() => (window.shownAt ??= document.querySelector("[data-testid=turn]") ? Date.now() : undefined)).observe(document, { childList: true, subtree: true }));
    model.plan = [claude.run("echo hello > hello.txt")];
    const { output } = await workspace.agent(claude.command(program, "Say hello"), claude.env(model.url));
    await turn(page, "claude-1.1").waitFor();
    await turn(page, "claude-1.1").click();
    await page.getByTestId("file").filter({ hasText: "hello.txt" }).waitFor();
    assert.equal(page.requests.filter((url) => new URL(url).pathname === "/").length, loads, output);
    const [{ startedAt }] = (await ui.rpc("sightline/listTurns")).result.turns;
    console.log(`the row appeared ${(await page.evaluate(() => window.shownAt)) - startedAt} ms after the prompt`);
    await show(page, "health");
    await page.getByText(/last turn claude-1\.1/).waitFor();
    assert.deepEqual(page.problems, []);
  });
} else {
  console.error("tests/page: Claude Code is not in target/agents");
}
