/**
 * Decorations of files: a badge in the explorer on files that agents may not
 * see, and the kind of change in the checkpoint view.
 */

import * as vscode from "vscode";

import type { PathAccess } from "../../types/protocol";
import type { Client } from "./client";
import { statusMark } from "./format";

/** URI scheme of a changed file in the checkpoint view. Its query is the kind of change. */
export const CHANGED_FILE_SCHEME = "sightline-changed-file";

/** Delay that combines the checks of many files, in milliseconds. */
const BATCH_DELAY_MS = 20;

/** Maximum number of paths per request. */
const MAX_BATCH = 500;

interface Waiting {
  uri: vscode.Uri;
  token: vscode.CancellationToken;
  resolve: (decoration: vscode.FileDecoration | undefined) => void;
}

/**
 * Marks files that agents may not see. VS Code asks for visible files only and
 * keeps the answers until {@link refresh}, so there is no cache here.
 */
export class AccessDecorations implements vscode.FileDecorationProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  private readonly registration: vscode.Disposable;
  private waiting: Waiting[] = [];
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChangeFileDecorations = this.changed.event;

  constructor(private readonly client: Client) {
    this.registration = vscode.Disposable.from(
      vscode.window.registerFileDecorationProvider(this),
      client.onDidChange(() => this.refresh()),
    );
    client.onNotification("sightline/didChangeAccessRules", () => this.refresh());
  }

  /** Checks the visible files again. */
  refresh(): void {
    this.changed.fire(undefined);
  }

  provideFileDecoration(
    uri: vscode.Uri,
    token: vscode.CancellationToken,
  ): Promise<vscode.FileDecoration | undefined> | undefined {
    if (uri.scheme !== "file" || !this.client.isRunning || !vscode.workspace.getWorkspaceFolder(uri)) {
      return undefined;
    }
    return new Promise((resolve) => {
      this.waiting.push({ uri, token, resolve });
      this.timer ??= setTimeout(() => void this.check(), BATCH_DELAY_MS);
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.registration.dispose();
    this.changed.dispose();
  }

  private async check(): Promise<void> {
    this.timer = undefined;
    const waiting = this.waiting;
    this.waiting = [];
    const wanted = waiting.filter(({ token, resolve }) => {
      if (token.isCancellationRequested) {
        resolve(undefined);
      }
      return !token.isCancellationRequested;
    });
    for (let start = 0; start < wanted.length; start += MAX_BATCH) {
      const batch = wanted.slice(start, start + MAX_BATCH);
      const paths = batch.map(({ uri }) => uri.toString());
      const result = await this.client.request("sightline/checkAccess", { paths }).catch(() => undefined);
      batch.forEach(({ resolve }, index) => resolve(accessDecoration(result?.paths[index])));
    }
  }
}

function accessDecoration(access: PathAccess | undefined): vscode.FileDecoration | undefined {
  if (access?.access !== "denied") {
    return undefined;
  }
  const { rule } = access;
  // Line 0 means that no single line decided.
  const line = rule !== undefined && rule.line > 0 ? `, line ${rule.line}` : "";
  const reason = rule === undefined ? "" : ` (${rule.source}${line})`;
  return new vscode.FileDecoration("⊘", `Hidden from agents${reason}`, new vscode.ThemeColor("disabledForeground"));
}

/** Shows the kind of change of files in the checkpoint view. */
export const changeDecorations: vscode.FileDecorationProvider = {
  provideFileDecoration(uri) {
    const mark = uri.scheme === CHANGED_FILE_SCHEME ? statusMark(uri.query) : undefined;
    return mark && new vscode.FileDecoration(mark.letter, mark.name, new vscode.ThemeColor(mark.color));
  },
};
