/**
 * Restore and undo: shows a preview to select from, applies it, and offers an
 * undo.
 */

import * as vscode from "vscode";

import type { PreviewRestoreParams, PreviewRestoreResult, RestoreCheckpointResult, RestoreConflict, RestoreTarget } from "../../../types/protocol";
import { type Client, errorKind } from "../client";
import { relativeTime, when } from "../format";
import { type State, fileName, reference } from "./states";

/** A path of the preview, or a separator, which has no URI. */
interface Choice extends vscode.QuickPickItem {
  uri?: string;
  isConflict?: boolean;
}

/** Selection of the user. */
interface Selection {
  /** URIs. Defaults to all. */
  paths?: string[];
  /** Also restore conflicts. */
  force: boolean;
  /** Token of the preview, if it was accepted unchanged. */
  token?: string;
}

/** Limits of a restore. */
interface Limits {
  /** URIs. */
  paths?: string[];
  /** Revert what the turn changed, and keep what came later. */
  only?: "turn";
}

/** Previews a restore of a state, and restores the files selected by the user. */
export async function restore(client: Client, state: State, { paths, only }: Limits = {}): Promise<void> {
  const { name } = state;
  const named = { ...reference(state), ...(state.members && { allRoots: true }), ...(only && { only }) };
  const params = { ...named, undo: false, ...(paths && { paths }) };
  const preview = await client.requestWithProgress(`Comparing with “${name}”`, "sightline/previewRestore", params);
  if (preview.changes.length === 0 && preview.conflicts.length === 0) {
    void vscode.window.showInformationMessage(`Already up to date with “${name}”.`);
    return;
  }
  const title = only ? `Revert ${name}` : `Restore ${preview.target ? describe(preview.target, name) : name}`;
  const selection = await selectChanges(client, title, "Select the files to restore", preview, params);
  if (!selection) {
    return;
  }
  try {
    const result = await client.requestWithProgress(`Restoring “${name}”`, "sightline/restoreCheckpoint", {
      ...named,
      ...selection,
    });
    showResult(result, only ? `restored without “${name}”` : `restored from “${name}”`);
  } catch (error) {
    if (errorKind(error) !== "conflict") {
      throw error;
    }
    const previewAgain = "Preview Again";
    const text = "Files changed since the preview. Nothing was restored.";
    if ((await vscode.window.showWarningMessage(text, previewAgain)) === previewAgain) {
      await restore(client, state, { ...(paths && { paths }), ...(only && { only }) });
    }
  }
}

/** Describes the state that a restore leads to: `“before claude-2.3”, 15:53, 12 minutes ago, on branch main`. */
function describe({ createdAt, branch }: RestoreTarget, name: string): string {
  const place = branch === undefined ? [] : [`on branch ${branch}`];
  return [`“${name}”`, when(createdAt), relativeTime(createdAt, Date.now()), ...place].join(", ");
}

/** Previews the undo of the restore with `undoId`, or of the last restore, and undoes what the user selects. */
export async function undo(client: Client, undoId?: string): Promise<void> {
  const params = { id: undoId ?? "last", undo: true };
  const title = "Comparing with the state before the restore";
  const preview = await client.requestWithProgress(title, "sightline/previewRestore", params);
  const { changes, conflicts, taskId } = preview;
  const point = preview.undoId ?? undoId;
  if (changes.length === 0 && conflicts.length === 0 && taskId === undefined) {
    void vscode.window.showInformationMessage("Already up to date with the state before the restore.");
    return;
  }
  const selection = await selectUndo(client, preview, params);
  if (!selection) {
    return;
  }
  try {
    const result = await client.requestWithProgress("Undoing the restore", "sightline/undoRestore", {
      ...(point !== undefined && { undoId: point }),
      ...selection,
    });
    showResult(result, "restored to the state before the restore");
  } catch (error) {
    if (errorKind(error) !== "conflict") {
      throw error;
    }
    const previewAgain = "Preview Again";
    const text = `Nothing was undone: ${error instanceof Error ? error.message : "files changed since the preview"}`;
    if ((await vscode.window.showWarningMessage(text, previewAgain)) === previewAgain) {
      await undo(client, undoId);
    }
  }
}

/** Shows the preview of an undo. Returns undefined if it is dismissed. */
async function selectUndo(
  client: Client,
  preview: PreviewRestoreResult,
  params: PreviewRestoreParams,
): Promise<Selection | undefined> {
  const { changes, conflicts, taskId, token } = preview;
  if (changes.length === 0 && conflicts.length === 0) {
    const undoLabel = "Undo";
    const question = `Undo the restore? The conversation of task ${taskId} is restored too.`;
    const answer = await vscode.window.showWarningMessage(question, { modal: true }, undoLabel);
    return answer === undoLabel ? { token, force: false } : undefined;
  }
  const title = taskId === undefined ? "Undo Restore" : `Undo Restore, Also of the Conversation of Task ${taskId}`;
  return selectChanges(client, title, "Select the files to undo", preview, params);
}

