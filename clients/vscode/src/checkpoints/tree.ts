/**
 * The view of turns and checkpoints: days, sessions of agents with their turns, and checkpoints, newest
 * first, each with the files that changed.
 */

import * as vscode from "vscode";

import type { Checkpoint, ListedTurn } from "../../../types/protocol";
import type { Client } from "../client";
import { CHANGED_FILE_SCHEME } from "../decorations";
import { clock, count, dayName, quoted, relativeTime, size } from "../format";
import { type Change, type State, changes, checkpointName, stateAfter, stateBefore, stateOf } from "./states";

/** Number of turns and of checkpoints shown initially, and added by “Show more”. */
const PAGE = 100;

/** Debounce time of a refresh, in milliseconds. */
const DEBOUNCE_MS = 50;

/** Delay of a refresh after files changed, in milliseconds. Later changes do not postpone it. */
const FILES_DELAY_MS = 1_000;

/** Interval of refreshes that update relative times, in milliseconds. */
const TIMES_INTERVAL_MS = 60_000;

/** Maximum number of files named in a tooltip. */
const MAX_NAMED_FILES = 20;

export type CheckpointNode = { kind: "checkpoint"; checkpoint: Checkpoint; state: State };
export type TurnNode = { kind: "turn"; turn: ListedTurn; state: State };
export type FileNode = { kind: "file"; change: Change; parent: CheckpointNode | TurnNode };

/** A row of the view. */
export type Node =
  | { kind: "day"; name: string; children: Node[] }
  | { kind: "session"; name: string; turns: ListedTurn[]; children: Node[]; day: string }
  | { kind: "outside"; turn: ListedTurn }
  | TurnNode
  | CheckpointNode
  | { kind: "folder"; name: string; id: string; children: Node[] }
  | FileNode
  | { kind: "note"; text: string }
  | { kind: "more" };

