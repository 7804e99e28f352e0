/** The commands of turns and checkpoints. */

import * as vscode from "vscode";

import type { Checkpoint, Methods } from "../../../types/protocol";
import { type Client, errorKind } from "../client";
import type { CommandContext } from "../commands";
import { count, GONE, quoted, relativeTime, size } from "../format";
import { diffUris } from "./contents";
import { restore, undo } from "./restore";
import { type Change, type State, changes, reference, stateAfter, stateOf } from "./states";
import type { CheckpointNode, CheckpointTree, FileNode, Node, TurnNode } from "./tree";

/** A row with a state to compare and restore. */
type StateNode = CheckpointNode | TurnNode;

/** Numbers of checkpoints to keep that are offered. */
const KEEP = [200, 100, 50, 20, 5];

/** Returns the commands of turns and checkpoints, by name. */
export function checkpointCommands({ client, contents, gutter, tree }: CommandContext): Record<string, (...args: never[]) => unknown> {
  const compare = async (from: State, to?: State): Promise<void> => {
    const found = await changes(client, from, to, true);
    contents.remember(found);
    await openChanges(found, `${from.name} ↔ ${to ? to.name : "now"}`);
  };
  const refreshAfter = (work: Promise<void>): Promise<void> => work.finally(() => tree.refresh());
  /** Runs a command on the row of its menu, or on the selected row for a key, which passes no arguments. */
  const onRow = (run: (node: Node) => unknown) => (...args: RowArguments) => {
    const [row] = args.length === 0 ? tree.selection : rowsOfMenu([args[0]]);
    return row && run(row);
  };
  const onState = (run: (node: StateNode) => unknown) => onRow((node) => (isState(node) ? run(node) : undefined));
  const onFile = (run: (node: FileNode) => unknown) => onRow((node) => (node.kind === "file" ? run(node) : undefined));
  const onTurn = (run: (node: TurnNode) => unknown) => onState((node) => (node.kind === "turn" ? run(node) : undefined));
  return {
    "sightline.checkpoint.create": () => createCheckpoint(client, tree),
    "sightline.checkpoint.compareFile": onFile(({ change }) => compareFile(change)),
    "sightline.checkpoint.compare": async () => {
      const state = await pick(client, "Compare the Workspace with a Checkpoint");
      return state && (await compare(state));
    },
    "sightline.checkpoint.compareWithWorkspace": onState(({ state }) => compare(state)),
    "sightline.checkpoint.compareWithPrevious": onState(async ({ state }) => {
      const previous = await previousOf(client, state);
      return previous && (await compare(previous, state));
    }),
    "sightline.turn.compare": onTurn(({ state, turn }) => compare(state, stateAfter(turn))),
    "sightline.turn.restore": onTurn(({ state }) => refreshAfter(restore(client, state))),
    "sightline.turn.restoreAfter": onTurn(({ turn }) => {
      const after = stateAfter(turn);
      return after ? refreshAfter(restore(client, after)) : vscode.window.showInformationMessage("The turn is still running.");
    }),
    "sightline.turn.revert": onTurn(({ turn: { name, root } }) =>
      refreshAfter(restore(client, { name, id: name, root }, { only: "turn" })),
    ),
    "sightline.checkpoint.commit": onState((node) => commit(client, (node.kind === "turn" && stateAfter(node.turn)) || node.state)),
    "sightline.checkpoint.restore": async (...args: RowArguments) => {
      const state = stateOfMenu(args) ?? (await pick(client, "Restore a Checkpoint"));
      return state && (await refreshAfter(restore(client, state)));
    },
    "sightline.checkpoint.restoreFile": onFile(({ change: { file, from } }) => refreshAfter(restore(client, from, { paths: [file.uri] }))),
    "sightline.checkpoint.undoRestore": () => refreshAfter(undo(client, tree.undoPoint)),
    "sightline.checkpoint.undoThis": (point?: string | Node) =>
      refreshAfter(undo(client, typeof point === "string" ? point : stateOfMenu([point])?.id)),
    "sightline.checkpoint.rename": onState((node) => node.kind === "checkpoint" && renameCheckpoint(client, tree, node.checkpoint)),
    "sightline.checkpoint.delete": (...args: RowArguments) => {
      const rows = args.length === 0 ? tree.selection : rowsOfMenu(args);
      return deleteStates(client, tree, rows.filter(isState));
    },
    "sightline.checkpoint.copyId": onState((node) =>
      vscode.env.clipboard.writeText(node.kind === "turn" ? node.turn.name : node.state.id),
    ),
    "sightline.gutter.show": async (...args: RowArguments) => {
      const [turn] = tree.turns;
      const state = stateOfMenu(args) ?? (turn ? { name: turn.name, id: turn.before ?? turn.name, root: turn.root } : await pick(client, "Mark the Changes Since"));
      return state && (await gutter.show(state));
    },
    "sightline.gutter.hide": () => gutter.hide(),
    "sightline.checkpoints.refresh": () => tree.refresh(),
    "sightline.checkpoints.more": () => tree.showMore(),
    "sightline.checkpoints.filter": () => tree.askForFilter(),
    "sightline.checkpoints.clearFilter": () => tree.setFilter(""),
    "sightline.checkpoints.viewAsTree": () => tree.setTree(true),
    "sightline.checkpoints.viewAsList": () => tree.setTree(false),
    "sightline.checkpoints.stats": () => showStats(client),
    "sightline.checkpoints.prune": () => prune(client, tree),
  };
}

