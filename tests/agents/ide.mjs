// How each agent is used in its terminal program, connected to the editor by its IDE protocol.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AGENTS } from "./agents.mjs";

/** Sets a value in a JSON file of the home, which has comments. */
function set(workspace, path, name, value) {
  const text = readFileSync(join(workspace.home, path), "utf8").replace(/^\s*\/\/.*$/gm, "");
  const settings = JSON.parse(text);
  settings[name] = value;
  workspace.write(path, settings);
}

/**
 * `setting` opens the bridge, `files` are the folders of its files. `ready` is shown when the
 * program takes a prompt, `prepare` types what connects it, and `variable` of the editor's terminals does.
 */
const IDE = {
  claude: {
    setting: "claudeIde",
    files: ["home/.claude/ide"],
    // What its first start asks the user.
    configure(workspace) {
      set(workspace, ".claude.json", "theme", "dark");
      set(workspace, ".claude.json", "customApiKeyResponses", { approved: ["none"], rejected: [] });
      set(workspace, ".claude.json", "projects", { [workspace.project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } });
    },
    command: (program) => [program, "--model", "claude-sonnet-4-5"],
    // Of terminals in the editor. No option is needed.
    variable: "CLAUDE_CODE_SSE_PORT",
    ready: "? for shortcuts",
  },
  opencode: {
    setting: "claudeIde",
    files: ["home/.claude/ide"],
    configure: () => {},
    command: (program) => [program],
    ready: "Ask anything",
  },
  gemini: {
    setting: "geminiIde",
    files: ["run/gemini/ide"],
    configure: (workspace) => set(workspace, ".gemini/settings.json", "ide", { enabled: true, hasSeenNudge: true }),
    command: (program) => [program, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"],
    ready: "Type your message",
  },
  qwen: {
    setting: "geminiIde",
    files: ["home/.qwen/ide"],
    configure: (workspace) => set(workspace, ".qwen/settings.json", "ide", { enabled: true, hasSeenNudge: true }),
    command: (program) => [program, "--approval-mode", "yolo"],
    ready: "Type your message",
  },
  copilot: {
    setting: "copilotIde",
    files: ["home/.copilot/ide"],
    configure: (workspace) => workspace.write(".copilot/config.json", { trusted_folders: [workspace.project], banner: "never" }),
    command: (program) => [program, "--allow-all-tools"],
    ready: "/ commands",
  },
  codex: {
    setting: "codexIde",
    files: ["run/codex-ipc"],
    configure(workspace) {
      const path = ".codex/config.toml";
      const text = readFileSync(join(workspace.home, path), "utf8");
      workspace.write(path, `check_for_update_on_startup = false\n${text}\n[projects."${workspace.project}"]\ntrust_level = "trusted"\n`);
    },
    command: (program) => [program, "--dangerously-bypass-approvals-and-sandbox"],
    ready: "permissions: YOLO mode",
    prepare: (terminal) => terminal.type("/ide"),
  },
};

/** The agents with an IDE protocol. */
export const IDE_AGENTS = AGENTS.filter(({ name }) => IDE[name]).map((agent) => ({ ...agent, ide: IDE[agent.name] }));
