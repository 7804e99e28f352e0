// Real agents, started by `sightline run`: their requests go through the gateway, and denied files reach no model.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AGENTS } from "../agents/agents.mjs";
import { call, startModel } from "../agents/mock_model.mjs";
import { SECRET, SIGHTLINE, Workspace, agentProgram } from "../agents/workspace.mjs";
import { Gateway, MISSING } from "./gateway.mjs";
import { Strict } from "./strict.mjs";

const REQUIRED = process.env.CI ? (process.env.SIGHTLINE_TEST_AGENTS ?? "").split(" ") : [];

/** Agents that expand a mention of a file themselves. */
const EXPANDS_MENTIONS = ["claude", "gemini", "qwen", "cline"];
/** Tools that start a subagent, by what they are given. */
const SUBAGENTS = {
  Task: (prompt) => ({ description: "look", prompt, subagent_type: "general-purpose" }),
  Agent: (prompt) => ({ description: "look", prompt, subagent_type: "general-purpose" }),
  agent: (prompt) => ({ description: "look", prompt, subagent_type: "general-purpose" }),
  task: (prompt) => ({ description: "look", prompt, subagent_type: "general", agent_type: "general-purpose", name: "look" }),
  spawn_agent: (prompt, agent) => (agent === "cline" ? { systemPrompt: "You look at files", task: prompt } : { message: prompt }),
  invoke_agent: (prompt) => ({ agent_name: "generalist", prompt }),
};
const LEAKY = fileURLToPath(new URL("leaky_server.mjs", import.meta.url));

/** Adds an MCP server of the user that reads any file. */
function addLeakyServer({ name }, workspace) {
  const [command, args] = [process.execPath, [LEAKY]];
  const insert = (path, text) => workspace.write(path, readFileSync(join(workspace.home, path), "utf8").replace("{", `{ ${text},`));
  const servers = `"mcpServers": ${JSON.stringify({ leaky: { command, args, trust: true } })}`;
  if (name === "claude") workspace.write(".claude.json", { hasCompletedOnboarding: true, mcpServers: { leaky: { type: "stdio", command, args } } });
  if (name === "codex") {
    const config = readFileSync(join(workspace.home, ".codex/config.toml"), "utf8");
    workspace.write(".codex/config.toml", `${config}\n[mcp_servers.leaky]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`);
  }
  if (name === "gemini" || name === "qwen") insert(`.${name}/settings.json`, servers);
  if (name === "copilot") workspace.write(".copilot/mcp-config.json", { mcpServers: { leaky: { type: "local", command, args, tools: ["*"] } } });
  if (name === "cline") workspace.write(".cline/data/settings/cline_mcp_settings.json", { mcpServers: { leaky: { command, args } } });
  if (name === "opencode") insert(".config/opencode/opencode.jsonc", `"mcp": ${JSON.stringify({ leaky: { type: "local", command: [command, ...args], enabled: true } })}`);
}

