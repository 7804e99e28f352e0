// Runs each agent with a real MCP server that was moved to Sightline, and with one that the agent has itself.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AGENTS } from "./agents.mjs";
import { startModel } from "./mock_model.mjs";
import { SECRET, Workspace, agentProgram } from "./workspace.mjs";

const SERVER = resolve(dirname(fileURLToPath(import.meta.url)), "../../target/mcp/node/node_modules/.bin/mcp-server-filesystem");

/** Adds an object to a text of JSON. */
const inJson = (member) => (text, entry) => (text ?? "{\n}\n").replace("{", `{\n  "${member}": ${JSON.stringify({ fs: entry })}${/^\{\s*\}/.test(text ?? "{}") ? "" : ","}`);
const local = ([command, ...args]) => ({ command, args });

/** Where each agent keeps its servers, and the form of an entry. */
const FILES = {
  claude: { path: ".claude.json", add: (text, entry) => JSON.stringify({ ...JSON.parse(text), mcpServers: { fs: entry } }, null, 2), entry: (words) => ({ type: "stdio", ...local(words), env: {} }) },
  codex: {
    path: ".codex/config.toml",
    add: (text, { command, args }) => `${text}\n[mcp_servers.fs] # files\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`,
    entry: local,
  },
  gemini: { path: ".gemini/settings.json", add: inJson("mcpServers"), entry: local },
  qwen: { path: ".qwen/settings.json", add: inJson("mcpServers"), entry: local },
  copilot: { path: ".copilot/mcp-config.json", add: (_, entry) => JSON.stringify({ mcpServers: { fs: entry } }), entry: (words) => ({ type: "local", ...local(words), tools: ["*"] }) },
  opencode: { path: ".config/opencode/opencode.jsonc", add: inJson("mcp"), entry: (words) => ({ type: "local", command: words, enabled: true }) },
  cline: { path: ".cline/data/settings/cline_mcp_settings.json", add: inJson("mcpServers"), entry: local },
};

for (const agent of AGENTS) {
  const program = agentProgram(agent.name, agent.program);
  const missing = program ? !existsSync(SERVER) && "the MCP servers are not in target/mcp; run tests/provide/mcp" : `${agent.name} is not in target/agents; run tests/provide/agents ${agent.name}`;
  if (missing) {
    test(agent.name, { skip: process.env.CI && program ? false : missing }, () => assert.fail(missing));
    continue;
  }
  describe(agent.name, () => {
    test("a server that was moved to Sightline is judged, and one of the agent is not offered twice", async (t) => {
      const workspace = new Workspace(agent.name);
      const model = await startModel();
      t.after(() => {
        model.close();
        workspace.close();
      });
      agent.configure(workspace, model.url);
      const { path, add, entry } = FILES[agent.name];
      const file = join(workspace.home, path);
      mkdirSync(dirname(file), { recursive: true });
      const words = [SERVER, workspace.project];
      writeFileSync(file, add(existsSync(file) ? readFileSync(file, "utf8") : undefined, entry(words)));
      const before = readFileSync(file, "utf8");
      const sightline = async (...args) => {
        const { code, output } = await workspace.sightline(...args);
        assert.equal(code, 0, output);
        return output;
      };
      assert.match(await sightline("mcp", "list", "--found"), new RegExp(`fs +${agent.name}`));
      await sightline("mcp", "adopt", "--agent", agent.name, "fs");
      assert.doesNotMatch(readFileSync(file, "utf8"), /mcp-server-filesystem/);
      const adopted = readFileSync(file, "utf8");
      // Hooks would refuse the call before the server gets it.
      await sightline("agents", "install", "--agent", agent.name, "--only", "mcp", "--yes");

      const called = (call) => ({ ...call, name: call.name.replace(/read_file$/, "fs__read_text_file") });
      const read = (name) => called(agent.mcpRead(join(workspace.project, name)));
      const ask = async (...plan) => {
        model.plan = plan;
        model.requests = [];
        const allowed = (word) => word.replace("mcp__sightline__read_file", "mcp__sightline__read_file,mcp__sightline__fs__read_text_file");
        const command = [...(agent.interpreter ? [agent.interpreter] : []), ...agent.command(program, "Read the files").map(allowed)];
        const { output } = await workspace.agent(command, agent.env(model.url));
        assert.ok(model.requests.length > 0, output);
        assert.ok(model.requests.every(({ text }) => !text.includes(SECRET)));
        return model.requests.at(-1);
      };
      const { results, tools } = await ask(read("secret.txt"), read("notes.txt"));
      // Claude Code lets the model search for most tools.
      if (agent.mcpTool && agent.name !== "claude") assert.ok(tools.includes(agent.mcpTool.replace(/read_file$/, "fs__read_text_file")), tools.join(", "));
      assert.match(results[0], /sightline: .*\.clineignore:1/s);
      assert.match(results[1], /saved text/);

      await sightline("agents", "uninstall", "--agent", agent.name, "--yes");
      if (readFileSync(file, "utf8") === adopted) {
        await sightline("mcp", "release", "fs");
        assert.equal(readFileSync(file, "utf8"), before);
      } else {
        // The agent has written its file.
        await sightline("mcp", "release", "fs");
        assert.match(readFileSync(file, "utf8"), /mcp-server-filesystem/);
      }
      // The agent has it, and Sightline too.
      await sightline("agents", "install", "--agent", agent.name, "--only", "mcp", "--yes");
      await sightline("mcp", "add", "fs", "--", ...words);
      const again = await ask(agent.mcpRead("notes.txt"));
      assert.match(again.results[0], /saved text/);
      assert.doesNotMatch(again.tools.join(" "), /sightline\W*_*fs__/);
      assert.doesNotMatch(again.text, /mcp__sightline__fs__/);
    });
  });
}
