/** Shows the author of a line, in a hover on demand. */

import * as vscode from "vscode";

import type { BlameLine } from "../../../types/protocol";
import type { Client } from "../client";
import { relativeTime } from "../format";

/** The hover. It is empty until the command asks for a line. */
export class Blame implements vscode.HoverProvider, vscode.Disposable {
  private readonly registration = vscode.languages.registerHoverProvider({ scheme: "file" }, this);
  private wanted: { uri: string; line: number; text: string } | undefined;

  constructor(private readonly client: Client) {}

  /** Shows the author of the line of the cursor. */
  async show(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor || editor.document.isDirty) {
      void vscode.window.showInformationMessage(editor ? "Save the file first: the lines on disk are known." : "Open a file first.");
      return;
    }
    const uri = editor.document.uri.toString();
    const { line } = editor.selection.active;
    const { lines } = await this.client.request("sightline/blame", { path: uri });
    const found = lines.find((one) => one.line === line + 1);
    this.wanted = { uri, line, text: found ? describe(found) : "Nothing is known about this line." };
    await vscode.commands.executeCommand("editor.action.showHover");
  }

  provideHover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const { wanted } = this;
    if (wanted?.uri !== document.uri.toString() || wanted.line !== position.line) {
      return undefined;
    }
    this.wanted = undefined;
    return new vscode.Hover(new vscode.MarkdownString().appendText(wanted.text), document.lineAt(position.line).range);
  }

  dispose(): void {
    this.registration.dispose();
  }
}

function describe({ by, agent, turn, turns, at }: BlameLine): string {
  const when = at === undefined ? "" : `, ${relativeTime(at, Date.now())}`;
  switch (by) {
    case "agent":
      return `Written in ${turn ?? turns?.join(" or ") ?? agent ?? "a turn"}${when}`;
    case "user":
      return `Written by you, or another program${when}`;
    case "unknown":
      return "The author of this line is unknown: it is older than the checkpoints.";
  }
}
