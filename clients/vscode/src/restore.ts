/**
 * Restoring: what would be done is shown first and can be picked from, what
 * was done is told, and can be undone.
 */

import * as vscode from "vscode";

import type { Checkpoint, PreviewRestoreResult, RestoreCheckpointResult, RestoreConflict } from "../../types/protocol";
import { checkpointName } from "./checkpointTree";
import { type Client, errorKind } from "./client";

/** A path in the preview. */
interface Choice extends vscode.QuickPickItem {
  uri: string;
  isConflict: boolean;
}

/** What the user wants restored. */
interface Wish {
  /** URIs; all when absent. */
  paths?: string[];
  /** Also what the server would leave alone. */
  force: boolean;
  /** Names the preview, while it is wanted as it is. */
  token?: string;
}

/**
 * Shows what restoring `checkpoint` would change, and does what is accepted.
 * Only `paths` (URIs) when given.
 */
export async function restore(client: Client, checkpoint: Checkpoint, paths?: string[]): Promise<void> {
  const name = checkpointName(checkpoint);
  const preview = await client.requestWithProgress(`Comparing with “${name}”`, "sightline/previewRestore", {
    id: checkpoint.id,
    ...(paths && { paths }),
  });
  if (preview.changes.length === 0 && preview.conflicts.length === 0) {
    void vscode.window.showInformationMessage(`Nothing to restore: no difference from “${name}”.`);
    return;
  }
  const placeHolder = "These files are changed on disk when you accept. It can be undone.";
  const wish = await choose(`Restore “${name}”`, placeHolder, preview, paths);
  if (!wish) {
    return;
  }
  try {
    const result = await client.requestWithProgress(`Restoring “${name}”`, "sightline/restoreCheckpoint", {
      id: checkpoint.id,
      ...wish,
    });
    tell(result, `restored from “${name}”`);
  } catch (error) {
    if (errorKind(error) !== "conflict") {
      throw error;
    }
    const again = "Preview Again";
    const text = "Files changed since the preview, so nothing was restored.";
    if ((await vscode.window.showWarningMessage(text, again)) === again) {
      await restore(client, checkpoint, paths);
    }
  }
}

/** Shows what undoing the restore that made `undoId` (or the last one) would change, and does what is accepted. */
export async function undo(client: Client, undoId?: string): Promise<void> {
  const preview = await client.requestWithProgress("Comparing with the files before the restore", "sightline/previewRestore", {
    id: undoId ?? "last",
    undo: true,
  });
  const { changes, conflicts, taskId } = preview;
  const point = preview.undoId ?? undoId;
  if (changes.length === 0 && conflicts.length === 0 && taskId === undefined) {
    void vscode.window.showInformationMessage("Already up to date: the files are as before the restore.");
    return;
  }
  const wish = await chooseUndo(preview);
  if (!wish) {
    return;
  }
  try {
    const title = "Undoing the restore";
    const result =
      wish.token !== undefined || point === undefined
        ? await client.requestWithProgress(title, "sightline/undoRestore", {
            ...(point !== undefined && { undoId: point }),
            ...(wish.token !== undefined && { token: wish.token }),
          })
        : // Only some of them: a restore of the undo point.
          await client.requestWithProgress(title, "sightline/restoreCheckpoint", {
            id: point,
            allRoots: true,
            ...wish,
          });
    tell(result, "put back as before the restore");
  } catch (error) {
    if (errorKind(error) !== "conflict") {
      throw error;
    }
    const again = "Preview Again";
    const text = `Nothing was undone: ${error instanceof Error ? error.message : "files changed since the preview"}`;
    if ((await vscode.window.showWarningMessage(text, again)) === again) {
      await undo(client, undoId);
    }
  }
}

/** Lets the user look at the preview of an undo; nothing when dismissed. */
async function chooseUndo(preview: PreviewRestoreResult): Promise<Wish | undefined> {
  const { changes, conflicts, taskId, token } = preview;
  const task = taskId === undefined ? "" : ` The conversation of task ${taskId} is put back too.`;
  if (changes.length === 0 && conflicts.length === 0) {
    const yes = "Undo";
    const asked = await vscode.window.showWarningMessage(`Undo the restore?${task}`, { modal: true }, yes);
    return asked === yes ? { token, force: false } : undefined;
  }
  const later = changes.filter((change) => change.changedSince).length;
  const since = later === 0 ? "" : ` ${later === 1 ? "1 file was" : `${later} files were`} changed after the restore.`;
  return choose("Undo the restore", `These files are changed on disk when you accept.${since}${task}`, preview, undefined);
}

/** Lets the user look at a preview and pick from it; nothing when dismissed. */
async function choose(
  title: string,
  placeHolder: string,
  { changes, conflicts, token }: PreviewRestoreResult,
  paths: string[] | undefined,
): Promise<Wish | undefined> {
  const choices: Choice[] = [
    ...changes.map(({ path, uri, action, reason, changedSince }) => ({
      label: `$(${changedSince ? "warning" : action === "delete" ? "trash" : "edit"}) ${path}`,
      description: `${action === "delete" ? "deleted" : "written"}: ${reason}`,
      picked: true,
      uri,
      isConflict: false,
    })),
    ...conflicts.map(({ path, uri, reason }) => ({
      label: `$(warning) ${path}`,
      description: `left alone unless picked: ${reason}`,
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

/** Paths a message names. */
const MOST_NAMED = 5;

/** Tells what became of each path, and offers to undo it. */
function tell({ outcomes, conflicts = [], undoId }: RestoreCheckpointResult, what: string): void {
  const failed = outcomes.filter((outcome) => !outcome.ok);
  const done = outcomes.length - failed.length;
  if (undoId === undefined) {
    const text = ["Already up to date", ...leftAlone(conflicts)].join("; ");
    void vscode.window.showInformationMessage(`${text}.`);
    return;
  }
  const text = [
    `${done === 1 ? "1 file" : `${done} files`} ${what}`,
    ...named("not", failed.map(({ path, error }) => `${path} (${error ?? "unknown"})`)),
    ...leftAlone(conflicts),
  ].join("; ");
  const offer = "Undo";
  const answer =
    failed.length === 0
      ? vscode.window.showInformationMessage(`${text}.`, offer)
      : vscode.window.showWarningMessage(`${text}.`, offer);
  void answer.then(async (choice) => {
    if (choice === offer) {
      await vscode.commands.executeCommand("sightline.checkpoint.undoRestore", undoId);
    }
  });
}

function leftAlone(conflicts: RestoreConflict[]): string[] {
  return named("left alone", conflicts.map(({ path, reason }) => `${path} (${reason})`));
}

/** A part of a message about these paths; none without any. */
function named(what: string, paths: string[]): string[] {
  const more = paths.length > MOST_NAMED ? ` and ${paths.length - MOST_NAMED} more` : "";
  return paths.length === 0 ? [] : [`${what}: ${paths.slice(0, MOST_NAMED).join(", ")}${more}`];
}
