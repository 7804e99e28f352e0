/**
 * The status bar item: shows the state of the server, whether agents may see the
 * active file, and the connected agents. A click opens a menu.
 */

import * as vscode from "vscode";

import type { DidChangeBridgesParams } from "../../types/protocol";
import type { CheckpointTree } from "./checkpoints/tree";
import type { Client } from "./client";
import { describeAgents } from "./format";

/** Debounce time of access checks, in milliseconds. */
const DEBOUNCE_MS = 100;

/** Menu entries. Some need a server, or a restore to undo. The tooltip has those with a `link`. */
const MENU: readonly (vscode.QuickPickItem & { command: string; needs?: "server" | "undo"; link?: string })[] = [
  { label: "$(copy) Copy Environment Details", command: "sightline.environment.copy", needs: "server" },
  { label: "$(go-to-file) Open Environment Details", command: "sightline.environment.open", needs: "server" },
  { label: "$(preview) Open Page", command: "sightline.page.open", needs: "server", link: "Page" },
  { label: "$(eye) Check Agent Access", command: "sightline.access.explain", needs: "server" },
  { label: "$(add) Create Checkpoint…", command: "sightline.checkpoint.create", needs: "server", link: "Create Checkpoint" },
  { label: "$(diff) Compare with Checkpoint…", command: "sightline.checkpoint.compare", needs: "server" },
  { label: "$(history) Restore Checkpoint…", command: "sightline.checkpoint.restore", needs: "server" },
  { label: "$(discard) Undo Last Restore…", command: "sightline.checkpoint.undoRestore", needs: "undo" },
  { label: "$(plug) Connect Agents…", command: "sightline.agents.connect" },
  { label: "$(debug-pause) Pause/Resume Showing the Selection", command: "sightline.bridges.pause", needs: "server", link: "Pause/Resume" },
  { label: "$(refresh) Restart Server", command: "sightline.server.restart", link: "Restart Server" },
  { label: "$(output) Show Output", command: "sightline.output", link: "Show Output" },
  { label: "$(question) Show Help", command: "sightline.help" },
];

/** No agent is connected by its IDE protocol. */
const NO_AGENTS: DidChangeBridgesParams = { agents: [], isPaused: false };

/** The status bar item. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("sightline.status", vscode.StatusBarAlignment.Right, 90);
  private readonly listening: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private lastSequence = 0;
  private bridges = NO_AGENTS;

  constructor(
    private readonly client: Client,
    private readonly tree: CheckpointTree,
  ) {
    this.item.name = "Sightline";
    this.item.command = "sightline.menu";
    this.item.show();
    this.listening = vscode.Disposable.from(
      client.onDidChange(() => this.schedule()),
      vscode.window.onDidChangeActiveTextEditor(() => this.schedule()),
    );
    client.onNotification("sightline/didChangeAccessRules", () => this.schedule());
    client.onNotification("sightline/didChangeBridges", (bridges) => {
      this.bridges = bridges;
      this.schedule();
    });
    this.schedule();
  }

  /** Opens the menu. */
  async menu(): Promise<void> {
    const { isRunning } = this.client;
    const has = { server: isRunning, undo: isRunning && this.tree.undoPoint !== undefined };
    const items = MENU.filter(({ needs }) => needs === undefined || has[needs]);
    const picked = await vscode.window.showQuickPick(items, { title: "Sightline" });
    if (picked) {
      await vscode.commands.executeCommand(picked.command);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listening.dispose();
    this.item.dispose();
  }

  private schedule(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.update(), DEBOUNCE_MS);
  }

  private async update(): Promise<void> {
    const sequence = ++this.lastSequence;
    if (!this.client.isRunning) {
      this.bridges = NO_AGENTS;
      this.show("circle-slash", ["The Sightline server is not running"]);
      return;
    }
    const uri = vscode.window.activeTextEditor?.document.uri;
    if (uri?.scheme !== "file") {
      this.show("eye", ["Sightline is running", ...describeAgents(this.bridges)]);
      return;
    }
    const response = await this.client
      .request("sightline/checkAccess", { paths: [uri.toString()] })
      .catch(() => undefined);
    // A later request supersedes this one.
    if (sequence !== this.lastSequence) {
      return;
    }
    const name = vscode.workspace.asRelativePath(uri);
    const agents = describeAgents(this.bridges);
    const result = response?.paths[0];
    if (result?.access === "denied") {
      const why = result.rule ? `${result.rule.source}, line ${result.rule.line}` : (result.reason ?? "no reason given");
      this.show("eye-closed", [`${name} is hidden from agents: ${why}`, ...agents]);
    } else if (result?.access === "outside") {
      this.show("eye-closed", [`${name} is outside the workspace`, ...agents]);
    } else {
      this.show("eye", [`${name} is visible to agents`, ...agents]);
    }
  }

  private show(icon: string, lines: string[]): void {
    const { isRunning } = this.client;
    this.item.text = `$(${icon}) Sightline${this.bridges.isPaused ? " $(debug-pause)" : ""}`;
    this.item.backgroundColor = isRunning ? undefined : new vscode.ThemeColor("statusBarItem.errorBackground");
    const links = MENU.filter(({ link, needs }) => link !== undefined && (isRunning ? needs === "server" : needs === undefined));
    const tooltip = new vscode.MarkdownString();
    tooltip.isTrusted = { enabledCommands: links.map(({ command }) => command) };
    lines.forEach((line) => tooltip.appendText(line).appendMarkdown("\n\n"));
    this.item.tooltip = tooltip.appendMarkdown(links.map(({ link, command }) => `[${link}](command:${command})`).join(" | "));
    this.item.accessibilityInformation = { label: `Sightline: ${lines.join(". ")}` };
  }
}