for (const agent of AGENTS) {
  const program = agentProgram(agent.name, agent.program);
  if (MISSING || !program) {
    const reason = MISSING ?? `${agent.name} is not in target/agents; run tests/provide/agents ${agent.name}`;
    test(agent.name, { skip: REQUIRED.includes(agent.name) ? false : reason }, () => assert.fail(reason));
    continue;
  }
  describe(agent.name, () => {
    // It reads its address from its settings only.
    const isStartedByHand = agent.name === "cline";
    let workspace, model, strict, gateway;
    before(async () => {
      workspace = new Workspace(agent.name);
      strict = new Strict();
      model = await startModel({ strict });
      // The addresses of a user: the gateway has to forward to them.
      agent.configure(workspace, model.url);
      addLeakyServer(agent, workspace);
      if (!isStartedByHand) return;
      const { code, output } = await workspace.sightline("run", "--agent", agent.name, "--", program, "Hello");
      assert.deepEqual([code, model.requests], [2, []]);
      assert.match(output, /set `baseUrl`/);
      gateway = await Gateway.start(["--root", workspace.project, "--upstream", `own=${model.url}`], { folder: workspace.folder });
      agent.configure(workspace, `${gateway.url}/own`);
    });
    after(async () => {
      model?.close();
      await gateway?.kill();
      workspace?.close();
    });

    async function ask(prompt, ...plan) {
      model.plan = plan;
      model.requests = [];
      strict.refused = [];
      const own = agent.command(program, prompt).map((word) => word.replace("mcp__sightline__read_file", "mcp__leaky__read_file,Task,Agent"));
      const words = [...(agent.interpreter ? [agent.interpreter] : []), ...own];
      const run = isStartedByHand ? [] : [SIGHTLINE, "run", "--agent", agent.name, "--"];
      const { code, output } = await workspace.agent([...run, ...words], agent.env(model.url));
      assert.deepEqual(strict.refused, [], output);
      assert.ok(model.requests.every(({ text }) => !text.includes(SECRET)));
      return { code, output, requests: model.requests };
    }

    test("what its tools read of denied files reaches no model", async () => {
      // Qwen Code may lose the output of a program that ends at once.
      const show = (name) => agent.run(`cat ${name}; sleep 0.3`);
      const steps = [show("secret.txt"), show("notes.txt"), ...(agent.read ? [agent.read(join(workspace.project, "secret.txt"))] : [])];
      const { output, requests } = await ask("Read them", ...steps);
      assert.ok(requests.length > steps.length, output);
      const { results } = requests.at(-1);
      assert.match(results[0], /hidden from agents by \.clineignore:1/);
      assert.match(results[1], /saved text/);
      if (agent.read) assert.match(results[2], /hidden from agents by \.clineignore:1/);
      const usage = join(workspace.folder, isStartedByHand ? "data/gateway/usage.jsonl" : "data/sightline/gateway/usage.jsonl");
      assert.ok(existsSync(usage), output);
      const records = readFileSync(usage, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
      assert.ok(records.length >= requests.length);
      assert.ok(records.some(({ usage }) => usage.output > 0));
    });

    test("each request repeats the one before", async () => {
      const { output, requests } = await ask("Read them again", agent.run("cat secret.txt"), agent.run("cat notes.txt"), agent.run("cat secret.txt notes.txt"));
      assert.ok(requests.length >= 4, output);
      const items = requests.map(({ body }) => (body.messages ?? body.input ?? body.contents).map((item) => JSON.stringify(item, (key, value) => (key === "cache_control" ? undefined : value))));
      for (let at = 1; at < items.length; at += 1) {
        assert.deepEqual(items[at].slice(0, items[at - 1].length), items[at - 1]);
      }
    });

    if (EXPANDS_MENTIONS.includes(agent.name)) {
      test("a mention of a denied file does not", async () => {
        const { output, requests } = await ask("Explain @secret.txt and @notes.txt");
        assert.ok(requests.length > 0, output);
        assert.match(requests[0].text, /saved text/);
      });
    }

    test("what another MCP server reads does not", async () => {
      const { name, namespace } = agent.mcpRead("");
      const leak = (path) => call(name.replace("sightline", "leaky"), { path }, namespace?.replace("sightline", "leaky"));
      const { output, requests } = await ask("Use the server", ...["secret.txt", "notes.txt"].map((file) => leak(join(workspace.project, file))));
      assert.ok(requests.length >= 3, output);
      const { results } = requests.at(-1);
      assert.match(results[0], /hidden from agents by \.clineignore:1/);
      assert.match(results[1], /saved text/);
    });

    test("what a subagent reads does not", async (context) => {
      const offered = (await ask("What can you do?")).requests[0].tools;
      const tool = offered.find((name) => SUBAGENTS[name.split(".").at(-1)]);
      if (!tool) return context.skip("it offers no tool that starts a subagent");
      model.plans = { "You look into it": [agent.run("cat secret.txt notes.txt"), "It says DONE-LOOKING"] };
      const name = tool.split(".").at(-1);
      const start = call(name, SUBAGENTS[name]("You look into it", agent.name), tool.includes(".") ? tool.split(".")[0] : undefined);
      // Codex does not wait for it. The subagent does not see this mark.
      model.plans = { "DELEGATE THIS": agent.name === "codex" ? [start, agent.run("sleep 5")] : [start], ...model.plans };
      const { output, requests } = await ask("DELEGATE THIS");
      model.plans = {};
      const inner = requests.filter(({ text }) => !text.includes("DELEGATE THIS") && text.includes("You look into it"));
      const results = inner.flatMap(({ results }) => results).filter((result) => result !== "");
      assert.match(results[0] ?? output, /hidden from agents by \.clineignore:1/, output);
    });
  });
}
