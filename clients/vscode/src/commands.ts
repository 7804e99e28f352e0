/**
 * The commands. Whatever goes wrong in one is told in one sentence.
 *
 * Their names differ from the server's (`sightline.createCheckpoint`), which
 * the language client registers by itself.
 */

import * as vscode from "vscode";
import { ResponseError } from "vscode-languageclient/node";

import type { Checkpoint, FileDifference } from "../../types/protocol";
import { type CheckpointTree, checkpointName, type Node, sides } from "./checkpointTree";
import { type Client, errorKind } from "./client";
import type { EnvironmentContents } from "./environment";
import { restore, undo } from "./restore";
import type { StatusBar } from "./statusBar";

type FileNode = Node & { kind: "file" };
type CheckpointNode = Node & { kind: "checkpoint" };

/** What the commands work on. */
export interface Parts {
  client: Client;
  environment: EnvironmentContents;
  tree: CheckpointTree;
  status: StatusBar;
  output: vscode.LogOutputChannel;
  extensionUri: vscode.Uri;
}

/** Registers all commands. */
export function registerCommands(parts: Parts): vscode.Disposable {
  const { client, environment, tree, output } = parts;
  const commands: Record<string, (...args: never[]) => unknown> = {
    "sightline.environment.copy": () => environment.copy(),
    "sightline.environment.open": () => environment.open(),
    "sightline.access.explain": (uri?: vscode.Uri) => explainAccess(client, uri),
    "sightline.checkpoint.create": () => createCheckpoint(client, tree),
    // VS Code names no line when the view is filled again just then.
    "sightline.checkpoint.compareFile": (node?: FileNode) => node && compareFile(node.file, node.checkpoint),
    "sightline.checkpoint.compare": async (node?: CheckpointNode) => {
      const checkpoint = node?.checkpoint ?? (await pick(client, "Compare the workspace with"));
      return checkpoint && (await compare(client, checkpoint));
    },
    "sightline.checkpoint.compareWithPrevious": (node?: CheckpointNode) =>
      node && compareWithPrevious(client, node.checkpoint),
    "sightline.checkpoint.restore": async (node?: CheckpointNode) => {
      const checkpoint = node?.checkpoint ?? (await pick(client, "Restore the workspace to"));
      return checkpoint && (await restore(client, checkpoint).finally(() => tree.refresh()));
    },
    "sightline.checkpoint.restoreFile": (node?: FileNode) =>
      node && restore(client, node.checkpoint, [node.file.uri]).finally(() => tree.refresh()),
    "sightline.checkpoint.undoRestore": (undoId?: unknown) =>
      // From the view's title bar it is called with other things.
      undo(client, typeof undoId === "string" ? undoId : undefined).finally(() => tree.refresh()),
    "sightline.checkpoint.copyId": (node?: CheckpointNode) =>
      node && vscode.env.clipboard.writeText(node.checkpoint.id),
    "sightline.checkpoints.refresh": () => tree.refresh(),
    "sightline.checkpoints.more": () => tree.showMore(),
    "sightline.server.restart": () => client.restart(),
    "sightline.output": () => output.show(),
    "sightline.help": () =>
      vscode.commands.executeCommand("markdown.showPreview", vscode.Uri.joinPath(parts.extensionUri, "README.md")),
    "sightline.menu": () => parts.status.menu(),
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([name, run]) =>
      vscode.commands.registerCommand(name, async (...args: never[]) => {
        try {
          await run(...args);
        } catch (error) {
          tellError(error, output);
        }
      }),
    ),
  );
}

function tellError(error: unknown, output: vscode.LogOutputChannel): void {
  if (error instanceof vscode.CancellationError || errorKind(error) === "cancelled") {
    return;
  }
  const message = error instanceof Error ? error.message : String(error);
  output.error(error instanceof ResponseError ? `${message} (${errorKind(error) ?? error.code})` : message);
  void vscode.window.showErrorMessage(`Sightline: ${message}`);
}

