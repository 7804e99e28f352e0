/**
 * Copies the environment block, or opens it as a read-only document that is not
 * part of the block itself.
 */

import * as vscode from "vscode";

import type { Client } from "./client";

/** URI scheme of the document with the block. */
export const ENVIRONMENT_SCHEME = "sightline-environment";

const DOCUMENT = vscode.Uri.from({ scheme: ENVIRONMENT_SCHEME, path: "/Environment Details.md" });

/** Provides the text of the block. */
export class EnvironmentContents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();

  readonly onDidChange = this.changed.event;

  constructor(private readonly client: Client) {}

  async provideTextDocumentContent(): Promise<string> {
    return (await this.requestBlock()).text;
  }

  /** Copies the current block to the clipboard. */
  async copy(): Promise<void> {
    const { text, tokens } = await this.requestBlock();
    await vscode.env.clipboard.writeText(text);
    vscode.window.setStatusBarMessage(`$(check) Environment details copied: ${tokens} tokens`, 4000);
  }

  /** Opens the current block. */
  async open(): Promise<void> {
    this.changed.fire(DOCUMENT);
    const document = await vscode.workspace.openTextDocument(DOCUMENT);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  dispose(): void {
    this.changed.dispose();
  }

  /** Requests the block without marking anything as delivered to an agent. */
  private async requestBlock(): Promise<{ text: string; tokens: number }> {
    return await this.client.request("sightline/environmentDetails", { includeFiles: true, consume: false });
  }
}
