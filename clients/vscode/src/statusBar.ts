/**
 * The status bar item: whether the server runs, and whether agents may see the
 * file in front. A click offers the commands.
 */

import * as vscode from "vscode";

import type { Client } from "./client";

/** How long the editor has to be quiet before access is asked for, in milliseconds. */
const QUIET = 100;

/** What the menu offers; those that need a checkpoint are only offered with a server that has them. */
const MENU: readonly (vscode.QuickPickItem & { command: string; checkpoints?: true })[] = [
  { label: "$(copy) Copy Environment Details", command: "sightline.environment.copy" },
  { label: "$(go-to-file) Open Environment Details", command: "sightline.environment.open" },
  { label: "$(eye) May Agents See This File?", command: "sightline.access.explain" },
  { label: "$(add) Create Checkpoint", command: "sightline.checkpoint.create", checkpoints: true },
  { label: "$(diff) Compare with Checkpoint…", command: "sightline.checkpoint.compare", checkpoints: true },
  { label: "$(history) Restore Checkpoint…", command: "sightline.checkpoint.restore", checkpoints: true },
  { label: "$(discard) Undo the Last Restore", command: "sightline.checkpoint.undoRestore", checkpoints: true },
  { label: "$(refresh) Restart Server", command: "sightline.server.restart" },
  { label: "$(output) Show Output", command: "sightline.output" },
];

/** The item, until it is disposed of. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("sightline.status", vscode.StatusBarAlignment.Right, 90);
  private readonly listening: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private asked = 0;

  constructor(private readonly client: Client) {
    this.item.name = "Sightline";
    this.item.command = "sightline.menu";
    this.item.show();
    this.listening = vscode.Disposable.from(
      client.onDidChange(() => this.soon()),
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
    );
    client.onNotification("sightline/didChangeAccessRules", () => this.soon());
    this.soon();
  }

  /** Offers the commands. */
  async menu(): Promise<void> {
    const checkpoints = this.client.supports("sightline/listCheckpoints");
    const items = MENU.filter((item) => checkpoints || item.checkpoints === undefined);
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

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.update(), QUIET);
  }

  private async update(): Promise<void> {
    const mine = ++this.asked;
    if (!this.client.isRunning) {
      this.show("$(circle-slash) Sightline", "The sightline server is not running");
      return;
    }
    const uri = vscode.window.activeTextEditor?.document.uri;
    if (uri?.scheme !== "file" || !this.client.supports("sightline/checkAccess")) {
      this.show("$(eye) Sightline", "Sightline is running");
      return;
    }
    const answer = await this.client
      .request("sightline/checkAccess", { paths: [uri.toString()] })
      .catch(() => undefined);
    // A later question has, or will have, the better answer.
    if (mine !== this.asked) {
      return;
    }
    const name = vscode.workspace.asRelativePath(uri);
    const judged = answer?.paths[0];
    if (judged?.access === "denied") {
      const why = judged.rule ? `${judged.rule.source}, line ${judged.rule.line}` : (judged.reason ?? "no reason given");
      this.show("$(eye-closed) Sightline", `${name} is hidden from agents: ${why}`);
    } else if (judged?.access === "outside") {
      this.show("$(eye-closed) Sightline", `${name} is outside the workspace`);
    } else {
      this.show("$(eye) Sightline", `Agents may see ${name}`);
    }
  }

  private show(text: string, tooltip: string): void {
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.accessibilityInformation = { label: `Sightline: ${tooltip}` };
  }
}