async function explainAccess(client: Client, uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
  if (!uri) {
    void vscode.window.showInformationMessage("Open a file first: this tells whether agents may see it.");
    return;
  }
  const { paths } = await client.request("sightline/checkAccess", { paths: [uri.toString()] });
  const judged = paths[0];
  if (!judged) {
    return;
  }
  const name = vscode.workspace.asRelativePath(uri);
  const { access, rule, reason } = judged;
  if (!rule) {
    const words = { allowed: "may be seen by agents", denied: "is hidden from agents", outside: "is outside the workspace" };
    void vscode.window.showInformationMessage(`${name} ${words[access]}${reason === undefined ? "" : `: ${reason}`}.`);
    return;
  }
  const verb = access === "denied" ? "is hidden from agents" : "may be seen by agents";
  const show = "Show the Rule";
  const text = `${name} ${verb}: ${rule.source}, line ${rule.line}: ${rule.pattern}`;
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

async function createCheckpoint(client: Client, tree: CheckpointTree): Promise<void> {
  const label = await vscode.window.showInputBox({
    title: "Create Checkpoint",
    prompt: "A name for it, or nothing",
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
    const anyway = "Take It Anyway";
    const text = error instanceof Error ? error.message : "The workspace is large.";
    if ((await vscode.window.showWarningMessage(text, { modal: true }, anyway)) !== anyway) {
      return;
    }
    created = await client.requestWithProgress(title, "sightline/createCheckpoint", { ...params, confirmLarge: true });
  }
  tree.refresh();
  const skipped = created.skipped.length === 0 ? "" : `, ${created.skipped.length} left out`;
  vscode.window.setStatusBarMessage(`$(check) Checkpoint created: ${created.files} files${skipped}`, 4000);
}

/** Lets the user pick a checkpoint. */
async function pick(client: Client, title: string): Promise<Checkpoint | undefined> {
  const { checkpoints } = await client.request("sightline/listCheckpoints", { limit: 500 });
  const items = checkpoints.map((checkpoint) => ({
    label: checkpointName(checkpoint),
    description: new Date(checkpoint.createdAt).toLocaleString(),
    checkpoint,
  }));
  const placeHolder = items.length === 0 ? "There is no checkpoint yet" : "A checkpoint, the newest first";
  return (await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true }))?.checkpoint;
}

async function compareFile(file: FileDifference, checkpoint: Checkpoint): Promise<void> {
  if (file.binary) {
    void vscode.window.showInformationMessage(`${file.path} is no text, so it can't be compared here.`);
    return;
  }
  const [older, newer] = sides(file, checkpoint);
  const title = `${file.path} (${checkpointName(checkpoint)} ↔ now)`;
  await vscode.commands.executeCommand("vscode.diff", older, newer, title, { preview: true });
}

/** All differences between a checkpoint and another, or the workspace, in one editor. */
async function compare(client: Client, from: Checkpoint, to?: Checkpoint): Promise<void> {
  const { files } = await client.requestWithProgress("Comparing", "sightline/diffCheckpoints", {
    from: from.id,
    ...(to && { to: to.id }),
  });
  const title = `${checkpointName(from)} ↔ ${to ? checkpointName(to) : "now"}`;
  const texts = files.filter((file) => !file.binary);
  if (texts.length === 0) {
    const binary = files.length === 0 ? "" : ` in text; ${files.length} binary files differ`;
    void vscode.window.showInformationMessage(`No difference${binary}: ${title}.`);
    return;
  }
  const resources = texts.map((file) => [vscode.Uri.parse(file.uri), ...sides(file, from, to)]);
  await vscode.commands.executeCommand("vscode.changes", title, resources);
}

async function compareWithPrevious(client: Client, checkpoint: Checkpoint): Promise<void> {
  const { checkpoints } = await client.request("sightline/listCheckpoints", { root: checkpoint.root });
  const index = checkpoints.findIndex(({ id }) => id === checkpoint.id);
  const previous = index < 0 ? undefined : checkpoints[index + 1];
  if (!previous) {
    void vscode.window.showInformationMessage("This is the first checkpoint.");
    return;
  }
  await compare(client, previous, checkpoint);
}
