/**
 * The block, for people: copied, or opened as a text that is read-only and, as
 * no file of the user, not in the block itself.
 */

import * as vscode from "vscode";

import type { Client } from "./client";

/** URI scheme of the opened block. */
export const ENVIRONMENT_SCHEME = "sightline-environment";

const DOCUMENT = vscode.Uri.from({ scheme: ENVIRONMENT_SCHEME, path: "/Environment Details.md" });

/** Gives the opened block its text. */
export class EnvironmentContents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();

  readonly onDidChange = this.changed.event;

  constructor(private readonly client: Client) {}

  async provideTextDocumentContent(): Promise<string> {
    return (await this.look()).text;
  }

  /** Puts the block of this moment on the clipboard. */
  async copy(): Promise<void> {
    const { text, tokens } = await this.look();
    await vscode.env.clipboard.writeText(text);
    vscode.window.setStatusBarMessage(`$(check) Environment details copied: ${tokens} tokens`, 4000);
  }

  /** Opens the block of this moment. */
  async open(): Promise<void> {
    this.changed.fire(DOCUMENT);
    const document = await vscode.workspace.openTextDocument(DOCUMENT);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  dispose(): void {
    this.changed.dispose();
  }

  /** A mere look: nothing counts as delivered to an agent. */
  private async look(): Promise<{ text: string; tokens: number }> {
    return await this.client.request("sightline/environmentDetails", { includeFiles: true, consume: false });
  }
}
