/** Connects coding agents: `sightline agents install`, and the MCP server for VS Code's own. */

import { execFile } from "node:child_process";
import * as os from "node:os";

import * as vscode from "vscode";

import { findProgram } from "./client";

/** Parts of the API for MCP servers, which VS Code has since 1.101. */
interface McpApi {
  registerMcpServerDefinitionProvider?(
    id: string,
    provider: { provideMcpServerDefinitions(): unknown[] },
  ): vscode.Disposable;
}
type McpServerDefinition = new (label: string, command: string, args: string[]) => unknown;

/** What `sightline agents install --json` prints. */
interface InstallReport {
  agents: AgentReport[];
  notes?: string[];
}

/** The changes that connect an agent. */
interface AgentReport {
  agent: string;
  title: string;
  /** Files to change. Empty if the agent is connected. */
  files: FileChange[];
  notes?: string[];
  problem?: string;
}

interface FileChange {
  path: string;
  diff: string;
  /** What is added. */
  content: string[];
}

/** Parts of a connection. */
const PARTS = [
  { part: "mcp", label: "MCP Tools", detail: "Tools for unsaved text, access checks and checkpoints", picked: true },
  { part: "context", label: "Context", detail: "The context of the editor with each prompt", picked: true },
  { part: "access", label: "Hidden Files", detail: "Hidden files are refused to the tools of the agent", picked: true },
  { part: "checkpoints", label: "Checkpoints", detail: "Checkpoints before and after each turn; includes Context and Hidden Files", picked: true },
];

/** Agents that can learn the selection as it changes, in the setting `agents.connect`. */
const IDE_AGENTS = ["claude", "codex", "copilot", "gemini", "opencode", "qwen"];

/** Scheme of the document with the changes, which the block and the server do not know. */
const SCHEME = "sightline-agents";
const CHANGES = vscode.Uri.from({ scheme: SCHEME, path: "/Connect Agents.diff" });

/** Connects agents that the user selects, after showing the changes. */
export class AgentConnections implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly provider = vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
    onDidChange: this.changed.event,
    provideTextDocumentContent: () => this.diff,
  });
  private diff = "";

  constructor(private readonly output: vscode.LogOutputChannel) {}

  /** Asks for agents and parts, shows the changes, and writes them if the user agrees. */
  async connect(): Promise<void> {
    const wanted = await this.ask();
    if (!wanted) {
      return;
    }
    const report = await install(wanted);
    this.log(report);
    const problems = problemsOf(report);
    if (problems !== "") {
      throw new Error(problems);
    }
    const files = report.agents.flatMap((agent) => agent.files);
    const changed = report.agents.filter((agent) => agent.files.length > 0);
    const titles = listOf(changed.map(({ title }) => title));
    if (files.length === 0) {
      const connected = listOf(report.agents.map(({ title }) => title));
      const text = `Nothing to do: ${connected} ${report.agents.length === 1 ? "is" : "are"} connected.`;
      void offerSelection(text, report.agents.map(({ agent }) => agent));
      return;
    }
    const summary = files.map((file) => changeOf(file));
    await this.show([`Connects ${titles}. Nothing is written yet.`, "", ...summary, "", ...files.map(({ diff }) => diff)].join("\n"));
    const connect = { label: `Connect ${titles}`, detail: `Changes ${files.length === 1 ? "1 file" : `${files.length} files`} as shown in the editor` };
    // A message would cover the changes, or disappear.
    const answer = await vscode.window.showQuickPick([connect, { label: "Cancel" }], { title: "Connect Agents", ignoreFocusOut: true });
    await vscode.window.tabGroups.close(tabs());
    if (answer !== connect) {
      return;
    }
    const written = await install([...wanted, "--yes"]);
    this.log(written);
    const failures = problemsOf(written);
    if (failures !== "") {
      throw new Error(failures);
    }
    const notes = written.agents.flatMap((agent) => agent.notes ?? []);
    const text = [`Connected ${titles}. Restart running agents.`, ...notes.map((note) => `${note}.`)].join(" ");
    void offerSelection(text, changed.map(({ agent }) => agent));
  }

  dispose(): void {
    this.provider.dispose();
    this.changed.dispose();
  }

  /** Asks for agents and parts. Returns the options that select them. */
  private async ask(): Promise<string[] | undefined> {
    const everything = ["--only", PARTS.map(({ part }) => part).join(",")];
    const [defaults, all] = await Promise.all([install([]), install(everything)]);
    if (all.agents.length === 0) {
      void vscode.window.showInformationMessage("No coding agent was found. Start an agent once, and then connect it.");
      return undefined;
    }
    const agents = all.agents.map(({ agent, title, files, problem }) => {
      const isNew = defaults.agents.some((one) => one.agent === agent && one.files.length > 0);
      return {
        label: title,
        description: problem === undefined ? (isNew ? "" : "connected") : "cannot be connected",
        detail: problem ?? files.map((file) => changeOf(file)).join("; "),
        picked: isNew && problem === undefined,
        agent,
      };
    });
    const separator = (label: string) => ({ label, kind: vscode.QuickPickItemKind.Separator });
    const items: (vscode.QuickPickItem & { agent?: string; part?: string })[] = [separator("Agents"), ...agents, separator("Parts"), ...PARTS];
    const picked = await vscode.window.showQuickPick(items, {
      title: "Connect Agents",
      placeHolder: "Agents that were found, and what they get",
      canPickMany: true,
      ignoreFocusOut: true,
    });
    const chosen = picked?.flatMap(({ agent }) => agent ?? []) ?? [];
    const parts = picked?.flatMap(({ part }) => part ?? []) ?? [];
    return chosen.length === 0 || parts.length === 0
      ? undefined
      : [...chosen.flatMap((agent) => ["--agent", agent]), "--only", parts.join(",")];
  }

  private async show(diff: string): Promise<void> {
    this.diff = diff;
    this.changed.fire(CHANGES);
    const document = await vscode.workspace.openTextDocument(CHANGES);
    await vscode.languages.setTextDocumentLanguage(document, "diff");
    await vscode.window.showTextDocument(document, { preview: true });
  }

  private log({ agents, notes = [] }: InstallReport): void {
    for (const note of [...agents.flatMap((agent) => agent.notes ?? []), ...notes]) {
      this.output.info(note);
    }
  }
}

