/**
 * Restore and undo: shows a preview to select from, applies it, and offers an
 * undo.
 */

import * as vscode from "vscode";

import type { Checkpoint, PreviewRestoreResult, RestoreCheckpointResult, RestoreConflict } from "../../types/protocol";
import { checkpointName } from "./checkpointTree";
import { type Client, errorKind } from "./client";

/** A path of the preview. */
interface Choice extends vscode.QuickPickItem {
  uri: string;
  isConflict: boolean;
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
    ...(paths && { paths }),
  });
  if (preview.changes.length === 0 && preview.conflicts.length === 0) {
    void vscode.window.showInformationMessage(`Already up to date with “${name}”.`);
    return;
  }
  const placeHolder = "Select the files to restore. You can undo the restore.";
  const selection = await selectChanges(`Restore “${name}”`, placeHolder, preview, paths);
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
    const result =
      selection.token !== undefined || point === undefined
        ? await client.requestWithProgress(title, "sightline/undoRestore", {
            ...(point !== undefined && { undoId: point }),
            ...(selection.token !== undefined && { token: selection.token }),
          })
        : // A selection of files: restore the undo point.
          await client.requestWithProgress(title, "sightline/restoreCheckpoint", {
            id: point,
            allRoots: true,
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
  const task = taskId === undefined ? "" : ` The conversation of task ${taskId} is restored too.`;
  if (changes.length === 0 && conflicts.length === 0) {
    const undoLabel = "Undo";
    const answer = await vscode.window.showWarningMessage(`Undo the restore?${task}`, { modal: true }, undoLabel);
    return answer === undoLabel ? { token, force: false } : undefined;
  }
  const later = changes.filter((change) => change.changedSince).length;
  const since = later === 0 ? "" : ` ${later === 1 ? "1 file was" : `${later} files were`} changed after the restore.`;
  return selectChanges("Undo Restore", `Select the files to restore to their state before the restore.${since}${task}`, preview, undefined);
}

/** Shows a preview to select from. Returns undefined if it is dismissed. */
async function selectChanges(
  title: string,
  placeHolder: string,
  { changes, conflicts, token }: PreviewRestoreResult,
  paths: string[] | undefined,
): Promise<Selection | undefined> {
  const choices: Choice[] = [
    ...changes.map(({ path, uri, action, reason, changedSince }) => ({
      label: `$(${changedSince ? "warning" : action === "delete" ? "trash" : "edit"}) ${path}`,
      description: `${action === "delete" ? "delete" : "write"}: ${reason}`,
      picked: true,
      uri,
      isConflict: false,
    })),
    ...conflicts.map(({ path, uri, reason }) => ({
      label: `$(warning) ${path}`,
      description: `kept unless selected: ${reason}`,
      picked: false,
      uri,
      isConflict: true,
    })),
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
  return { paths: picked.map((choice) => choice.uri), force };
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
