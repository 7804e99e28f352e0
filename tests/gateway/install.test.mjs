// The gateway in the configuration of agents: written, removed to the byte, started by systemd, and told about.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { SECRET, SIGHTLINE, Workspace } from "../agents/workspace.mjs";
import { MISSING, Provider } from "./gateway.mjs";

const ACTIVATE = "/usr/bin/systemd-socket-activate";

/** The configuration of agents with an address of the user, and the part of the new one that leads to it. */
const CHAINED = [
  ["claude", ".claude/settings.json", (url) => `{\n  "env": {"ANTHROPIC_BASE_URL": "${url}"},\n  "model": "opus"\n}\n`, "/claude"],
  ["codex", ".codex/config.toml", (url) => `# mine\nmodel_provider = "own"\n\n[model_providers.own]\nname = "own" # x\nbase_url = "${url}/v1"\n`, "/codex-own"],
  ["qwen", ".qwen/settings.json", (url) => `{\n  // mine\n  "modelProviders": { "openai": [{ "id": "m", "baseUrl": "${url}/v1" }] },\n}`, "/qwen-openai-0"],
  ["opencode", ".config/opencode/opencode.jsonc", (url) => `{ "provider": { "own": { "options": { "baseURL": "${url}/v1" } } } }`, "/opencode-own"],
];
const PLAIN = [
  ["claude", ".claude/settings.json", "/anthropic"],
  ["codex", ".codex/config.toml", "/openai/v1"],
  ["qwen", ".qwen/settings.json", "/openai/v1"],
  ["opencode", ".config/opencode/opencode.json", "/gemini/v1beta"],
];

