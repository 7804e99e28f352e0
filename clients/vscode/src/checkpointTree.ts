/**
 * The view of checkpoints: the newest first, below each the files that differ
 * from the workspace now, and the texts they had for diff editors.
 */

import * as vscode from "vscode";

import type { Checkpoint, FileDifference } from "../../types/protocol";
import type { Client } from "./client";

/** URI scheme of a file as it was in a checkpoint. */
export const SCHEME = "sightline-checkpoint";

/** Checkpoints shown at first, and how many more with each “show more”. */
const PAGE = 50;

/** How long it has to be quiet before the view is filled again, in milliseconds. */
const QUIET = 50;

/** A line of the view. */
export type Node =
  | { kind: "checkpoint"; checkpoint: Checkpoint }
  | { kind: "file"; checkpoint: Checkpoint; file: FileDifference }
  | { kind: "note"; text: string }
  | { kind: "more" };

/** What the view shows. */
export class CheckpointTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private limit = PAGE;
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly client: Client) {}

  /** Asks the server again, once for several calls in a row. */
  refresh(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changed.fire(), QUIET);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  /** Shows older checkpoints too. */
  showMore(): void {
    this.limit += PAGE;
    this.refresh();
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (!this.client.supports("sightline/listCheckpoints")) {
      return [];
    }
    if (!node) {
      return await this.checkpoints();
    }
    return node.kind === "checkpoint" ? await this.files(node.checkpoint) : [];
  }

  private async checkpoints(): Promise<Node[]> {
    // One more than shown tells whether there are more.
    const { checkpoints } = await this.client.request("sightline/listCheckpoints", { limit: this.limit + 1 });
    const nodes: Node[] = checkpoints
      .slice(0, this.limit)
      .map((checkpoint) => ({ kind: "checkpoint", checkpoint }));
    return checkpoints.length > this.limit ? [...nodes, { kind: "more" }] : nodes;
  }

  private async files(checkpoint: Checkpoint): Promise<Node[]> {
    const { files } = await this.client.request("sightline/diffCheckpoints", { from: checkpoint.id });
    if (files.length === 0) {
      return [{ kind: "note", text: "No difference from the workspace" }];
    }
    return files.map((file) => ({ kind: "file", checkpoint, file }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case "checkpoint":
        return checkpointItem(node.checkpoint);
      case "file":
        return fileItem(node);
      case "note":
        return new vscode.TreeItem(node.text);
      case "more": {
        const item = new vscode.TreeItem("Show more…");
        item.command = { title: "Show more", command: "sightline.checkpoints.more" };
        return item;
      }
    }
  }
}

function checkpointItem(checkpoint: Checkpoint): vscode.TreeItem {
  const item = new vscode.TreeItem(checkpointName(checkpoint), vscode.TreeItemCollapsibleState.Collapsed);
  item.id = checkpoint.id;
  item.contextValue = "checkpoint";
  item.iconPath = new vscode.ThemeIcon(checkpoint.purpose === "undo" ? "discard" : "history");
  item.description = [
    folderName(checkpoint),
    checkpoint.label === undefined ? undefined : when(checkpoint.createdAt),
    counts(checkpoint),
  ]
    .filter((part) => part !== undefined && part !== "")
    .join(" · ");
  item.tooltip = tooltip(checkpoint);
  return item;
}

/** What people call a checkpoint. */
export function checkpointName(checkpoint: Checkpoint): string {
  if (checkpoint.label !== undefined) {
    return checkpoint.label;
  }
  const prefix = checkpoint.purpose === "undo" ? "Before a restore, " : "";
  return prefix + when(checkpoint.createdAt);
}

/** The folder's name, where there are several. */
function folderName(checkpoint: Checkpoint): string | undefined {
  if ((vscode.workspace.workspaceFolders?.length ?? 0) < 2) {
    return undefined;
  }
  return vscode.workspace.getWorkspaceFolder(vscode.Uri.parse(checkpoint.root))?.name;
}

function when(milliseconds: number): string {
  const date = new Date(milliseconds);
  const today = date.toDateString() === new Date().toDateString();
  return today ? date.toLocaleTimeString() : date.toLocaleString();
}

