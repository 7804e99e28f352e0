/** Texts of files in checkpoints, for diff editors and the gutter. */

import * as vscode from "vscode";

import type { Client } from "../client";
import type { Change, State } from "./states";

/** URI scheme of a file in a checkpoint. */
export const SCHEME = "sightline-checkpoint";

/** One side of a comparison: a file of a checkpoint, or an empty text if `id` is empty. */
interface Side {
  /** Id of the checkpoint. */
  id: string;
  /** URI of the file under its current name. */
  uri: string;
  /** URI of the file under its old name, if different. */
  oldUri?: string;
}

/** Returns the URIs of both sides of a change. */
export function diffUris({ file, from, to }: Change): [vscode.Uri, vscode.Uri] {
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

/** Returns the URI of a file in a state with a whole id. */
export function fileIn(state: State, file: vscode.Uri): vscode.Uri {
  return checkpointUri({ id: state.id, uri: file.toString() }, file);
}

function checkpointUri(side: Side, file: vscode.Uri): vscode.Uri {
  // The path determines the language. With equal paths, VS Code does not show a rename.
  return vscode.Uri.from({ scheme: SCHEME, path: file.path, query: JSON.stringify(side) });
}

/** Returns the URI of an empty text, for a file that exists on the other side only. */
function emptyUri(file: vscode.Uri): vscode.Uri {
  return checkpointUri({ id: "", uri: "" }, file);
}

/** Provides file contents of checkpoints. */
export class CheckpointContents implements vscode.TextDocumentContentProvider {
  /** Texts that are about to be shown, by URI. */
  private readonly known = new Map<string, string>();

  constructor(private readonly client: Client) {}

  /** Keeps the texts of changes until they are shown, so that many files need one request. */
  remember(changes: readonly Change[]): void {
    this.known.clear();
    for (const change of changes) {
      const { before, after } = change.file;
      diffUris(change).forEach((uri, side) => {
        const text = side === 0 ? before : after;
        if (text !== undefined) {
          this.known.set(uri.toString(), text);
        }
      });
    }
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const side = JSON.parse(uri.query) as Side;
    const known = side.id === "" ? "" : this.known.get(uri.toString());
    if (known !== undefined) {
      this.known.delete(uri.toString());
      return known;
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
