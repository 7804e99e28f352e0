/**
 * Restore and undo: shows a preview to select from, applies it, and offers an
 * undo.
 */

import * as vscode from "vscode";

import type { Checkpoint, PreviewRestoreResult, RestoreCheckpointResult, RestoreConflict } from "../../types/protocol";
import { checkpointName } from "./checkpointTree";
import { type Client, errorKind } from "./client";

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

/**
 * Previews a restore of `checkpoint`, limited to `paths` (URIs) if given, and
 * restores the files selected by the user.
 */
export async function restore(client: Client, checkpoint: Checkpoint, paths?: string[]): Promise<void> {
  const name = checkpointName(checkpoint);
  const preview = await client.requestWithProgress(`Comparing with “${name}”`, "sightline/previewRestore", {
    id: checkpoint.id,
    undo: false,
    ...(paths && { paths }),
  });
  if (preview.changes.length === 0 && preview.conflicts.length === 0) {
    void vscode.window.showInformationMessage(`Already up to date with “${name}”.`);
    return;
  }
  const selection = await selectChanges(`Restore “${name}”`, "Select the files to restore", preview, paths);
  if (!selection) {
    return;
  }
  try {
    const result = await client.requestWithProgress(`Restoring “${name}”`, "sightline/restoreCheckpoint", {
      id: checkpoint.id,
      ...selection,
    });
    showResult(result, `restored from “${name}”`);
  } catch (error) {
    if (errorKind(error) !== "conflict") {
      throw error;
    }
    const previewAgain = "Preview Again";
    const text = "Files changed since the preview. Nothing was restored.";
    if ((await vscode.window.showWarningMessage(text, previewAgain)) === previewAgain) {
      await restore(client, checkpoint, paths);
    }
  }
}

/** Previews the undo of the restore with `undoId`, or of the last restore, and undoes what the user selects. */
export async function undo(client: Client, undoId?: string): Promise<void> {
  const preview = await client.requestWithProgress("Comparing with the state before the restore", "sightline/previewRestore", {
    id: undoId ?? "last",
    undo: true,
  });
  const { changes, conflicts, taskId } = preview;
  const point = preview.undoId ?? undoId;
  if (changes.length === 0 && conflicts.length === 0 && taskId === undefined) {
    void vscode.window.showInformationMessage("Already up to date with the state before the restore.");
    return;
  }
  const selection = await selectUndo(preview);
  if (!selection) {
    return;
  }
  try {
    const title = "Undoing the restore";
    const result = await client.requestWithProgress(title, "sightline/undoRestore", {
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
async function selectUndo(preview: PreviewRestoreResult): Promise<Selection | undefined> {
  const { changes, conflicts, taskId, token } = preview;
  if (changes.length === 0 && conflicts.length === 0) {
    const undoLabel = "Undo";
    const question = `Undo the restore? The conversation of task ${taskId} is restored too.`;
    const answer = await vscode.window.showWarningMessage(question, { modal: true }, undoLabel);
    return answer === undoLabel ? { token, force: false } : undefined;
  }
  const title = taskId === undefined ? "Undo Restore" : `Undo Restore, Also of the Conversation of Task ${taskId}`;
  return selectChanges(title, "Select the files to undo", preview, undefined);
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
      label: `$(warning) ${path}`,
      description: `kept unless selected: ${reason}`,
      picked: false,
      uri,
      isConflict: true,
    })),
  ];
}

/** Shows a preview to select from. Returns undefined if it is dismissed. */
async function selectChanges(
  title: string,
  placeHolder: string,
  { changes, conflicts, token }: PreviewRestoreResult,
  paths: string[] | undefined,
): Promise<Selection | undefined> {
  const later = conflicts.filter((conflict) => conflict.changedSince);
  // Later work comes first, so that its separator is visible.
  const choices: Choice[] = [
    ...conflictRows("changed after the restore", later),
    ...(later.length > 0 ? [{ label: "changed by the restore", kind: vscode.QuickPickItemKind.Separator }] : []),
    ...changes.map(({ path, uri, action, reason }) => ({
      label: `$(${action === "delete" ? "trash" : "edit"}) ${path}`,
      description: `${action === "delete" ? "delete" : "write"}: ${reason}`,
      picked: true,
      uri,
    })),
    ...conflictRows("kept", conflicts.filter((conflict) => !conflict.changedSince)),
  ];
  const picked = await vscode.window.showQuickPick(choices, {
    title,
    placeHolder,
    canPickMany: true,
    matchOnDescription: true,
    ignoreFocusOut: true,
  });
  if (!picked || picked.length === 0) {
    return undefined;
  }
  const force = picked.some((choice) => choice.isConflict);
  const asShown = !force && picked.length === changes.length;
  if (asShown) {
    return { token, force, ...(paths && { paths }) };
  }
  return { paths: picked.flatMap((choice) => choice.uri ?? []), force };
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
    ...listPaths("failed", failed.map(({ path, error }) => `${path} (${error ?? "unknown error"})`)),
    ...keptPaths(conflicts),
  ].join("; ");
  const undoLabel = "Undo";
  const answer =
    failed.length === 0
      ? vscode.window.showInformationMessage(`${text}.`, undoLabel)
      : vscode.window.showWarningMessage(`${text}.`, undoLabel);
  void answer.then(async (choice) => {
    if (choice === undoLabel) {
      await vscode.commands.executeCommand("sightline.checkpoint.undoRestore", undoId);
    }
  });
}

function keptPaths(conflicts: RestoreConflict[]): string[] {
  return listPaths("kept", conflicts.map(({ path, reason }) => `${path} (${reason})`));
}

/** Formats a part of a message that lists paths. Returns nothing if there are none. */
function listPaths(what: string, paths: string[]): string[] {
  const more = paths.length > MAX_NAMED_PATHS ? ` and ${paths.length - MAX_NAMED_PATHS} more` : "";
  return paths.length === 0 ? [] : [`${what}: ${paths.slice(0, MAX_NAMED_PATHS).join(", ")}${more}`];
}