describe("the gateway in the configuration of agents", { skip: MISSING }, () => {
  let workspace, provider, started;
  beforeEach(async () => {
    workspace = new Workspace("gateway");
    provider = await Provider.start();
    started = [];
  });
  afterEach(() => {
    for (const child of started) child.kill("SIGKILL");
    provider.close();
    workspace.close();
  });

  const home = (path) => join(workspace.home, path);
  const read = (path) => readFileSync(home(path), "utf8");
  const install = (...options) => workspace.sightline("agents", "install", "--only", "gateway", ...options);
  const uninstall = (...options) => workspace.sightline("agents", "uninstall", "--yes", ...options);
  const units = ["sightline-gateway.socket", "sightline-gateway.service"].map((name) => `.config/systemd/user/${name}`);
  const port = () => Number(read(units[0]).match(/^ListenStream=127\.0\.0\.1:(\d+)$/m)[1]);

  /** A systemd that answers, and keeps what it is asked. */
  function systemd(code = 0) {
    const log = join(workspace.folder, "systemctl.log");
    const program = join(workspace.folder, "bin/systemctl");
    writeFileSync(program, `#!/bin/sh\necho "$@" >> '${log}'\nexit ${code}\n`);
    chmodSync(program, 0o755);
    return () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);
  }

  /** Starts the program of the unit as systemd does. */
  async function activate() {
    const line = read(units[1]).match(/^ExecStart=(.*)$/m)[1];
    const words = JSON.parse(`[${line.replaceAll('" "', '","')}]`);
    // systemd has few variables of a shell.
    const variables = ["HOME", "NO_PROXY"].flatMap((name) => ["-E", name]);
    const child = spawn(ACTIVATE, ["-l", `127.0.0.1:${port()}`, ...variables, ...words], { env: workspace.env, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
    started.push(child);
    await new Promise((resolve) => child.stderr.on("data", (data) => /Listening/.test(data) && resolve()));
  }

  async function ways(...options) {
    const { output, code } = await workspace.sightline("agents", "status", "--json", ...options);
    return { code, ways: Object.fromEntries(JSON.parse(output).map(({ agent, gateway }) => [agent, gateway])) };
  }

  /** Returns what the hook of Claude Code answers when a session starts. */
  function sessionStart(env = {}) {
    const input = JSON.stringify({ session_id: "s", cwd: workspace.project, hook_event_name: "SessionStart", source: "startup" });
    return execFileSync(SIGHTLINE, ["hook", "SessionStart", "--agent", "claude"], { cwd: workspace.project, env: { ...workspace.env, ...env }, input, encoding: "utf8" });
  }

  /** Sends a request from a process in a folder. */
  async function ask(url, folder, text) {
    const code = `const response = await fetch(${JSON.stringify(url)}, { method: "POST", headers: { "content-type": "application/json" }, body: ${JSON.stringify(JSON.stringify({ model: "m", messages: [{ role: "user", content: text }] }))} });
      console.log(response.status, await response.text());`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    await new Promise((resolve) => child.once("exit", resolve));
    return output;
  }

  test("it is written, and removed to the byte", async () => {
    const called = systemd();
    workspace.write(".gemini/settings.json", "{}\n");
    workspace.write(".claude/settings.json", '{"hooks": {}, "x":1}');
    for (const folder of [".codex", ".qwen", ".config/opencode"]) mkdirSync(home(folder), { recursive: true });
    const before = workspace.homeSnapshot();
    const shown = await install();
    assert.equal(shown.code, 1, shown.output);
    assert.match(shown.output, /PORT\/k\/SECRET\/anthropic/);
    assert.match(shown.output, /gemini-cli go past the gateway.*sightline run -- gemini/);
    assert.deepEqual(workspace.homeSnapshot(), before);

    const { code, output } = await install("--yes");
    assert.equal(code, 0, output);
    for (const [, path, end] of PLAIN) assert.match(read(path), new RegExp(`"http://127\\.0\\.0\\.1:${port()}/k/[0-9a-f]{32}${end}"`));
    assert.match(read(units[1]), /^ExecStart="[^"]+\/sightline" "gateway" "--service" "--storage" "[^"]+\/data\/sightline"$/m);
    assert.deepEqual(called().slice(-4), ["daemon-reload", "stop sightline-gateway.service", "enable sightline-gateway.socket", "restart sightline-gateway.socket"].map((words) => `--user ${words}`));
    assert.match((await install()).output, /Nothing to do/);

    // The units stay while an agent needs them.
    assert.equal((await uninstall("--agent", "claude")).code, 0);
    assert.ok(existsSync(home(units[0])));
    assert.equal(read(".claude/settings.json"), '{"hooks": {}, "x":1}');
    assert.equal((await uninstall("--only", "gateway")).code, 0);
    assert.deepEqual(workspace.homeSnapshot(), before);
    assert.deepEqual(called().slice(-2), ["disable --now sightline-gateway.socket", "stop sightline-gateway.service"].map((words) => `--user ${words}`));
  });

  test("with hooks and servers in the same files", async () => {
    systemd();
    workspace.write(".claude/settings.json", '{"hooks": {"Stop": []}}\n');
    workspace.write(".codex/config.toml", 'model = "m" # mine\n');
    const before = workspace.homeSnapshot();
    assert.equal((await workspace.sightline("agents", "install", "--yes")).code, 0);
    const without = workspace.homeSnapshot();
    assert.equal((await install("--yes")).code, 0);
    // A later installation keeps it.
    assert.match((await workspace.sightline("agents", "install")).output, /Nothing to do/);
    assert.equal((await uninstall("--only", "gateway")).code, 0);
    assert.deepEqual(workspace.homeSnapshot(), without);
    assert.equal((await install("--yes")).code, 0);
    assert.equal((await uninstall()).code, 0);
    assert.deepEqual(workspace.homeSnapshot(), before);
    // Hooks go, the gateway and the address behind it stay.
    workspace.write(".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "${provider.url}"}}\n`);
    assert.equal((await install("--yes", "--chain", "--agent", "claude")).code, 0);
    const alone = read(".claude/settings.json");
    assert.equal((await workspace.sightline("agents", "install", "--yes", "--agent", "claude")).code, 0);
    assert.equal((await uninstall("--only", "mcp,context,access", "--agent", "claude")).code, 0);
    assert.equal(read(".claude/settings.json"), alone);
  });

  for (const [agent, path, text, end] of CHAINED) {
    test(`addresses of the user of ${agent}`, async () => {
      systemd();
      workspace.write(path, text(provider.url));
      const before = workspace.homeSnapshot();
      const refused = await install("--yes");
      assert.equal(refused.code, 3, refused.output);
      assert.match(refused.output, /with --chain, the gateway forwards to it/);
      assert.equal(read(path), text(provider.url));
      const { code, output } = await install("--yes", "--chain");
      assert.equal(code, 0, output);
      assert.ok(read(path).includes(`${end}"`) && !read(path).includes(provider.url), read(path));
      // The agent writes its file again.
      if (agent === "claude") {
        writeFileSync(home(path), JSON.stringify({ ...JSON.parse(read(path)), added: true }));
        assert.equal((await uninstall()).code, 0);
        assert.deepEqual(JSON.parse(read(path)), { ...JSON.parse(text(provider.url)), added: true });
        return;
      }
      assert.equal((await uninstall()).code, 0);
      assert.deepEqual(workspace.homeSnapshot(), before);
    });
  }

  test("an address that the gateway cannot use is not chained", async () => {
    systemd();
    workspace.write(".claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": "http://gateway.example"}}');
    const before = workspace.homeSnapshot();
    const { code, output } = await install("--yes", "--chain");
    assert.equal(code, 3, output);
    assert.match(output, /https/);
    assert.deepEqual(workspace.homeSnapshot(), before);
  });

  test("an agent without a file for it is refused by name", async () => {
    for (const agent of ["gemini", "copilot", "cline"]) {
      const { code, output } = await install("--yes", "--agent", agent);
      assert.equal(code, 3, output);
      assert.match(output, /go past the gateway/);
    }
  });

  test("status and doctor say where requests go", { skip: existsSync(ACTIVATE) ? false : `${ACTIVATE} is missing` }, async () => {
    systemd();
    workspace.write(".claude/settings.json", '{"x": 1}');
    workspace.write(".codex/config.toml", "");
    assert.deepEqual(await ways("--agent", "claude"), { code: 0, ways: { claude: "past" } });
    await install("--yes", "--agent", "claude");
    assert.deepEqual(await ways(), { code: 1, ways: { claude: "notRunning", codex: "past", gemini: "past", qwen: "past", copilot: "past", opencode: "past", cline: "past" } });
    assert.match(JSON.parse(sessionStart()).systemMessage, /^Sightline: the gateway does not run on port \d+, so the agent gets no answer; run `systemctl /);
    // `sightline run` started one for this agent.
    assert.equal(sessionStart({ SIGHTLINE_GATEWAY: "http://127.0.0.1:1/k/0" }), "");
    const stopped = await workspace.sightline("doctor");
    assert.match(stopped.output, /Claude Code: the gateway does not run on port \d+/);
    await activate();
    assert.deepEqual(await ways("--agent", "claude"), { code: 0, ways: { claude: "through" } });
    assert.equal(sessionStart(), "");
    const { output } = await workspace.sightline("agents", "status");
    assert.match(output, /^Claude Code +gateway \(user\).*requests go through the gateway/m);
    assert.match(output, /^Codex .*requests go past the gateway/m);
    assert.match((await workspace.sightline("doctor")).output, /Claude Code \(through the gateway\)/);
    // Settings of the project win.
    mkdirSync(join(workspace.project, ".claude"));
    writeFileSync(join(workspace.project, ".claude/settings.local.json"), '{"env": {"ANTHROPIC_BASE_URL": "https://other.example"}}');
    assert.deepEqual(await ways("--agent", "claude"), { code: 1, ways: { claude: "past" } });
    assert.match((await workspace.sightline("agents", "status")).output, /requests go past the gateway \(ANTHROPIC_BASE_URL\)/);
    assert.match(JSON.parse(sessionStart()).systemMessage, /requests go past the gateway \(ANTHROPIC_BASE_URL\)/);
  });

  test("started by its socket, it applies the rules of the workspace of each agent", { skip: existsSync(ACTIVATE) ? false : `${ACTIVATE} is missing` }, async () => {
    systemd();
    workspace.write(".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "${provider.url}"}}`);
    assert.equal((await install("--yes", "--chain")).code, 0);
    await activate();
    const url = `${JSON.parse(read(".claude/settings.json")).env.ANTHROPIC_BASE_URL}/v1/messages`;
    const other = mkdtempSync(join(tmpdir(), "sightline-gateway-"));
    writeFileSync(join(other, ".clineignore"), "mine.txt\n");
    writeFileSync(join(other, "mine.txt"), "a denied line of the other workspace\n");
    mkdirSync(join(other, "below"));
    const sent = async (folder) => {
      // Each is a conversation: what was hidden in one stays so.
      const text = `${folder}\n${SECRET}\na denied line of the other workspace`;
      assert.match(await ask(url, folder, text), /^200 /);
      return provider.requests.at(-1).bytes.toString();
    };
    const first = await sent(workspace.project);
    assert.ok(!first.includes(SECRET) && first.includes("a denied line"), first);
    const second = await sent(join(other, "below"));
    assert.ok(second.includes(SECRET) && !second.includes("a denied line"), second);
    assert.match(await ask(url.replace(/\/k\/.{32}/, `/k/${"0".repeat(32)}`), other, "x"), /^401 /);
    rmSync(other, { recursive: true });
  });

  test("without systemd, the user starts it at the same address", async () => {
    systemd(1);
    workspace.write(".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "${provider.url}"}}`);
    const { output } = await install("--yes", "--chain");
    assert.match(output, /start `sightline gateway --service` when you log in/);
    assert.ok(!existsSync(home(units[0])));
    const url = JSON.parse(read(".claude/settings.json")).env.ANTHROPIC_BASE_URL;
    const child = spawn(SIGHTLINE, ["gateway", "--service"], { env: workspace.env, cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
    started.push(child);
    const line = await new Promise((resolve) => child.stdout.once("data", resolve));
    assert.equal(`${JSON.parse(line).url}/claude`, url);
    assert.match(await ask(`${url}/v1/messages`, workspace.project, SECRET), /^200 /);
    assert.ok(!provider.requests[0].bytes.includes(SECRET));
    assert.deepEqual(await ways("--agent", "claude"), { code: 0, ways: { claude: "through" } });
  });

  test("an agent that is started by `run` uses one gateway", async () => {
    systemd(1);
    workspace.write(".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "${provider.url}"}}`);
    await install("--yes", "--chain");
    // The gateway of the configuration does not run.
    const script = `const url = JSON.parse(process.argv.at(-1)).env.ANTHROPIC_BASE_URL;
      fetch(url + "/v1/messages", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }).then(({ status }) => console.log(status));`;
    const program = join(workspace.folder, "bin/claude");
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' -e '${script}' -- "$@"\n`);
    chmodSync(program, 0o755);
    const { output } = await workspace.sightline("run", "--", program);
    assert.match(output, /^200$/m);
    assert.equal(provider.requests.length, 1);
  });
});