/** Data of the view. */
export class CheckpointTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly view: vscode.TreeView<Node>;
  private readonly listening: vscode.Disposable;
  private readonly clock: NodeJS.Timeout;
  /** The rows of files, by the id of the expanded row. */
  private readonly expanded = new Map<string, Node[]>();
  /** The rows below the root, unless they could not be loaded. */
  private rows: Node[] | undefined;
  private loads = 0;
  /** What VS Code was last asked to show, as JSON. */
  private shown: string | undefined;
  private limit = PAGE;
  private timer: NodeJS.Timeout | undefined;
  private filesTimer: NodeJS.Timeout | undefined;
  private undoable: string | undefined;
  private filter = "";
  private listed: { checkpoints: Checkpoint[]; turns: ListedTurn[] } = { checkpoints: [], turns: [] };

  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly client: Client,
    private readonly memory: vscode.Memento,
  ) {
    this.view = vscode.window.createTreeView("sightline.checkpoints", {
      treeDataProvider: this,
      canSelectMany: true,
      showCollapseAll: true,
    });
    // VS Code watches the workspace folders anyway.
    const files = vscode.workspace.createFileSystemWatcher("**/*");
    this.listening = vscode.Disposable.from(
      this.view,
      this.view.onDidCollapseElement(({ element }) => this.expanded.delete(rowId(element) ?? "")),
      // Changes are not followed while the view is hidden.
      this.view.onDidChangeVisibility(({ visible }) => visible && this.refresh()),
      files,
      files.onDidCreate(() => this.filesChanged()),
      files.onDidChange(() => this.filesChanged()),
      files.onDidDelete(() => this.filesChanged()),
    );
    this.clock = setInterval(() => this.view.visible && this.refresh(), TIMES_INTERVAL_MS);
    this.setContext("sightline.asTree", this.isTree);
  }

  /** Returns the undo point of the restore to undo, if there is one. */
  get undoPoint(): string | undefined {
    return this.undoable;
  }

  /** Returns the selected rows. */
  get selection(): readonly Node[] {
    return this.view.selection;
  }

  /** Returns the loaded turns. */
  get turns(): readonly ListedTurn[] {
    return this.listed.turns;
  }

  /** Refreshes the view. Several calls in a row refresh it once. */
  refresh(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), DEBOUNCE_MS);
  }

  /**
   * Loads all rows, then lets VS Code ask for them. It forgets its rows when it begins to ask, and calls commands of
   * a row without the row until it has the answer.
   */
  private async load(): Promise<void> {
    this.loads += 1;
    const load = this.loads;
    let rows: Node[] | undefined;
    try {
      rows = this.client.isRunning ? await this.days() : [];
      const shown = leaves(rows).filter((node) => this.expanded.has(rowId(node) ?? ""));
      await Promise.all(shown.map((node) => this.files(node)));
    } catch {
      // VS Code asks again and shows the error.
      this.expanded.clear();
      rows = undefined;
    }
    // A later load has newer rows.
    if (load !== this.loads) {
      return;
    }
    const shown = rows && JSON.stringify(this.items(rows));
    const isChanged = shown === undefined || shown !== this.shown;
    this.rows = rows;
    this.shown = shown;
    if (isChanged) {
      this.changed.fire();
    }
  }

  /** Returns the items of rows and of all rows below them that were loaded. */
  private items(nodes: Node[]): unknown[] {
    return nodes.flatMap((node) => {
      const children = "children" in node ? node.children : (this.expanded.get(rowId(node) ?? "") ?? []);
      return [this.getTreeItem(node), this.items(children)];
    });
  }

  /** Compares expanded rows with the workspace again. */
  private filesChanged(): void {
    if (this.view.visible && this.expanded.size > 0) {
      this.filesTimer ??= setTimeout(() => {
        this.filesTimer = undefined;
        void this.load();
      }, FILES_DELAY_MS);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    clearTimeout(this.filesTimer);
    clearInterval(this.clock);
    this.listening.dispose();
    this.changed.dispose();
  }

  /** Shows older turns and checkpoints. */
  showMore(): void {
    this.limit += PAGE;
    this.refresh();
  }

  /** Shows only rows that contain a text in their name, prompt, label or files. */
  async askForFilter(): Promise<void> {
    const title = "Filter Turns";
    const prompt = "Part of a prompt, label, name or file; empty to show all";
    const typed = await vscode.window.showInputBox({ title, prompt, value: this.filter });
    if (typed !== undefined) {
      this.setFilter(typed.trim());
    }
  }

  setFilter(filter: string): void {
    this.filter = filter;
    this.view.description = filter === "" ? "" : `filter: ${filter}`;
    this.setContext("sightline.filtered", filter !== "");
    this.refresh();
  }

  /** Shows the files of a row as folders, or as a list. */
  setTree(isTree: boolean): void {
    void this.memory.update("asTree", isTree);
    this.setContext("sightline.asTree", isTree);
    this.refresh();
  }

  private get isTree(): boolean {
    return this.memory.get("asTree", false);
  }

  private setContext(name: string, value: boolean): void {
    void vscode.commands.executeCommand("setContext", name, value);
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (!this.client.isRunning) {
      return [];
    }
    if (!node) {
      return this.rows ?? (await this.days());
    }
    switch (node.kind) {
      case "day":
      case "session":
      case "folder":
        return node.children;
      case "turn":
      case "checkpoint":
        return this.expanded.get(rowId(node) ?? "") ?? (await this.files(node));
      default:
        return [];
    }
  }

  private async days(): Promise<Node[]> {
    // Requests one more to find out whether there are more.
    const limit = this.limit + 1;
    const [{ checkpoints }, { turns }] = await Promise.all([
      this.client.request("sightline/listCheckpoints", { limit }),
      this.client.request("sightline/listTurns", { limit: Math.min(limit, 1000) }),
    ]);
    this.listed = { checkpoints, turns };
    this.updateUndo();
    const ends = [
      ...(checkpoints.length === limit ? [checkpoints.at(-1)?.createdAt ?? 0] : []),
      ...(turns.length === limit ? [turns.at(-1)?.startedAt ?? 0] : []),
    ];
    const oldest = Math.max(0, ...ends);
    const rows = [...this.checkpointRows(), ...this.turnRows()].filter(({ at }) => at > oldest);
    const days = byDay(rows.sort((a, b) => b.at - a.at));
    return ends.length === 0 ? days : [...days, { kind: "more" }];
  }

  /** Offers the undo of the newest restore that was not undone, and was no undo. */
  private updateUndo(): void {
    const { checkpoints } = this.listed;
    const kinds = new Map(checkpoints.map(({ id, kind }) => [id, kind]));
    const last = checkpoints.find(({ kind, undoneBy }) => kind === "undoPoint" && undoneBy === undefined);
    const isUndo = last?.restoredId !== undefined && kinds.get(last.restoredId) === "undoPoint";
    this.undoable = isUndo ? undefined : last?.id;
    this.setContext("sightline.canUndo", this.undoable !== undefined);
  }

  /** Returns the checkpoints without those of turns, and without undo points that are used up. */
  private checkpointRows(): Row[] {
    const { checkpoints } = this.listed;
    const shown = checkpoints.filter(({ id, label, turn, group, undoneBy }) => {
      const isFirst = group === undefined || group[0]?.id === id;
      return isFirst && (label !== undefined || (turn?.name === undefined && undoneBy === undefined));
    });
    return shown.flatMap((checkpoint) => {
      const state = stateOf(checkpoint, checkpoints);
      const isShown = this.matches([state.name, checkpoint.id, checkpoint.taskId ?? ""]);
      return isShown ? [{ at: checkpoint.createdAt, node: { kind: "checkpoint", checkpoint, state } }] : [];
    });
  }

  private turnRows(): Row[] {
    return this.listed.turns.flatMap((turn) => {
      const { name, prompt = "", files, startedAt, outside, root } = turn;
      const session = `${root} ${name.slice(0, name.lastIndexOf("."))}`;
      const isShown = this.matches([name, prompt, ...files.map(({ path }) => path)]);
      const isOutsideShown = outside && this.matches(outside.files.map(({ path }) => path));
      return [
        ...(isShown ? [{ at: startedAt, session, node: { kind: "turn" as const, turn, state: stateBefore(turn) } }] : []),
        ...(isOutsideShown ? [{ at: startedAt - 1, session, node: { kind: "outside" as const, turn } }] : []),
      ];
    });
  }

  private matches(texts: string[]): boolean {
    const wanted = this.filter.toLowerCase();
    return wanted === "" || texts.some((text) => text.toLowerCase().includes(wanted));
  }

  private async files(node: CheckpointNode | TurnNode): Promise<Node[]> {
    const id = rowId(node) ?? "";
    const found = await changes(this.client, node.state, node.kind === "turn" ? stateAfter(node.turn) : undefined);
    const nodes = this.fileRows(node, id, found);
    this.expanded.set(id, nodes);
    return nodes;
  }

  private fileRows(node: CheckpointNode | TurnNode, id: string, found: Change[]): Node[] {
    if (found.length === 0) {
      return [{ kind: "note", text: "No changes" }];
    }
    const files = found.map((change): FileNode => ({ kind: "file", change, parent: node }));
    const rows = (some: FileNode[], id: string): Node[] => (this.isTree ? folders(some, id) : some);
    return node.state.members?.flatMap(({ root }): Node[] => {
      const inside = files.filter(({ change }) => change.from.root === root);
      const folder = { kind: "folder" as const, name: folderName(root) ?? root, id: `${id} ${root}` };
      return inside.length === 0 ? [] : [{ ...folder, children: rows(inside, folder.id) }];
    }) ?? rows(files, id);
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const { Expanded } = vscode.TreeItemCollapsibleState;
    switch (node.kind) {
      case "day":
        return withId(new vscode.TreeItem(node.name, Expanded), node);
      case "session":
        return sessionItem(node);
      case "turn":
        return turnItem(node);
      case "outside":
        return outsideItem(node.turn);
      case "checkpoint":
        return this.checkpointItem(node);
      case "folder": {
        const item = withId(new vscode.TreeItem(node.name, Expanded), node);
        item.iconPath = vscode.ThemeIcon.Folder;
        return item;
      }
      case "file":
        return fileItem(node, this.isTree);
      case "note":
        return new vscode.TreeItem(node.text);
      case "more": {
        const item = new vscode.TreeItem("Show more…");
        item.command = { title: "Show more", command: "sightline.checkpoints.more" };
        return item;
      }
    }
  }

  private checkpointItem(node: CheckpointNode): vscode.TreeItem {
    const { checkpoint, state } = node;
    const item = withId(new vscode.TreeItem(state.name, vscode.TreeItemCollapsibleState.Collapsed), node);
    const isUndoPoint = checkpoint.kind === "undoPoint";
    item.contextValue = isUndoPoint ? "undoPoint" : "checkpoint";
    item.iconPath = new vscode.ThemeIcon(isUndoPoint ? "discard" : "history");
    const folder = state.members ? undefined : folderName(checkpoint.root);
    item.description = joined([folder, relativeTime(checkpoint.createdAt, Date.now()), counts(checkpoint)]);
    item.tooltip = tooltip(checkpoint, checkpointName(checkpoint, this.listed.checkpoints));
    return item;
  }
}

