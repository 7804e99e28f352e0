// Runs each agent in a terminal next to a real Neovim: what is selected there reaches the model.
// With `SIGHTLINE_RECORD=1`, the transcripts in `tests/transcripts/bridges` are recorded again.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { IDE_AGENTS } from "./ide.mjs";
import { call, startModel } from "./mock_model.mjs";
import { Neovim, neovimProgram } from "./neovim.mjs";
import { Recorder } from "./recorder.mjs";
import { Terminal } from "./terminal.mjs";
import { SECRET, Workspace, agentProgram, agentVersion } from "./workspace.mjs";

/** Text that only the buffer of the editor has. */
const PICKED = "PICKED-IN-NEOVIM-4412";
const OTHER = "OTHER-SELECTION-9930";

/** Prompts until a selection must have arrived: agents connect in the background. */
const PROMPTS = 5;

/** Agents whose tests fail with `CI` if they are not provided. */
const REQUIRED = process.env.CI ? (process.env.SIGHTLINE_TEST_AGENTS ?? "").split(" ") : [];

for (const agent of IDE_AGENTS) {
  const { name, ide } = agent;
  const program = agentProgram(name, agent.program);
  if (!program || !neovimProgram()) {
    const reason = `${name} or Neovim is not provided; run tests/provide/agents ${name}`;
    test(name, { skip: REQUIRED.includes(name) ? false : reason }, () => assert.fail(reason));
    continue;
  }
  describe(`${name}, connected to Neovim`, () => {
    let workspace, model, neovim, terminal, recorder;
    let prompts = 0;
    before(async () => {
      workspace = new Workspace(name);
      model = await startModel();
      agent.configure(workspace, model.url);
      ide.configure(workspace);
      neovim = await Neovim.start(workspace, { bridges: { [ide.setting]: true } }, "notes.txt");
      neovim.keys(`:call setline(1, '${PICKED} ${OTHER}')<CR>`);
      await eventually(() => files().length > 0, "the editor writes its files");
      if (process.env.SIGHTLINE_RECORD) recorder = await Recorder.start(workspace, join(workspace.folder, ide.files[0]));
      const words = [...(agent.interpreter ? [agent.interpreter] : []), ...ide.command(program)];
      const variables = {};
      if (ide.variable) {
        await eventually(() => neovim.evaluate(`$${ide.variable}`) !== "", "the editor sets the variable of its terminals");
        variables[ide.variable] = neovim.evaluate(`$${ide.variable}`);
      }
      terminal = new Terminal(words, { cwd: workspace.project, env: { ...workspace.env, ...agent.env(model.url), ...variables } });
      await terminal.expect(ide.ready);
      await sleep(2_000);
      await ide.prepare?.(terminal);
    });
    after(async () => {
      await terminal?.close();
      await neovim?.close();
      model?.close();
      workspace?.close();
    });

    function files() {
      const folders = ide.files.map((folder) => join(workspace.folder, folder)).filter(existsSync);
      return folders.flatMap((folder) => readdirSync(folder)).filter((file) => !file.startsWith("."));
    }

    async function eventually(isTrue, what) {
      const end = Date.now() + 20_000;
      while (!isTrue()) {
        assert.ok(Date.now() < end, `${what}\n${terminal?.text.slice(-2000) ?? ""}\n${neovim?.text.slice(-1000) ?? ""}`);
        await sleep(100);
      }
    }

    /** Selects a word of the first line. */
    async function select(word) {
      neovim.keys(`<C-\\><C-n>gg0/${word}<CR>viW`);
      await eventually(() => neovim.evaluate("mode()") === "v", "Neovim selects");
      await sleep(1_000);
    }

    /** Types a prompt. Returns what the model sees of it and of what was added to it. */
    async function ask() {
      const prompt = `prompt number ${++prompts}`;
      model.requests = [];
      await sleep(1_000);
      await terminal.type(prompt);
      await eventually(() => model.requests.some(({ text }) => text.includes(prompt)), `${prompt} reaches the model`);
      return model.requests.find(({ text }) => text.includes(prompt)).text;
    }

    async function askUntil(isThere) {
      let text;
      for (let tries = 0; tries < PROMPTS; tries++) {
        text = await ask();
        if (isThere(text)) return text;
      }
      assert.fail(`not in ${PROMPTS} prompts:\n${text.slice(-4000)}\n${terminal.text.slice(-2000)}`);
    }

    test("the selection reaches the model", async () => {
      await select(PICKED);
      await askUntil((text) => text.includes(PICKED));
      await select(OTHER);
      const text = await ask();
      assert.ok(text.includes(OTHER), text.slice(-4000));
    });

    test("a selection in a denied file does not", async () => {
      neovim.keys("<C-\\><C-n>:set hidden<CR>:edit secret.txt<CR>gg0v$");
      await eventually(() => neovim.evaluate("expand('%:t')") === "secret.txt", "Neovim opens the denied file");
      await sleep(1_000);
      const text = await ask();
      assert.ok(!text.includes(SECRET), text.slice(-4000));
    });

    // Transcripts are replayed to a client that shows no changes.
    const showsChanges = name === "claude" && !process.env.SIGHTLINE_RECORD;
    test("a proposed change is accepted and rejected in Neovim", { skip: !showsChanges && "no diffs in the editor" }, async () => {
      const made = join(workspace.project, "made.txt");
      const tabs = (count) => eventually(() => neovim.evaluate("tabpagenr('$')") === count, `${count} tab pages in Neovim`);
      neovim.keys("<C-\\><C-n>:edit notes.txt<CR>");
      const write = call("Write", { file_path: made, content: "proposed\n" });
      model.plan = [write, write];
      await ask();
      await tabs("2");
      assert.ok(!existsSync(made), "the file is not written before the decision");
      neovim.keys(":call setline(1, 'edited by the user')<CR>:Sightline accept<CR>");
      await eventually(() => existsSync(made), "the agent writes the file");
      assert.equal(readFileSync(made, "utf8"), "edited by the user\n");
      const { output } = await workspace.sightline("checkpoint", "list");
      assert.match(output, /claude-code/);

      // The same tool is called again, now for a file that exists.
      await tabs("2");
      neovim.keys(":Sightline reject<CR>");
      await tabs("1");
      assert.equal(readFileSync(made, "utf8"), "edited by the user\n");
      model.plan = [];
    });

    test("the files of the editor are gone when it quits", async () => {
      assert.ok(files().length > 0);
      await neovim.quit();
      recorder?.save(name, agentVersion(program), ide.setting);
      recorder?.close();
      await eventually(() => files().length === 0, "the files are removed");
    });
  });
}
