/**
 * The checkpoint view: checkpoints, newest first, each with the files that
 * differ from the workspace. Also provides old file contents to diff editors.
 */

import * as vscode from "vscode";

import type { Checkpoint, FileDifference } from "../../types/protocol";
import type { Client } from "./client";
import { CHANGED_FILE_SCHEME } from "./decorations";
import { relativeTime } from "./format";

/** URI scheme of a file in a checkpoint. */
export const SCHEME = "sightline-checkpoint";

/** Number of checkpoints shown initially, and added by “Show more”. */
const PAGE = 50;

/** Debounce time of a refresh, in milliseconds. */
const DEBOUNCE_MS = 50;

/** Delay of a refresh after files changed, in milliseconds. Later changes do not postpone it. */
const FILES_DELAY_MS = 1_000;

/** Interval of refreshes that update relative times, in milliseconds. */
const TIMES_INTERVAL_MS = 60_000;

/** A row of the view. */
export type Node =
  | { kind: "checkpoint"; checkpoint: Checkpoint }
  | { kind: "file"; checkpoint: Checkpoint; file: FileDifference }
  | { kind: "note"; text: string }
  | { kind: "more" };

/** Data of the checkpoint view. */
export class CheckpointTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly view: vscode.TreeView<Node>;
  private readonly listening: vscode.Disposable;
  private readonly clock: NodeJS.Timeout;
  /** Ids of the checkpoints that show their files. */
  private readonly expanded = new Set<string>();
  private limit = PAGE;
  private timer: NodeJS.Timeout | undefined;
  private filesTimer: NodeJS.Timeout | undefined;
  private hasUndo = false;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly client: Client) {
    this.view = vscode.window.createTreeView("sightline.checkpoints", { treeDataProvider: this });
    // VS Code watches the workspace folders anyway.
    const files = vscode.workspace.createFileSystemWatcher("**/*");
    this.listening = vscode.Disposable.from(
      this.view,
      this.view.onDidCollapseElement(({ element }) => {
        if (element.kind === "checkpoint") {
          this.expanded.delete(element.checkpoint.id);
        }
      }),
      // Changes are not followed while the view is hidden.
      this.view.onDidChangeVisibility(({ visible }) => visible && this.refresh()),
      files,
      files.onDidCreate(() => this.filesChanged()),
      files.onDidChange(() => this.filesChanged()),
      files.onDidDelete(() => this.filesChanged()),
    );
    this.clock = setInterval(() => this.view.visible && this.refresh(), TIMES_INTERVAL_MS);
  }

  /** Returns whether there is a restore to undo. */
  get canUndo(): boolean {
    return this.hasUndo;
  }

  /** Refreshes the view. Several calls in a row refresh it once. */
  refresh(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.changed.fire();
      void this.updateCanUndo();
    }, DEBOUNCE_MS);
  }

  /** Compares expanded checkpoints with the workspace again. */
  private filesChanged(): void {
    if (this.view.visible && this.expanded.size > 0) {
      this.filesTimer ??= setTimeout(() => {
        this.filesTimer = undefined;
        this.changed.fire();
      }, FILES_DELAY_MS);
    }
  }

  private async updateCanUndo(): Promise<void> {
    const result = this.client.supports("sightline/listCheckpoints")
      ? await this.client.request("sightline/listCheckpoints", {}).catch(() => undefined)
      : undefined;
    this.hasUndo = result?.checkpoints.some(({ purpose }) => purpose === "undo") ?? false;
    void vscode.commands.executeCommand("setContext", "sightline.canUndo", this.hasUndo);
  }

  dispose(): void {
    clearTimeout(this.timer);
    clearTimeout(this.filesTimer);
    clearInterval(this.clock);
    this.listening.dispose();
    this.changed.dispose();
  }

  /** Shows older checkpoints. */
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
    // Requests one more to find out whether there are more.
    const { checkpoints } = await this.client.request("sightline/listCheckpoints", { limit: this.limit + 1 });
    const nodes: Node[] = checkpoints
      .slice(0, this.limit)
      .map((checkpoint) => ({ kind: "checkpoint", checkpoint }));
    return checkpoints.length > this.limit ? [...nodes, { kind: "more" }] : nodes;
  }

  private async files(checkpoint: Checkpoint): Promise<Node[]> {
    this.expanded.add(checkpoint.id);
    const { files } = await this.client.request("sightline/diffCheckpoints", { from: checkpoint.id });
    if (files.length === 0) {
      return [{ kind: "note", text: "No changes" }];
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
    relativeTime(checkpoint.createdAt, Date.now()),
    counts(checkpoint),
  ]
    .filter((part) => part !== undefined && part !== "")
    .join(" · ");
  item.tooltip = tooltip(checkpoint);
  return item;
}