/** A row, with its time and session. */
interface Row {
  at: number;
  session?: string;
  node: Node;
}

/** Returns the rows of turns and checkpoints. */
function leaves(nodes: Node[]): (CheckpointNode | TurnNode)[] {
  return nodes.flatMap((node) => {
    switch (node.kind) {
      case "day":
      case "session":
        return leaves(node.children);
      case "turn":
      case "checkpoint":
        return [node];
      default:
        return [];
    }
  });
}

/** Groups rows by day and, within a day, those of a session. */
function byDay(rows: Row[]): Node[] {
  const days = new Map<string, Row[]>();
  for (const row of rows) {
    const name = dayName(row.at, Date.now());
    days.set(name, [...(days.get(name) ?? []), row]);
  }
  return [...days].map(([name, ofDay]) => ({ kind: "day", name, children: bySession(ofDay, name) }));
}

function bySession(rows: Row[], day: string): Node[] {
  const sessions = new Map<string, Node & { kind: "session" }>();
  return rows.flatMap(({ session, node }): Node[] => {
    if (session === undefined) {
      return [node];
    }
    const known = sessions.get(session);
    const group = known ?? { kind: "session", name: session.slice(session.lastIndexOf(" ") + 1), turns: [], children: [], day };
    sessions.set(session, group);
    group.children.push(node);
    if (node.kind === "turn") {
      group.turns.push(node.turn);
    }
    return known ? [] : [group];
  });
}

