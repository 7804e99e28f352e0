/**
 * States of the workspace that can be compared and restored: checkpoints, and the states before and
 * after turns of agents.
 */

import * as vscode from "vscode";

import type { Checkpoint, FileDifference, ListedTurn } from "../../../types/protocol";
import type { Client } from "../client";
import { quoted, when } from "../format";

/** A state that can be compared and restored. */
export interface State {
  /** Display name. */
  name: string;
  /** Id of the checkpoint, or the name of a turn that has none. */
  id: string;
  /** URI of the workspace folder. */
  root: string;
  /** Checkpoints that were created together, of all folders. Absent if there is one. */
  members?: { id: string; root: string }[];
}

/** A file that differs between two states, or between a state and the workspace. */
export interface Change {
  file: FileDifference;
  from: State;
  /** Absent for the workspace. */
  to?: State;
}

/** Returns the state of a checkpoint. `all` are the listed checkpoints. */
export function stateOf(checkpoint: Checkpoint, all: readonly Checkpoint[]): State {
  const { id, root, group } = checkpoint;
  return { name: checkpointName(checkpoint, all), id, root, ...(group && { members: group }) };
}

/** Returns the state before a turn. One that edited nothing has the state of the checkpoint before it. */
export function stateBefore({ name, before, root }: ListedTurn): State {
  return { name: `before ${name}`, id: before ?? name, root };
}

/** Returns the state after a turn. None while it runs: that is the workspace. */
export function stateAfter({ name, after, root, running }: ListedTurn): State | undefined {
  return running === true ? undefined : { name: `after ${name}`, id: after ?? `${name}+`, root };
}

/** Returns the display name of a checkpoint. */
export function checkpointName(checkpoint: Checkpoint, all: readonly Checkpoint[]): string {
  const { label, turn, kind, restoredId, createdAt } = checkpoint;
  if (label !== undefined) {
    return label;
  }
  if (turn?.name !== undefined) {
    const side = kind === "turnEnd" ? "After" : "Before";
    return `${side} ${turn.name}${turn.prompt === undefined ? "" : ` ${quoted(turn.prompt)}`}`;
  }
  if (kind === "undoPoint") {
    const restored = all.find(({ id }) => id === restoredId);
    return `Before ${restored?.kind === "undoPoint" ? "undo" : "restore"}, ${when(createdAt)}`;
  }
  return when(createdAt);
}

/** Returns the params that name a state in a request. The name of a turn is unique in its folder only. */
export function reference({ id, root }: State): { id: string; root?: string } {
  return /^[0-9a-f]{40}$/.test(id) ? { id } : { id, root };
}

/** Returns what differs between a state and another, or the workspace. With `contents`, also the texts. */
export async function changes(client: Client, from: State, to?: State, contents = false): Promise<Change[]> {
  const [older, newer] = await Promise.all([resolved(client, from), to && resolved(client, to)]);
  const parts = (older.members ?? [older]).map(async ({ id, root }) => {
    const part: State = { name: older.name, id, root };
    const other = newer && { ...newer, ...newer.members?.find((member) => member.root === root) };
    const params = { from: id, ...(other && { to: other.id }), ...(contents && { contents }) };
    const { files } = await client.requestWithProgress("Comparing", "sightline/diffCheckpoints", params);
    return files.map((file): Change => ({ file, from: part, ...(other && { to: other }) }));
  });
  return (await Promise.all(parts)).flat();
}

/** Returns the state with the id of a checkpoint, instead of the name of a turn. */
export async function resolved(client: Client, state: State): Promise<State> {
  const named = reference(state);
  if (named.root === undefined) {
    return state;
  }
  const { checkpoints } = await client.request("sightline/listCheckpoints", named);
  return { ...state, id: checkpoints[0]?.id ?? state.id };
}

/** Returns the name of a file for lists: with its folder if there are several. */
export function fileName(uri: string): string {
  return vscode.workspace.asRelativePath(vscode.Uri.parse(uri));
}
