/**
 * The commands of the extension. Errors are shown as one message.
 *
 * The command names differ from those of the server, such as
 * `sightline.createCheckpoint`, which the language client registers.
 */

import * as vscode from "vscode";
import { ResponseError } from "vscode-languageclient/node";

import type { AgentConnections } from "./agents";
import type { Blame } from "./checkpoints/blame";
import { checkpointCommands } from "./checkpoints/commands";
import type { CheckpointContents } from "./checkpoints/contents";
import type { Gutter } from "./checkpoints/gutter";
import type { CheckpointTree } from "./checkpoints/tree";
import { type Client, errorKind } from "./client";
import type { EnvironmentContents } from "./environment";
import { hide } from "./hide";
import { describeError } from "./messages";
import type { McpServerTree } from "./mcpServers";
import type { Page } from "./page";
import type { Proposals } from "./proposals";
import type { StatusBar } from "./statusBar";

/** Objects used by the commands. */
export interface CommandContext {
  agents: AgentConnections;
  blame: Blame;
  client: Client;
  contents: CheckpointContents;
  gutter: Gutter;
  mcpServers: McpServerTree;
  environment: EnvironmentContents;
  page: Page;
  tree: CheckpointTree;
  status: StatusBar;
  output: vscode.LogOutputChannel;
  extensionUri: vscode.Uri;
  proposals: Proposals;
}

/** Registers all commands. */
export function registerCommands(context: CommandContext): vscode.Disposable {
  const { agents, client, environment, page, proposals, output } = context;
  const commands: Record<string, (...args: never[]) => unknown> = {
    "sightline.environment.copy": () => environment.copy(),
    "sightline.environment.open": () => environment.open(),
    "sightline.page.open": () => page.open(),
    "sightline.access.hide": (uri?: vscode.Uri) => hide(client, uri, true),
    "sightline.access.allow": (uri?: vscode.Uri) => hide(client, uri, false),
    "sightline.access.explain": (uri?: vscode.Uri) => explainAccess(client, uri),
    ...checkpointCommands(context),
    "sightline.blame.show": () => context.blame.show(),
    ...context.mcpServers.commands(),
    "sightline.agents.connect": () => agents.connect(),
    "sightline.agents.send": () => sendSelection(client),
    "sightline.bridges.pause": () => pause(client),
    "sightline.change.accept": (uri?: vscode.Uri) => proposals.accept(uri),
    "sightline.change.reject": (uri?: vscode.Uri) => proposals.reject(uri),
    "sightline.server.restart": () => client.restart(),
    "sightline.output": () => output.show(),
    "sightline.help": (section?: string) => showHelp(context.extensionUri, section),
    "sightline.menu": () => context.status.menu(),
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([name, run]) =>
      vscode.commands.registerCommand(name, async (...args: never[]) => {
        try {
          await run(...args);
        } catch (error) {
          showError(error, output);
        }
      }),
    ),
  );
}

function showError(error: unknown, output: vscode.LogOutputChannel): void {
  if (error instanceof vscode.CancellationError || errorKind(error) === "cancelled") {
    return;
  }
  const code = error instanceof ResponseError ? (errorKind(error) ?? error.code) : undefined;
  const { shown, logged } = describeError(error, code);
  output.error(logged);
  void vscode.window.showErrorMessage(shown);
}

async function showHelp(extension: vscode.Uri, section = ""): Promise<void> {
  // Packages contain the file with a lowercase name.
  const packed = vscode.Uri.joinPath(extension, "readme.md");
  const isPacked = await vscode.workspace.fs.stat(packed).then(
    () => true,
    () => false,
  );
  const file = isPacked ? packed : vscode.Uri.joinPath(extension, "README.md");
  await vscode.commands.executeCommand("markdown.showPreview", file.with({ fragment: section }));
}

/** Pauses or resumes the connections of agents. The status bar shows it. */
async function pause(client: Client): Promise<void> {
  const { isPaused } = await client.request("sightline/connectedAgents", {});
  await client.request("sightline/connectedAgents", { isPaused: !isPaused });
}

async function explainAccess(client: Client, uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
  if (!uri) {
    void vscode.window.showInformationMessage("Open a file to check whether agents may see it.");
    return;
  }
  const { paths } = await client.request("sightline/checkAccess", { paths: [uri.toString()] });
  const result = paths[0];
  if (!result) {
    return;
  }
  const name = vscode.workspace.asRelativePath(uri);
  const { access, rule, reason } = result;
  if (!rule) {
    const words = { allowed: "is visible to agents", denied: "is hidden from agents", outside: "is outside the workspace" };
    void vscode.window.showInformationMessage(`${name} ${words[access]}${reason === undefined ? "" : `: ${reason}`}.`);
    return;
  }
  const verb = access === "denied" ? "is hidden from agents" : "is visible to agents";
  const text = `${name} ${verb}: ${rule.source}, line ${rule.line}: ${rule.pattern}`;
  if (rule.source.startsWith("built-in")) {
    const hint = rule.line > 0 ? `. Write !${name.split("/").pop()} in .clineignore to allow it.` : "";
    void vscode.window.showInformationMessage(text + hint);
    return;
  }
  const show = "Show Rule";
  if ((await vscode.window.showInformationMessage(text, show)) === show) {
    await showRule(uri, rule.source, rule.line);
  }
}

async function showRule(uri: vscode.Uri, source: string, line: number): Promise<void> {
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  if (!folder) {
    return;
  }
  const at = new vscode.Position(Math.max(line - 1, 0), 0);
  await vscode.window.showTextDocument(vscode.Uri.joinPath(folder.uri, source), { selection: new vscode.Range(at, at) });
}

/** Sends the selected lines of the active editor to the connected agents, or the file without a selection. */
async function sendSelection(client: Client): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    void vscode.window.showInformationMessage("Open a file to send it to an agent.");
    return;
  }
  const { document, selection } = editor;
  const range = { start: selection.start, end: selection.end };
  await client.execute("sightline.sendToAgent", { uri: document.uri.toString(), ...(!selection.isEmpty && { range }) });
}