/** Groups files by folder. A folder that contains only a folder is joined with it. */
function folders(files: FileNode[], parent: string, depth = 0): Node[] {
  const below = new Map<string, FileNode[]>();
  const here: Node[] = [];
  for (const file of files) {
    const parts = pathBelow(file.change).split("/");
    const name = parts[depth];
    if (name === undefined || depth === parts.length - 1) {
      here.push(file);
    } else {
      below.set(name, [...(below.get(name) ?? []), file]);
    }
  }
  const nodes = [...below].map(([name, inside]): Node => {
    const id = `${parent} ${name}/`;
    const children = folders(inside, id, depth + 1);
    const [only] = children;
    return children.length === 1 && only?.kind === "folder"
      ? { ...only, name: `${name}/${only.name}` }
      : { kind: "folder", name, id, children };
  });
  return [...nodes, ...here];
}

/** Returns a stable id, so that a row stays expanded, and a click during a refresh finds it. */
function rowId(node: Node): string | undefined {
  switch (node.kind) {
    case "day":
      return node.name;
    case "session":
      return `${node.day} ${node.turns[0]?.root ?? ""} ${node.name}`;
    case "turn":
      return `${node.turn.root} ${node.turn.name}`;
    case "checkpoint":
      return node.checkpoint.id;
    case "folder":
      return node.id;
    case "file":
      return `${rowId(node.parent)} ${node.change.file.uri}`;
    default:
      return undefined;
  }
}

function withId(item: vscode.TreeItem, node: Node): vscode.TreeItem {
  const id = rowId(node);
  if (id !== undefined) {
    item.id = id;
  }
  return item;
}

/** Returns the folder name if there are several folders. */
function folderName(root: string): string | undefined {
  const isOne = (vscode.workspace.workspaceFolders?.length ?? 0) < 2;
  return isOne ? undefined : vscode.workspace.getWorkspaceFolder(vscode.Uri.parse(root))?.name;
}

/** Returns the path of a file below its workspace folder. */
function pathBelow({ file, from }: Change): string {
  const folder = `${vscode.Uri.parse(from.root).path}/`;
  const { path } = vscode.Uri.parse(file.uri);
  return path.startsWith(folder) ? path.slice(folder.length) : file.path;
}

function joined(parts: (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== "").join(" · ");
}

function sessionItem(node: Node & { kind: "session" }): vscode.TreeItem {
  const item = withId(new vscode.TreeItem(node.name, vscode.TreeItemCollapsibleState.Expanded), node);
  const first = node.turns.at(-1);
  item.iconPath = new vscode.ThemeIcon("comment-discussion");
  item.description = joined([first && folderName(first.root), count(node.turns.length, "turn")]);
  return item;
}