function isState(node: Node): node is StateNode {
  return node.kind === "checkpoint" || node.kind === "turn";
}

/** What VS Code passes to the command of a menu: the row, and all selected rows if the row is one of several. */
type RowArguments = [node?: Node | undefined, nodes?: (Node | undefined)[]];

/** Returns the rows of a menu. VS Code passes none if they are gone, or while the view is refreshed. */
function rowsOfMenu([node, nodes = [node]]: RowArguments): Node[] {
  const rows = nodes.filter((row) => !!row);
  if (rows.length === 0) {
    throw new Error(GONE);
  }
  return rows;
}

/** Returns the state of the row of a menu. `undefined` for a command without a menu. */
function stateOfMenu(args: RowArguments): State | undefined {
  const [row] = args.length === 0 ? [] : rowsOfMenu([args[0]]);
  return row && isState(row) ? row.state : undefined;
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
  vscode.window.setStatusBarMessage(`$(check) Checkpoint created: ${count(created.files, "file")}${skipped}`, 4000);
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

/** Returns the ids of the checkpoints of a turn. */
function idsOfTurn({ before, after }: { before?: string; after?: string }): string[] {
  return [before, after].filter((id) => id !== undefined);
}

/** Deletes the checkpoints of rows, after a question. */
async function deleteStates(client: Client, tree: CheckpointTree, nodes: StateNode[]): Promise<void> {
  const chosen = nodes.flatMap((node) => (node.kind === "turn" ? [node.turn.name] : []));
  // The end of a turn can also be the beginning of the next one, which stays.
  const kept = new Set(tree.turns.filter(({ name }) => !chosen.includes(name)).flatMap(idsOfTurn));
  const all = nodes.flatMap((node) => (node.kind === "turn" ? idsOfTurn(node.turn) : (node.state.members?.map(({ id }) => id) ?? [node.state.id])));
  const ids = [...new Set(all)].filter((id) => !kept.has(id));
  const [first] = nodes;
  if (!first || ids.length === 0) {
    void vscode.window.showInformationMessage("There is no checkpoint to delete: the turn changed nothing, or is still running.");
    return;
  }
  const what = nodes.length === 1 ? (first.kind === "turn" ? `the checkpoints of ${first.turn.name}` : first.state.name) : `${count(ids.length, "checkpoint")}`;
  const detail = "Files of the workspace stay as they are. The deleted states cannot be restored afterwards.";
  if ((await vscode.window.showWarningMessage(`Delete ${what}?`, { modal: true, detail }, "Delete")) !== "Delete") {
    return;
  }
  await client.requestWithProgress("Deleting", "sightline/pruneCheckpoints", { ids });
  tree.refresh();
}

/** Commits a state to a new branch of the user's repository, whose files stay as they are. */
async function commit(client: Client, state: State): Promise<void> {
  const prompt = "Name of a new branch. HEAD, the index and your files stay as they are.";
  const branch = await vscode.window.showInputBox({ title: `Commit “${state.name}” to a Branch`, prompt });
  if (branch === undefined || branch.trim() === "") {
    return;
  }
  const done = await client.request("sightline/commitCheckpoint", { ...reference(state), branch: branch.trim() });
  void vscode.window.showInformationMessage(`Committed “${state.name}” to branch ${done.branch} (${done.commit.slice(0, 8)}).`);
}

async function showStats(client: Client): Promise<void> {
  const { count: number, bytes, oldest } = await client.request("sightline/checkpointStats", {});
  const since = oldest === undefined ? "" : `, the oldest from ${relativeTime(oldest, Date.now())}`;
  const removeOld = "Remove Old Checkpoints…";
  const text = `${count(number, "checkpoint")} use ${size(bytes)}${since}.`;
  if ((await vscode.window.showInformationMessage(text, removeOld)) === removeOld) {
    await vscode.commands.executeCommand("sightline.checkpoints.prune");
  }
}

/** Removes old checkpoints, after a question that says how many. */
async function prune(client: Client, tree: CheckpointTree): Promise<void> {
  const choices = KEEP.map((keep) => ({ label: `Keep the newest ${keep} of each folder`, keep }));
  const options = { title: "Remove Old Checkpoints", placeHolder: "Those with a label are kept" };
  const chosen = await vscode.window.showQuickPick(choices, options);
  if (!chosen) {
    return;
  }
  const params: Methods["sightline/pruneCheckpoints"]["params"] = { keep: chosen.keep };
  const { removed, freedBytes } = await client.request("sightline/pruneCheckpoints", { ...params, dryRun: true });
  if (removed === 0) {
    void vscode.window.showInformationMessage("There are no checkpoints to remove.");
    return;
  }
  const question = `Remove ${count(removed, "checkpoint")}, about ${size(freedBytes)}?`;
  const detail = "Files of the workspace stay as they are. This cannot be undone.";
  if ((await vscode.window.showWarningMessage(question, { modal: true, detail }, "Remove")) !== "Remove") {
    return;
  }
  const done = await client.requestWithProgress("Removing", "sightline/pruneCheckpoints", params);
  void vscode.window.showInformationMessage(`Removed ${count(done.removed, "checkpoint")}, ${size(done.freedBytes)}.`);
  tree.refresh();
}

/** Asks the user for a checkpoint. */
async function pick(client: Client, title: string): Promise<State | undefined> {
  const { checkpoints } = await client.request("sightline/listCheckpoints", { limit: 500 });
  const items = checkpoints.map((checkpoint) => {
    const state = stateOf(checkpoint, checkpoints);
    const { createdAt } = checkpoint;
    const description = `${relativeTime(createdAt, Date.now())}, ${new Date(createdAt).toLocaleString()}`;
    return { label: state.name, description, state };
  });
  const placeHolder = items.length === 0 ? "No checkpoints" : "Checkpoints, newest first";
  return (await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true }))?.state;
}

