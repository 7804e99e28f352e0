/**
 * The commands of the extension. Errors are shown as one message.
 *
 * The command names differ from those of the server, such as
 * `sightline.createCheckpoint`, which the language client registers.
 */

import * as vscode from "vscode";
import { ResponseError } from "vscode-languageclient/node";

import type { Checkpoint, FileDifference } from "../../types/protocol";
import type { AgentConnections } from "./agents";
import { type CheckpointTree, checkpointName, type Node, diffUris } from "./checkpointTree";
import { type Client, errorKind } from "./client";
import type { EnvironmentContents } from "./environment";
import { relativeTime } from "./format";
import { describeError } from "./messages";
import type { Page } from "./page";
import type { Proposals } from "./proposals";
import { restore, undo } from "./restore";
import type { StatusBar } from "./statusBar";

type FileNode = Node & { kind: "file" };
type CheckpointNode = Node & { kind: "checkpoint" };

/** Objects used by the commands. */
export interface CommandContext {
  agents: AgentConnections;
  client: Client;
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
  const { agents, client, environment, page, proposals, tree, output } = context;
  const commands: Record<string, (...args: never[]) => unknown> = {
    "sightline.environment.copy": () => environment.copy(),
    "sightline.environment.open": () => environment.open(),
    "sightline.page.open": () => page.open(),
    "sightline.access.explain": (uri?: vscode.Uri) => explainAccess(client, uri),
    "sightline.checkpoint.create": () => createCheckpoint(client, tree),
    // VS Code passes no row if the view is being refreshed.
    "sightline.checkpoint.compareFile": (node?: FileNode) => node && compareFile(node.file, node.checkpoint),
    "sightline.checkpoint.compare": async () => {
      const checkpoint = await pick(client, "Compare the Workspace with a Checkpoint");
      return checkpoint && (await compare(client, checkpoint));
    },
    "sightline.checkpoint.compareWithWorkspace": (node?: CheckpointNode) => node && compare(client, node.checkpoint),
    "sightline.checkpoint.compareWithPrevious": (node?: CheckpointNode) =>
      node && compareWithPrevious(client, node.checkpoint),
    "sightline.checkpoint.restore": async (node?: CheckpointNode) => {
      const checkpoint = node?.checkpoint ?? (await pick(client, "Restore a Checkpoint"));
      return checkpoint && (await restore(client, checkpoint).finally(() => tree.refresh()));
    },
    "sightline.checkpoint.restoreFile": (node?: FileNode) =>
      node && restore(client, node.checkpoint, [node.file.uri]).finally(() => tree.refresh()),
    "sightline.checkpoint.undoRestore": (undoId?: unknown) =>
      // The title bar of the view passes other arguments.
      undo(client, typeof undoId === "string" ? undoId : undefined).finally(() => tree.refresh()),
    "sightline.checkpoint.rename": (node?: CheckpointNode) => node && renameCheckpoint(client, tree, node.checkpoint),
    "sightline.checkpoint.delete": (node?: CheckpointNode) => node && deleteCheckpoint(client, tree, node.checkpoint),
    "sightline.checkpoint.copyId": (node?: CheckpointNode) =>
      node && vscode.env.clipboard.writeText(node.checkpoint.id),
    "sightline.checkpoints.refresh": () => tree.refresh(),
    "sightline.checkpoints.more": () => tree.showMore(),
    "sightline.agents.connect": () => agents.connect(),
    "sightline.agents.send": () => sendSelection(client),
    "sightline.bridges.pause": () => client.execute("sightline.pauseBridges", {}),
    "sightline.change.accept": (uri?: vscode.Uri) => proposals.accept(uri),
    "sightline.change.reject": (uri?: vscode.Uri) => proposals.reject(uri),
    "sightline.server.restart": () => client.restart(),
    "sightline.output": () => output.show(),
    "sightline.help": () => showHelp(context.extensionUri),
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

async function showHelp(extension: vscode.Uri): Promise<void> {
  // Packages contain the file with a lowercase name.
  const packed = vscode.Uri.joinPath(extension, "readme.md");
  const isPacked = await vscode.workspace.fs.stat(packed).then(
    () => true,
    () => false,
  );
  const file = isPacked ? packed : vscode.Uri.joinPath(extension, "README.md");
  await vscode.commands.executeCommand("markdown.showPreview", file);
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

async function createCheckpoint(client: Client, tree: CheckpointTree): Promise<void> {
  const label = await vscode.window.showInputBox({
    title: "Create Checkpoint",
    prompt: "Label (optional)",
    placeHolder: "before the new parser",
  });
  if (label === undefined) {
    return;
  }
  const params = label.trim() === "" ? {} : { label: label.trim() };
  const title = "Creating a checkpoint";
  let created: Checkpoint;
  try {
    created = await client.requestWithProgress(title, "sightline/createCheckpoint", params);
  } catch (error) {
    if (errorKind(error) !== "tooLarge") {
      throw error;
    }
    const createAnyway = "Create Anyway";
    const text = error instanceof Error ? error.message : "The workspace is large.";
    if ((await vscode.window.showWarningMessage(text, { modal: true }, createAnyway)) !== createAnyway) {
      return;
    }
    created = await client.requestWithProgress(title, "sightline/createCheckpoint", { ...params, confirmLarge: true });
  }
  tree.refresh();
  const skipped = created.skipped.length === 0 ? "" : `, ${created.skipped.length} skipped`;
  vscode.window.setStatusBarMessage(`$(check) Checkpoint created: ${created.files === 1 ? "1 file" : `${created.files} files`}${skipped}`, 4000);
}

async function renameCheckpoint(client: Client, tree: CheckpointTree, checkpoint: Checkpoint): Promise<void> {
  const label = await vscode.window.showInputBox({
    title: "Rename Checkpoint",
    prompt: "Label; empty to remove it",
    value: checkpoint.label ?? "",
  });
  if (label === undefined) {
    return;
  }
  await client.request("sightline/labelCheckpoint", { id: checkpoint.id, label: label.trim() });
  tree.refresh();
}

async function deleteCheckpoint(client: Client, tree: CheckpointTree, checkpoint: Checkpoint): Promise<void> {
  const name = checkpointName(checkpoint);
  const detail = "Files of the workspace stay as they are. The checkpoint cannot be restored afterwards.";
  const choice = await vscode.window.showWarningMessage(`Delete ${name}?`, { modal: true, detail }, "Delete");
  if (choice !== "Delete") {
    return;
  }
  await client.requestWithProgress("Deleting", "sightline/pruneCheckpoints", { ids: [checkpoint.id] });
  tree.refresh();
}

/** Asks the user for a checkpoint. */
async function pick(client: Client, title: string): Promise<Checkpoint | undefined> {
  const { checkpoints } = await client.request("sightline/listCheckpoints", { limit: 500 });
  const items = checkpoints.map((checkpoint) => ({
    label: checkpointName(checkpoint),
    description: `${relativeTime(checkpoint.createdAt, Date.now())}, ${new Date(checkpoint.createdAt).toLocaleString()}`,
    checkpoint,
  }));
  const placeHolder = items.length === 0 ? "No checkpoints" : "Checkpoints, newest first";
  return (await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true }))?.checkpoint;
}

async function compareFile(file: FileDifference, checkpoint: Checkpoint): Promise<void> {
  if (file.binary) {
    void vscode.window.showInformationMessage(`Cannot compare ${file.path}: it is not a text file.`);
    return;
  }
  const [older, newer] = diffUris(file, checkpoint);
  const title = `${file.path} (${checkpointName(checkpoint)} ↔ now)`;
  await vscode.commands.executeCommand("vscode.diff", older, newer, title, { preview: true });
}

/** Opens all changes between a checkpoint and another, or the workspace, in one editor. */
async function compare(client: Client, from: Checkpoint, to?: Checkpoint): Promise<void> {
  const { files } = await client.requestWithProgress("Comparing", "sightline/diffCheckpoints", {
    from: from.id,
    ...(to && { to: to.id }),
  });
  const title = `${checkpointName(from)} ↔ ${to ? checkpointName(to) : "now"}`;
  const texts = files.filter((file) => !file.binary);
  if (texts.length === 0) {
    const binary = files.length === 0 ? "" : ` to text; ${files.length === 1 ? "1 binary file" : `${files.length} binary files`} changed`;
    void vscode.window.showInformationMessage(`No changes${binary}: ${title}.`);
    return;
  }
  const resources = texts.map((file) => [vscode.Uri.parse(file.uri), ...diffUris(file, from, to)]);
  await vscode.commands.executeCommand("vscode.changes", title, resources);
}

async function compareWithPrevious(client: Client, checkpoint: Checkpoint): Promise<void> {
  const { checkpoints } = await client.request("sightline/listCheckpoints", { root: checkpoint.root });
  const index = checkpoints.findIndex(({ id }) => id === checkpoint.id);
  const previous = index < 0 ? undefined : checkpoints[index + 1];
  if (!previous) {
    void vscode.window.showInformationMessage("There is no previous checkpoint.");
    return;
  }
  await compare(client, previous, checkpoint);
}