function turnItem(node: TurnNode): vscode.TreeItem {
  const { turn } = node;
  const { Collapsed, None } = vscode.TreeItemCollapsibleState;
  const isEdit = turn.before !== undefined;
  const item = withId(new vscode.TreeItem(turn.prompt ?? turn.name, isEdit ? Collapsed : None), node);
  item.contextValue = "turn";
  item.iconPath = new vscode.ThemeIcon(turn.running === true ? "sync~spin" : "comment");
  const files = turn.files.length + (turn.moreFiles ?? 0);
  const sum = (part: "additions" | "deletions"): number => turn.files.reduce((total, file) => total + file[part], 0);
  const isUnknown = isEdit && turn.after === undefined && turn.running !== true;
  const none = isUnknown ? "its end was not saved" : "no changes";
  const size = files === 0 ? none : `+${sum("additions")} −${sum("deletions")} · ${count(files, "file")}`;
  item.description = joined([size, turn.prompt === undefined ? undefined : turn.name, clock(turn.startedAt)]);
  const shared = turn.files.flatMap(({ path, sharedWith }) => (sharedWith ? [`${path}: shared with ${sharedWith.join(", ")}`] : []));
  item.tooltip = [
    turn.prompt === undefined ? turn.name : `${turn.name} ${quoted(turn.prompt)}`,
    `${new Date(turn.startedAt).toLocaleString()}${turn.head?.branch === undefined ? "" : `, on branch ${turn.head.branch}`}`,
    `Session ${turn.session}`,
    ...limited(shared),
  ].join("\n");
  return item;
}

/** Returns the row of what changed before a turn, outside of turns. */
function outsideItem({ outside, startedAt }: ListedTurn): vscode.TreeItem {
  const { files = [], moreFiles = 0, turns, from, to } = outside ?? {};
  const item = new vscode.TreeItem(turns ? `${turns.join(", ")}, or you` : "You, or another program");
  item.iconPath = new vscode.ThemeIcon("person");
  const place = (head: typeof from): string => head?.branch ?? head?.commit.slice(0, 8) ?? "no commit";
  const branches = from || to ? `${place(from)} → ${place(to)}` : undefined;
  item.description = joined([branches, count(files.length + moreFiles, "file"), `before ${clock(startedAt)}`]);
  item.tooltip = limited(files.map(({ status, path }) => `${status}: ${path}`)).join("\n");
  return item;
}

function limited(lines: string[]): string[] {
  const more = lines.length - MAX_NAMED_FILES;
  return more > 0 ? [...lines.slice(0, MAX_NAMED_FILES), `and ${more} more`] : lines;
}

/** Formats the changes since the previous checkpoint: `+1 ~2 −3`. */
function counts({ added, modified, deleted }: Checkpoint): string {
  return [
    [added, "+"],
    [modified, "~"],
    [deleted, "−"],
  ]
    .filter(([number]) => number !== 0)
    .map(([number, sign]) => `${sign}${number}`)
    .join(" ");
}

function tooltip(checkpoint: Checkpoint, name: string): string {
  const skipped = checkpoint.skipped.map(({ path, reason }) => `  ${path}: ${reason}`);
  const { head } = checkpoint;
  return [
    name,
    `${new Date(checkpoint.createdAt).toLocaleString()}${head?.branch === undefined ? "" : `, on branch ${head.branch}`}`,
    `${count(checkpoint.files, "file")}, ${size(checkpoint.bytes)}`,
    `Since the previous checkpoint: ${checkpoint.added} added, ${checkpoint.modified} modified, ${checkpoint.deleted} deleted`,
    ...(checkpoint.taskId === undefined ? [] : [`Task ${checkpoint.taskId}`]),
    ...(skipped.length === 0 ? [] : ["Skipped:", ...limited(skipped)]),
    checkpoint.id,
  ].join("\n");
}

function fileItem(node: FileNode, isTree: boolean): vscode.TreeItem {
  const { file } = node.change;
  const uri = vscode.Uri.parse(file.uri);
  const path = pathBelow(node.change);
  const slash = path.lastIndexOf("/");
  const item = withId(new vscode.TreeItem(path.slice(slash + 1)), node);
  // The path determines the icon, the query the letter and color.
  item.resourceUri = vscode.Uri.from({ scheme: CHANGED_FILE_SCHEME, path: uri.path, query: file.status });
  item.iconPath = vscode.ThemeIcon.File;
  item.contextValue = "file";
  const root = node.parent.state.members ? undefined : folderName(node.change.from.root);
  const folder = isTree ? undefined : joined([root, path.slice(0, Math.max(slash, 0))]);
  item.description = joined([folder, file.binary ? "binary" : `+${file.additions} −${file.deletions}`]);
  item.tooltip = file.oldPath === undefined ? file.path : `${file.oldPath} → ${file.path}`;
  item.command = { title: "Compare", command: "sightline.checkpoint.compareFile", arguments: [node] };
  return item;
}