async function compareFile(change: Change): Promise<void> {
  const { file, from, to } = change;
  if (file.binary) {
    void vscode.window.showInformationMessage(`Cannot compare ${file.path}: it is not a text file.`);
    return;
  }
  const [older, newer] = diffUris(change);
  const title = `${file.path} (${from.name} ↔ ${to ? to.name : "now"})`;
  await vscode.commands.executeCommand("vscode.diff", older, newer, title, { preview: true });
}

/** Opens changes in one editor. */
async function openChanges(found: readonly Change[], title: string): Promise<void> {
  const texts = found.filter(({ file }) => !file.binary);
  if (texts.length === 0) {
    const binary = found.length === 0 ? "" : ` to text; ${count(found.length, "binary file")} changed`;
    void vscode.window.showInformationMessage(`No changes${binary}: ${title}.`);
    return;
  }
  const resources = texts.map((change) => [vscode.Uri.parse(change.file.uri), ...diffUris(change)]);
  await vscode.commands.executeCommand("vscode.changes", title, resources);
}

async function previousOf(client: Client, state: State): Promise<State | undefined> {
  const { checkpoints } = await client.request("sightline/listCheckpoints", { root: state.root });
  const { id } = reference(state);
  const index = checkpoints.findIndex((one) => one.id === id);
  const previous = index < 0 ? undefined : checkpoints[index + 1];
  if (!previous) {
    void vscode.window.showInformationMessage(`There is no checkpoint before ${quoted(state.name)}.`);
    return undefined;
  }
  // Of this folder only.
  const { members: _, ...one } = stateOf(previous, checkpoints);
  return one;
}
