/** Hides a file or folder from agents, or allows it again, with a line in `.clineignore`. */

import * as vscode from "vscode";

import type { Client } from "./client";

/** Writes the line, and shows it. */
export async function hide(client: Client, uri: vscode.Uri | undefined, isHidden: boolean): Promise<void> {
  const target = uri ?? vscode.window.activeTextEditor?.document.uri;
  const folder = target && vscode.workspace.getWorkspaceFolder(target);
  if (!target || !folder || target.toString() === folder.uri.toString()) {
    void vscode.window.showInformationMessage("Select a file or folder of the workspace.");
    return;
  }
  const isFolder = ((await vscode.workspace.fs.stat(target)).type & vscode.FileType.Directory) !== 0;
  const pattern = rulePattern(target.path.slice(folder.uri.path.length), isFolder);
  const file = vscode.Uri.joinPath(folder.uri, ".clineignore");
  const edit = new vscode.WorkspaceEdit();
  edit.createFile(file, { ignoreIfExists: true });
  await vscode.workspace.applyEdit(edit);
  const document = await vscode.workspace.openTextDocument(file);
  const text = withRule(document.getText(), pattern, isHidden);
  const all = new vscode.Range(new vscode.Position(0, 0), document.positionAt(document.getText().length));
  const change = new vscode.WorkspaceEdit();
  change.replace(file, all, text);
  await vscode.workspace.applyEdit(change);
  await document.save();
  const end = new vscode.Position(Math.max(document.lineCount - 2, 0), 0);
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(end, end) });
  if (isHidden) {
    return;
  }
  // Another rule may hide it, or its folder, in which no line can allow it.
  const { paths } = await client.request("sightline/checkAccess", { paths: [target.toString()] });
  const rule = paths[0]?.access === "denied" ? paths[0].rule : undefined;
  if (rule && rule.pattern !== pattern) {
    void vscode.window.showWarningMessage(`It is still hidden from agents: ${rule.source}, line ${rule.line}: ${rule.pattern}`);
  }
}

/** Returns the pattern that matches exactly this path, which begins with `/`. */
function rulePattern(path: string, isFolder: boolean): string {
  const escaped = path.replace(/[\\*?[]/g, "\\$&").replace(/ $/, "\\ ");
  return isFolder ? `${escaped}/` : escaped;
}

/** Returns the rules without what they say about `pattern`, and with the wanted line if there is none to remove. */
function withRule(text: string, pattern: string, isHidden: boolean): string {
  const lines = text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
  const kept = lines.filter((line) => line !== pattern && line !== `!${pattern}`);
  const wasHidden = lines.includes(pattern);
  if (isHidden || !wasHidden) {
    kept.push(isHidden ? pattern : `!${pattern}`);
  }
  return kept.map((line) => `${line}\n`).join("");
}
