// How each agent is started with a model on loopback, and the names that its tools have.
//
// `program` is the path below the agent's `node_modules`, and `interpreter` runs it.
// `configure` writes what a user has before `sightline agents install`. `command` is the command line of a
// prompt in a new session, `resume` of one in the last session. `keepsHookTexts`: a resumed session has the
// texts that hooks added before. `hasResumeHook`: a hook runs when a session is resumed.
// `hidesFiles`: commands can be hidden from, by an entry in `file`; `onlyPython` allows no other commands.

import { call } from "./mock_model.mjs";

const PLATFORM = `linux-${process.arch}`;
const TARGET = process.arch === "arm64" ? "aarch64-unknown-linux-musl" : "x86_64-unknown-linux-musl";

const claudeOptions = (prompt) => ["-p", prompt, "--allowedTools", "Read,Edit,Bash,mcp__sightline__read_file", "--model", "claude-sonnet-4-5"];
const CODEX_OPTIONS = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"];
const geminiOptions = (prompt) => ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", prompt];

export const AGENTS = [
  {
    name: "claude",
    program: `@anthropic-ai/claude-code-${PLATFORM}/claude`,
    configure(workspace) {
      workspace.write(".claude.json", { hasCompletedOnboarding: true, mcpServers: {} });
      workspace.write(".claude/settings.json", { hooks: { Stop: [{ hooks: [{ type: "command", command: "true" }] }] }, cleanupPeriodDays: 20 });
    },
    command: (program, prompt) => [program, ...claudeOptions(prompt)],
    resume: (program, prompt) => [program, "--continue", ...claudeOptions(prompt)],
    keepsHookTexts: true,
    hasResumeHook: true,
    env: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "none",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_AUTOUPDATER: "1",
    }),
    edit: (path, before, after) => call("Edit", { file_path: path, old_string: before, new_string: after }),
    read: (path) => call("Read", { file_path: path }),
    run: (command) => call("Bash", { command, description: "show" }),
    mcpRead: (path) => call("mcp__sightline__read_file", { path }),
    mcpTool: "mcp__sightline__read_file",
    replacesOutput: true,
    hidesFiles: {
      file: ".claude/settings.json",
      onlyPython: (command) => ({ command: command.map((word) => (word.includes("Bash") ? "Bash(python3:*)" : word)), env: {} }),
    },
    blocksMentions: true,
  },
  {
    name: "codex",
    program: `@openai/codex-${PLATFORM}/vendor/${TARGET}/bin/codex`,
    configure(workspace, url) {
      workspace.write(
        ".codex/config.toml",
        `# The user's settings.\nmodel = "mock"\nmodel_provider = "mock"\n\n[model_providers.mock]\nname = "mock" # on loopback\nbase_url = "${url}/v1"\nwire_api = "responses"\n`,
      );
    },
    // The test grants the trust that Codex asks its user for.
    command: (program, prompt) => [program, "exec", ...CODEX_OPTIONS, prompt],
    resume: (program, prompt) => [program, "exec", "resume", "--last", ...CODEX_OPTIONS, prompt],
    env: () => ({}),
    // Codex has no tool to read files.
    run: (command) => call("exec_command", { cmd: command }),
    mcpRead: (path) => call("read_file", { path }, "mcp__sightline"),
    mcpTool: "mcp__sightline.read_file",
  },
  {
    name: "gemini",
    program: "@google/gemini-cli/bundle/gemini.js",
    interpreter: process.execPath,
    configure(workspace) {
      workspace.write(
        ".gemini/settings.json",
        `{
  // The user's settings.
  "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
  "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
  "privacy": { "usageStatisticsEnabled": false },
  "telemetry": { "enabled": false },
  "ide": { "enabled": false, "hasSeenNudge": true }
}
`,
      );
    },
    command: (program, prompt) => [program, ...geminiOptions(prompt)],
    resume: (program, prompt) => [program, "--resume", "latest", ...geminiOptions(prompt)],
    hasResumeHook: true,
    env: (url) => ({
      GEMINI_API_KEY: "none",
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_CLI_NO_RELAUNCH: "true",
      // In a container gemini-cli looks for its companion on the host, unless it is used by SSH.
      SSH_CONNECTION: "127.0.0.1 1 127.0.0.1 22",
    }),
    read: (path) => call("read_file", { file_path: path }),
    run: (command) => call("run_shell_command", { command, description: "show" }),
    mcpRead: (path) => call("mcp_sightline_read_file", { path }),
    mcpTool: "mcp_sightline_read_file",
    replacesOutput: true,
    blocksMentions: true,
  },
  {
    name: "qwen",
    program: "@qwen-code/qwen-code/cli.js",
    interpreter: process.execPath,
    configure(workspace) {
      workspace.write(
        ".qwen/settings.json",
        `{
  // The user's settings.
  "security": { "auth": { "selectedType": "openai" } },
  "general": { "enableAutoUpdate": false },
  "telemetry": { "enabled": false },
  "privacy": { "usageStatisticsEnabled": false }
}
`,
      );
    },
    command: (program, prompt) => [program, "--approval-mode", "yolo", "-p", prompt],
    env: (url) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none", OPENAI_MODEL: "mock" }),
    read: (path) => call("read_file", { file_path: path }),
    run: (command) => call("run_shell_command", { command, description: "show", is_background: false }),
    mcpRead: (path) => call("mcp__sightline__read_file", { path }),
    // Qwen Code names the tools in a reminder instead of offering them.
    mcpTool: undefined,
  },
  {
    name: "copilot",
    program: `@github/copilot-${PLATFORM}/copilot`,
    configure(workspace) {
      workspace.write(".copilot/mcp-config.json", { mcpServers: {} });
    },
    command: (program, prompt) => [program, "-p", prompt, "--allow-all-tools", "--allow-all-paths"],
    env: (url) => ({ COPILOT_OFFLINE: "true", COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_PROVIDER_API_KEY: "none", COPILOT_MODEL: "mock" }),
    read: (path) => call("view", { path }),
    run: (command) => call("bash", { command, description: "show" }),
    mcpRead: (path) => call("sightline-read_file", { path }),
    mcpTool: "sightline-read_file",
  },
  {
    name: "opencode",
    program: `opencode-${PLATFORM}/bin/opencode`,
    configure(workspace, url) {
      workspace.write(
        ".config/opencode/opencode.jsonc",
        `{
  // The user's settings.
  "model": "mock/mock",
  "autoupdate": false,
  "permission": "allow",
  "provider": {
    "mock": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "${url}/v1", "apiKey": "none" }, "models": { "mock": {} } },
  },
}
`,
      );
    },
    command: (program, prompt) => [program, "run", prompt],
    resume: (program, prompt) => [program, "run", "--continue", prompt],
    env: () => ({}),
    read: (path) => call("read", { filePath: path }),
    run: (command) => call("bash", { command, description: "show" }),
    mcpRead: (path) => call("sightline_read_file", { path }),
    mcpTool: "sightline_read_file",
    replacesOutput: true,
    hidesFiles: {
      file: ".config/opencode/plugins/sightline.js",
      onlyPython: (command) => ({ command, env: { OPENCODE_PERMISSION: JSON.stringify({ bash: { "*": "ask", "python3 *": "allow" } }) } }),
    },
    hasResumeHook: true,
  },
  {
    name: "cline",
    program: `@cline/cli-${PLATFORM}/bin/cline`,
    configure(workspace, url) {
      workspace.write(".cline/data/settings/providers.json", {
        version: 1,
        lastUsedProvider: "openai-compatible",
        providers: { "openai-compatible": { settings: { provider: "openai-compatible", apiKey: "none", model: "mock", baseUrl: `${url}/v1` }, updatedAt: "2026-01-01T00:00:00.000Z", tokenSource: "manual" } },
      });
    },
    command: (program, prompt) => [program, "--provider", "openai-compatible", "--model", "mock", prompt],
    env: () => ({ CLINE_TELEMETRY_DISABLED: "1" }),
    read: (path) => call("read_files", { files: [{ path }] }),
    run: (command) => call("run_commands", { commands: [command] }),
    mcpRead: (path) => call("sightline__read_file", { path }),
    mcpTool: "sightline__read_file",
  },
];
