// Runs each agent with the configuration that `sightline agents install` writes.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { AGENTS } from "./agents.mjs";
import { Editor } from "./editor.mjs";
import { startModel } from "./mock_model.mjs";
import { SECRET, SIGHTLINE, Workspace, agentProgram } from "./workspace.mjs";

const HEADING = "# Editor Open Tabs";

/** Agents whose tests fail with `CI` if they are not provided. */
const REQUIRED = process.env.CI ? (process.env.SIGHTLINE_TEST_AGENTS ?? "").split(" ") : [];

for (const agent of AGENTS) {
  const program = agentProgram(agent.name, agent.program);
  if (!program) {
    const reason = `${agent.name} is not in target/agents; run tests/provide/agents ${agent.name}`;
    test(agent.name, { skip: REQUIRED.includes(agent.name) ? false : reason }, () => assert.fail(reason));
    continue;
  }
  describe(agent.name, () => {
    let workspace, model, editor;
    before(async () => {
      workspace = new Workspace(agent.name);
      model = await startModel();
      agent.configure(workspace, model.url);
      const { code, output } = await workspace.sightline("agents", "install", "--agent", agent.name, "--yes");
      assert.equal(code, 0, output);
      editor = await Editor.start(SIGHTLINE, workspace.project, workspace.env);
      editor.open("notes.txt", "UNSAVED-TEXT\n");
      editor.open("secret.txt");
      editor.showTabs("notes.txt", "secret.txt");
    });
    after(async () => {
      await editor?.close();
      model?.close();
      workspace?.close();
    });

    /** Runs the agent with a prompt. Returns the requests to the model, and the output. */
    function ask(prompt, ...plan) {
      return askWith({}, prompt, ...plan);
    }

    /** The same with variables in the environment of the agent. */
    function askWith(env, prompt, ...plan) {
      return start(agent.command(program, prompt), env, plan);
    }

    /** The same in the last session. */
    function askAgain(prompt) {
      return start(agent.resume(program, prompt), {}, []);
    }

    async function start(command, env, plan) {
      model.plan = plan;
      model.requests = [];
      const words = [...(agent.interpreter ? [agent.interpreter] : []), ...command];
      const { output } = await workspace.agent(words, { ...agent.env(model.url), ...env });
      return { requests: model.requests, output };
    }

    test("the first prompt has the block, without the denied tab", async () => {
      const { requests, output } = await ask("The first prompt");
      assert.ok(requests.length > 0, output);
      const { text } = requests[0];
      assert.match(text, /The first prompt/);
      const block = text.slice(text.indexOf(HEADING)).split("\n\n")[0];
      assert.match(block, /notes\.txt/, text);
      assert.doesNotMatch(block, /secret\.txt/);
    });

    test("a turn has its prompt", async () => {
      await ask("A prompt to find again");
      const { output } = await workspace.sightline("request", "listTurns");
      const prompts = JSON.parse(output).turns.map(({ prompt }) => prompt ?? "");
      assert.ok(prompts.some((prompt) => prompt.includes("A prompt to find again")), output);
    });

    if (agent.read) {
      test("its tool reads no denied file, and the model learns the rule", async () => {
        const { requests, output } = await ask("Read both", agent.read(join(workspace.project, "secret.txt")), agent.read(join(workspace.project, "notes.txt")));
        const { results } = requests.at(-1) ?? assert.fail(output);
        assert.match(results[0], /\.clineignore/);
        assert.match(results[1], /saved text/);
        assert.ok(requests.every(({ text }) => !text.includes(SECRET)));
      });
    }

    if (agent.keepsHookTexts) {
      test("a change from outside is told to a continued session, once", async () => {
        const path = join(workspace.project, "notes.txt");
        await ask("Read it", agent.read(path));
        const before = readFileSync(path);
        writeFileSync(path, "CHANGED\n");
        const told = await askAgain("The second prompt");
        const { text } = told.requests[0] ?? assert.fail(told.output);
        assert.match(text, /The second prompt/);
        assert.equal(text.split("# Recently Modified Files").length, 2, text);
        assert.match(text, /read them again before you edit:\\?n?\s*notes\.txt/);
        writeFileSync(path, before);
        const again = await askAgain("The third prompt");
        assert.equal(again.requests[0].text.split("# Recently Modified Files").length, 3);
        const last = await askAgain("The last prompt");
        assert.equal(last.requests[0].text.split("# Recently Modified Files").length, 3);
      });
    }

    if (agent.hasResumeHook) {
      test("a continued session gets its working context", async () => {
        await ask("Read only this", agent.read(join(workspace.project, "notes.txt")));
        const { requests, output } = await askAgain("And now?");
        const { text } = requests[0] ?? assert.fail(output);
        assert.match(text, /# Working Context/);
        // opencode quotes the words of its command line.
        assert.match(text, /# First Prompt\\?n?\s*[\\"]*Read only this/);
        assert.match(text, /# Files You Read\\?n?\s*notes\.txt/);
        assert.match(text, new RegExp(`${agent.name}-\\d+\\.1`));
      });
    }

    if (agent.edit) {
      test("an edit of a file with unsaved text is refused once", async () => {
        const path = join(workspace.project, "notes.txt");
        const before = readFileSync(path);
        const edit = agent.edit(path, "saved", "edited");
        const { requests, output } = await ask("Edit it", agent.read(path), edit, edit);
        const { results } = requests.at(-1) ?? assert.fail(output);
        assert.match(results[1], /notes\.txt has unsaved changes in Editor/);
        assert.match(readFileSync(path, "utf8"), /edited/, results[2]);
        writeFileSync(path, before);
      });
    }

    test("a command that changes a file with unsaved text is refused once", async () => {
      const path = join(workspace.project, "notes.txt");
      const before = readFileSync(path);
      const command = agent.run("echo added >> notes.txt");
      const { requests, output } = await ask("Run it", command, command);
      const { results } = requests.at(-1) ?? assert.fail(output);
      assert.match(results[0], /notes\.txt has unsaved changes in Editor/);
      assert.match(readFileSync(path, "utf8"), /added/, results[1]);
      writeFileSync(path, before);
    });

    test("its shell reads no denied file, and the model learns the rule", async () => {
      const { requests, output } = await ask("Run both", agent.run("cat secret.txt"), agent.run("cat notes.txt"));
      const { results } = requests.at(-1) ?? assert.fail(output);
      assert.match(results[0], /\.clineignore/);
      assert.match(results[1], /saved text/);
      assert.ok(requests.every(({ text }) => !text.includes(SECRET)));
    });

    if (agent.replacesOutput) {
      test("a value of a denied file is replaced in the output of a command", async () => {
        writeFileSync(join(workspace.project, ".env"), "TOKEN=a8Kd9Lq2Zx7Wm3Rt\n");
        const { requests, output } = await ask("Run it", agent.run("printf 'begin %s%s end' a8Kd9Lq2 Zx7Wm3Rt"));
        const { results } = requests.at(-1) ?? assert.fail(output);
        assert.match(results[0], /begin \[hidden: \.env\] end/);
        assert.ok(requests.every(({ text }) => !text.includes("a8Kd9Lq2Zx7Wm3Rt")));
      });
    }

    if (agent.hidesFiles) {
      test("its commands cannot open denied files, and its own rules stay", async () => {
        const home = workspace.homeSnapshot();
        const { code, output } = await workspace.sightline("agents", "install", "--agent", agent.name, "--only", "commands", "--yes");
        assert.equal(code, 0, output);
        writeFileSync(join(workspace.project, ".env"), "TOKEN=a8Kd9Lq2Zx7Wm3Rt\n");
        writeFileSync(join(workspace.project, ".gitignore"), ".env\n");
        writeFileSync(join(workspace.project, "show.py"), "print('read:' + open('.e' + 'nv').read())\n");
        const run = (...commands) => ask("Run", ...commands.map(agent.run), agent.mcpRead(join(workspace.project, "notes.txt")));
        const first = await run("python3 show.py; git add -A && git status --short", "x=.en; cat ${x}v; grep -c TOKEN .e*");
        const { results } = first.requests.at(-1) ?? assert.fail(first.output);
        assert.match(results[0], /Permission denied/);
        assert.match(results[0], /A {2}show\.py/);
        assert.doesNotMatch(results.join(), /read:TOKEN/);
        assert.match(results[2], /UNSAVED-TEXT/);
        assert.ok(first.requests.every(({ text }) => !text.includes("a8Kd9Lq2Zx7Wm3Rt")));
        // The rules of the user match the command as it is; others are asked about.
        const settings = join(workspace.home, agent.hidesFiles.file);
        const { command, env } = agent.hidesFiles.onlyPython(agent.command(program, "Run"));
        const installed = readFileSync(settings);
        const own = join(workspace.home, ".config/sightline/config.toml");
        writeFileSync(own, `${readFileSync(own, "utf8")}visibleTo = ["python3 show.py"]\n`);
        const second = await start(command, env, [agent.run("python3 show.py"), agent.run("python3 ./show.py"), agent.run("rm show.py")]);
        const answers = (second.requests.at(-1) ?? assert.fail(second.output)).results;
        // The value is replaced in the result, but the command has read the file.
        assert.match(answers[0], /read:TOKEN=\[hidden: \.env\]/);
        assert.match(answers[1], /Permission denied/);
        // opencode ends after a refusal.
        assert.match(answers[2] ?? second.output, /approval|permission/i);
        assert.ok(existsSync(join(workspace.project, "show.py")));
        writeFileSync(own, readFileSync(own, "utf8").replace(/visibleTo.*\n/, ""));
        assert.deepEqual(readFileSync(settings), installed);
        const removed = await workspace.sightline("agents", "uninstall", "--agent", agent.name, "--only", "commands", "--yes");
        assert.equal(removed.code, 0, removed.output);
        const entries = (snapshot) => Object.keys(snapshot).filter((name) => name === agent.hidesFiles.file || name.endsWith("config.toml"));
        const after = workspace.homeSnapshot();
        assert.deepEqual(entries(after), entries(home));
        assert.equal(after[agent.hidesFiles.file], home[agent.hidesFiles.file]);
      });
    }

    test("the MCP tools are offered, and read unsaved text", async () => {
      const { requests, output } = await ask("Use the tools", agent.mcpRead("notes.txt"), agent.mcpRead("secret.txt"));
      const { results, tools } = requests.at(-1) ?? assert.fail(output);
      if (agent.mcpTool) assert.ok(tools.includes(agent.mcpTool), tools.join(", "));
      assert.match(results[0], /UNSAVED-TEXT/);
      assert.match(results[1], /\.clineignore/);
      assert.ok(requests.every(({ text }) => !text.includes(SECRET)));
    });

    if (agent.blocksMentions) {
      test("a prompt that mentions a denied file is refused with the rule", async () => {
        const { requests, output } = await ask("Explain @secret.txt");
        assert.deepEqual(requests, []);
        assert.match(output, /\.clineignore/);
      });
    }

    test("started with a short PATH, its shell reads no denied file", async () => {
      const { requests, output } = await askWith({ PATH: "/usr/bin:/bin" }, "Run it", agent.run("cat secret.txt"));
      const { results } = requests.at(-1) ?? assert.fail(output);
      assert.match(results[0], /\.clineignore/);
      assert.ok(requests.every(({ text }) => !text.includes(SECRET)));
    });

    test("without the program, its tools are refused and its prompts pass", async () => {
      workspace.hideProgram();
      try {
        const plan = [agent.run("cat notes.txt"), ...(agent.read ? [agent.read(join(workspace.project, "notes.txt"))] : [])];
        const { requests, output } = await ask("The program is gone", ...plan);
        assert.match(requests[0]?.text ?? assert.fail(output), /The program is gone/);
        const { results } = requests.at(-1);
        assert.equal(results.length, plan.length, output);
        for (const result of results) assert.match(result, /Sightline gave no answer/);
      } finally {
        workspace.showProgram();
      }
    });

    test("uninstall leaves nothing of it", async () => {
      const { code, output } = await workspace.sightline("agents", "uninstall", "--agent", agent.name, "--yes");
      assert.equal(code, 0, output);
      model.requests = [];
      const { requests } = await ask("The last prompt");
      assert.ok(requests.length > 0);
      assert.doesNotMatch(requests[0].text, /# Editor Open Tabs/);
    });

    test("uninstall after install is the identity", async () => {
      const fresh = new Workspace(agent.name);
      try {
        agent.configure(fresh, model.url);
        const before = fresh.homeSnapshot();
        for (const action of ["install", "uninstall"]) {
          const { code, output } = await fresh.sightline("agents", action, "--agent", agent.name, "--yes");
          assert.equal(code, 0, output);
          if (action === "install") assert.notDeepEqual(fresh.homeSnapshot(), before);
        }
        assert.deepEqual(fresh.homeSnapshot(), before);
      } finally {
        fresh.close();
      }
    });
  });
}
