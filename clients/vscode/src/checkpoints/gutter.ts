/** Marks the lines that changed since a checkpoint or turn in the gutter. */

import * as vscode from "vscode";

import type { Client } from "../client";
import { fileIn } from "./contents";
import { type State, resolved } from "./states";

/** The marks. They are off until {@link show}. */
export class Gutter implements vscode.Disposable {
  private control: vscode.SourceControl | undefined;

  constructor(private readonly client: Client) {}

  /** Marks the changes since a state in all files. */
  async show(state: State): Promise<void> {
    const members = state.members ?? [await resolved(this.client, state)];
    this.hide();
    const control = vscode.scm.createSourceControl("sightline", `Changes since ${state.name}`);
    control.inputBox.visible = false;
    control.quickDiffProvider = {
      provideOriginalResource: (uri) => {
        const folder = uri.scheme === "file" ? vscode.workspace.getWorkspaceFolder(uri) : undefined;
        const member = folder && members.find(({ root }) => vscode.Uri.parse(root).fsPath === folder.uri.fsPath);
        return member && fileIn({ ...member, name: state.name }, uri);
      },
    };
    this.control = control;
    this.setContext();
  }

  /** Removes the marks. */
  hide(): void {
    this.control?.dispose();
    this.control = undefined;
    this.setContext();
  }

  dispose(): void {
    this.hide();
  }

  private setContext(): void {
    void vscode.commands.executeCommand("setContext", "sightline.gutter", this.control !== undefined);
  }
}