/** Against the checkpoint before: `+1 ~2 −3`. */
function counts({ added, modified, deleted }: Checkpoint): string {
  return [
    [added, "+"],
    [modified, "~"],
    [deleted, "−"],
  ]
    .filter(([count]) => count !== 0)
    .map(([count, sign]) => `${sign}${count}`)
    .join(" ");
}

function tooltip(checkpoint: Checkpoint): string {
  const skipped = checkpoint.skipped.map(({ path, reason }) => `  ${path}: ${reason}`);
  const shown = skipped.length > 10 ? [...skipped.slice(0, 10), `  and ${skipped.length - 10} more`] : skipped;
  return [
    checkpointName(checkpoint),
    new Date(checkpoint.createdAt).toLocaleString(),
    `${checkpoint.files} files, ${checkpoint.bytes} bytes`,
    `since the one before: ${checkpoint.added} added, ${checkpoint.modified} modified, ${checkpoint.deleted} deleted`,
    ...(checkpoint.taskId === undefined ? [] : [`task ${checkpoint.taskId}`]),
    ...(shown.length === 0 ? [] : ["Not in it:", ...shown]),
    checkpoint.id,
  ].join("\n");
}

function fileItem(node: Node & { kind: "file" }): vscode.TreeItem {
  const { file } = node;
  const uri = vscode.Uri.parse(file.uri);
  const item = new vscode.TreeItem(uri);
  // Else a click during a refresh is for a line that is no more.
  item.id = `${node.checkpoint.id} ${file.uri}`;
  item.label = file.path;
  item.contextValue = "file";
  item.description = [
    file.status === "typeChanged" ? "type changed" : file.status,
    file.binary ? "binary" : `+${file.additions} −${file.deletions}`,
  ].join(" ");
  item.tooltip = file.oldPath === undefined ? file.path : `${file.oldPath} → ${file.path}`;
  item.command = { title: "Compare", command: "sightline.checkpoint.compareFile", arguments: [node] };
  return item;
}

/** One side of a comparison: which file of which checkpoint; nothing when `id` is empty. */
interface Side {
  /** Id of the checkpoint. */
  id: string;
  /** URI of the file as it is called now. */
  uri: string;
  /** URI of what it was called then, when that is another name. */
  oldUri?: string;
}

/** The sides of a comparison of `file` in `from` with itself in `to`, or with the workspace. */
export function sides(file: FileDifference, from: Checkpoint, to?: Checkpoint): [vscode.Uri, vscode.Uri] {
  const now = vscode.Uri.parse(file.uri);
  const then = file.oldPath === undefined ? now : vscode.Uri.joinPath(vscode.Uri.parse(from.root), file.oldPath);
  const older: Side = { id: from.id, uri: file.uri };
  if (then !== now) {
    older.oldUri = then.toString();
  }
  const newer = to ? checkpointUri({ id: to.id, uri: file.uri }, now) : now;
  return [
    file.status === "added" ? nothingUri(now) : checkpointUri(older, then),
    file.status === "deleted" ? nothingUri(then) : newer,
  ];
}

function checkpointUri(side: Side, file: vscode.Uri): vscode.Uri {
  // The path decides on the language; and where both sides have the same one,
  // VS Code does not take the file for renamed.
  return vscode.Uri.from({ scheme: SCHEME, path: file.path, query: JSON.stringify(side) });
}

/** An empty text beside a file that is only on the other side. */
function nothingUri(file: vscode.Uri): vscode.Uri {
  return checkpointUri({ id: "", uri: "" }, file);
}

/** Gives diff editors the texts of checkpoints. */
export class CheckpointContents implements vscode.TextDocumentContentProvider {
  constructor(private readonly client: Client) {}

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const side = JSON.parse(uri.query) as Side;
    if (side.id === "") {
      return "";
    }
    const paths = side.oldUri === undefined ? [side.uri] : [side.uri, side.oldUri];
    const params = { from: side.id, paths, contents: true };
    const { files } = await this.client.request("sightline/diffCheckpoints", params, token);
    const file = files.find((one) => one.uri === side.uri);
    if (!file) {
      // The same now as it was then.
      const bytes = await vscode.workspace.fs.readFile(vscode.Uri.parse(side.uri));
      return new TextDecoder().decode(bytes);
    }
    if (file.omitted !== undefined) {
      throw new Error(`${file.path} is not shown: ${file.omitted}`);
    }
    return file.before ?? "";
  }
}