/** Runs `sightline agents install`. */
async function install(options: string[]): Promise<InstallReport> {
  const found = findProgram();
  if (found.program === undefined) {
    throw new Error(`cannot connect agents: ${found.reason}`);
  }
  const { program } = found;
  const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath;
  return await new Promise((resolve, reject) => {
    // The exit code says whether there is something to do.
    const args = ["agents", "install", "--json", ...options];
    execFile(program, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (error, printed, problem) => {
      try {
        resolve(JSON.parse(printed) as InstallReport);
      } catch {
        const reason = problem.trim() === "" ? String(error) : problem.trim();
        reject(new Error(`cannot connect agents: ${reason}`));
      }
    });
  });
}

/** Shows a message, and offers to show agents the selection as it changes. */
async function offerSelection(text: string, agents: string[]): Promise<void> {
  const settings = vscode.workspace.getConfiguration("sightline");
  const connected = settings.get<string[]>("agents.connect", []);
  const added = agents.filter((agent) => IDE_AGENTS.includes(agent) && !connected.includes(agent));
  const showSelection = "Also Show the Selection";
  const buttons = added.length === 0 ? [] : [showSelection];
  if ((await vscode.window.showInformationMessage(text, ...buttons)) === showSelection) {
    await settings.update("agents.connect", [...connected, ...added], vscode.ConfigurationTarget.Global);
  }
}

/** Describes what is added to a file. */
function changeOf({ path, content }: FileChange): string {
  const short = path.startsWith(`${os.homedir()}/`) ? `~${path.slice(os.homedir().length)}` : path;
  return `${short}: ${listOf(content)}`;
}

function problemsOf({ agents }: InstallReport): string {
  return agents.flatMap(({ title, problem }) => (problem === undefined ? [] : [`${title}: ${problem}`])).join("; ");
}

function listOf(names: string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Returns the tabs that show the changes. */
function tabs(): vscode.Tab[] {
  const all = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return all.filter(({ input }) => input instanceof vscode.TabInputText && input.uri.scheme === SCHEME);
}

/** Offers the MCP server, where VS Code has the API for it. */
export function registerMcpServer(): vscode.Disposable {
  const { lm, McpStdioServerDefinition } = vscode as unknown as {
    lm?: McpApi;
    McpStdioServerDefinition?: McpServerDefinition;
  };
  if (!lm?.registerMcpServerDefinitionProvider || !McpStdioServerDefinition) {
    return new vscode.Disposable(() => {});
  }
  return lm.registerMcpServerDefinitionProvider("sightline.mcp", {
    provideMcpServerDefinitions: () => {
      const { program } = findProgram();
      const folders = vscode.workspace.workspaceFolders ?? [];
      const local = folders.filter(({ uri }) => uri.scheme === "file");
      if (program === undefined) {
        return [];
      }
      return local.map(({ name, uri }) => {
        const label = local.length > 1 ? `Sightline (${name})` : "Sightline";
        return new McpStdioServerDefinition(label, program, ["mcp", "--root", uri.fsPath]);
      });
    },
  });
}