/** Returns the display name of a checkpoint. */
export function checkpointName(checkpoint: Checkpoint): string {
  if (checkpoint.label !== undefined) {
    return checkpoint.label;
  }
  const prefix = checkpoint.purpose === "undo" ? "Before restore, " : "";
  return prefix + when(checkpoint.createdAt);
}

/** Returns the folder name if there are several folders. */
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

/** Formats the changes since the previous checkpoint: `+1 ~2 −3`. */
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
    `${checkpoint.files === 1 ? "1 file" : `${checkpoint.files} files`}, ${checkpoint.bytes} bytes`,
    `Since the previous checkpoint: ${checkpoint.added} added, ${checkpoint.modified} modified, ${checkpoint.deleted} deleted`,
    ...(checkpoint.taskId === undefined ? [] : [`Task ${checkpoint.taskId}`]),
    ...(shown.length === 0 ? [] : ["Skipped:", ...shown]),
    checkpoint.id,
  ].join("\n");
}

function fileItem(node: Node & { kind: "file" }): vscode.TreeItem {
  const { file } = node;
  const uri = vscode.Uri.parse(file.uri);
  const item = new vscode.TreeItem(file.path);
  // A stable id, so that a click during a refresh finds its row.
  item.id = `${node.checkpoint.id} ${file.uri}`;
  // The path determines the icon, the query the letter and color.
  item.resourceUri = vscode.Uri.from({ scheme: CHANGED_FILE_SCHEME, path: uri.path, query: file.status });
  item.iconPath = vscode.ThemeIcon.File;
  item.contextValue = "file";
  item.description = file.binary ? "binary" : `+${file.additions} −${file.deletions}`;
  item.tooltip = file.oldPath === undefined ? file.path : `${file.oldPath} → ${file.path}`;
  item.command = { title: "Compare", command: "sightline.checkpoint.compareFile", arguments: [node] };
  return item;
}

/** One side of a comparison: a file of a checkpoint, or an empty text if `id` is empty. */
interface Side {
  /** Id of the checkpoint. */
  id: string;
  /** URI of the file under its current name. */
  uri: string;
  /** URI of the file under its old name, if different. */
  oldUri?: string;
}

/** Returns the URIs that compare `file` in `from` with `to`, or with the workspace. */
export function diffUris(file: FileDifference, from: Checkpoint, to?: Checkpoint): [vscode.Uri, vscode.Uri] {
  const now = vscode.Uri.parse(file.uri);
  const then = file.oldPath === undefined ? now : vscode.Uri.joinPath(vscode.Uri.parse(from.root), file.oldPath);
  const older: Side = { id: from.id, uri: file.uri };
  if (then !== now) {
    older.oldUri = then.toString();
  }
  const newer = to ? checkpointUri({ id: to.id, uri: file.uri }, now) : now;
  return [
    file.status === "added" ? emptyUri(now) : checkpointUri(older, then),
    file.status === "deleted" ? emptyUri(then) : newer,
  ];
}

function checkpointUri(side: Side, file: vscode.Uri): vscode.Uri {
  // The path determines the language. With equal paths, VS Code does not show a rename.
  return vscode.Uri.from({ scheme: SCHEME, path: file.path, query: JSON.stringify(side) });
}

/** Returns the URI of an empty text, for a file that exists on the other side only. */
function emptyUri(file: vscode.Uri): vscode.Uri {
  return checkpointUri({ id: "", uri: "" }, file);
}

/** Provides file contents of checkpoints to diff editors. */
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
      // The file has not changed.
      const bytes = await vscode.workspace.fs.readFile(vscode.Uri.parse(side.uri));
      return new TextDecoder().decode(bytes);
    }
    if (file.omitted !== undefined) {
      throw new Error(`Cannot show ${file.path}: ${file.omitted}`);
    }
    return file.before ?? "";
  }
}