/** Returns the rows of conflicts below a separator that says why they are not selected. */
function conflictRows(why: string, conflicts: RestoreConflict[]): Choice[] {
  if (conflicts.length === 0) {
    return [];
  }
  const files = conflicts.length === 1 ? "1 file" : `${conflicts.length} files`;
  return [
    { label: `${files} ${why}`, kind: vscode.QuickPickItemKind.Separator },
    ...conflicts.map(({ path, uri, reason }) => ({
      // Denied files are counted in one entry without a path.
      label: `$(warning) ${path === "" ? "" : fileName(uri)}`,
      description: `kept unless selected: ${reason}`,
      picked: false,
      uri,
      isConflict: true,
    })),
  ];
}

/** Shows a preview to select from. Returns undefined if it is dismissed. */
async function selectChanges(
  client: Client,
  title: string,
  placeHolder: string,
  { changes, conflicts, token, warnings = [] }: PreviewRestoreResult,
  params: PreviewRestoreParams,
): Promise<Selection | undefined> {
  const later = conflicts.filter((conflict) => conflict.changedSince);
  const separator = (label: string): Choice => ({ label, kind: vscode.QuickPickItemKind.Separator });
  // Warnings and later work come first, so that they are visible.
  const choices: Choice[] = [
    ...warnings.map((warning) => ({ label: `$(warning) Warning: ${warning}`, alwaysShow: true })),
    ...conflictRows("changed after the restore", later),
    ...(later.length > 0 ? [separator("changed by the restore")] : []),
    ...changes.map(({ uri, action, reason }) => ({
      label: `$(${action === "delete" ? "trash" : "edit"}) ${fileName(uri)}`,
      description: `${action === "delete" ? "delete" : "write"}: ${reason}`,
      picked: true,
      uri,
    })),
    ...conflictRows("kept", conflicts.filter((conflict) => !conflict.changedSince)),
  ];
  const options = { title, placeHolder, canPickMany: true as const, matchOnDescription: true, ignoreFocusOut: true };
  const picked = (await vscode.window.showQuickPick(choices, options))?.filter(({ uri }) => uri !== undefined);
  if (!picked || picked.length === 0) {
    return undefined;
  }
  const force = picked.some((choice) => choice.isConflict);
  if (!force && picked.length === changes.length) {
    return { token, force, ...(params.paths && { paths: params.paths }) };
  }
  // A preview of these files alone has its token.
  const paths = picked.flatMap(({ uri }) => uri ?? []);
  const again = await client.request("sightline/previewRestore", { ...params, paths });
  return { paths, force, token: again.token };
}

/** Maximum number of paths named in a message. */
const MAX_NAMED_PATHS = 5;

/** Shows the result of a restore and offers to undo it. */
function showResult({ outcomes, conflicts = [], undoId }: RestoreCheckpointResult, what: string): void {
  const failed = outcomes.filter((outcome) => !outcome.ok);
  const done = outcomes.length - failed.length;
  if (undoId === undefined) {
    const text = ["Already up to date", ...keptPaths(conflicts)].join("; ");
    void vscode.window.showInformationMessage(`${text}.`);
    return;
  }
  const text = [
    `${done === 1 ? "1 file" : `${done} files`} ${what}`,
    ...listPaths("failed", failed.map(({ uri, error }) => `${fileName(uri)} (${error ?? "unknown error"})`)),
    ...keptPaths(conflicts),
  ].join("; ");
  const undoLabel = "Undo";
  const answer =
    failed.length === 0
      ? vscode.window.showInformationMessage(`${text}.`, undoLabel)
      : vscode.window.showWarningMessage(`${text}.`, undoLabel);
  void answer.then(async (choice) => {
    if (choice === undoLabel) {
      await vscode.commands.executeCommand("sightline.checkpoint.undoThis", undoId);
    }
  });
}

function keptPaths(conflicts: RestoreConflict[]): string[] {
  return listPaths("kept", conflicts.map(({ path, uri, reason }) => `${path === "" ? path : fileName(uri)} (${reason})`));
}

/** Formats a part of a message that lists paths. Returns nothing if there are none. */
function listPaths(what: string, paths: string[]): string[] {
  const more = paths.length > MAX_NAMED_PATHS ? ` and ${paths.length - MAX_NAMED_PATHS} more` : "";
  return paths.length === 0 ? [] : [`${what}: ${paths.slice(0, MAX_NAMED_PATHS).join(", ")}${more}`];
}
