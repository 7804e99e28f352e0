/**
 * Changes that agents propose, shown in diff editors until the user accepts or rejects them.
 *
 * The right side of the diff is a file of a file system in memory, so that it can be edited. When the user saves it,
 * the change is accepted, and when the editor is closed, rejected.
 */

import * as vscode from "vscode";

import type { OpenDiffParams, OpenDiffResult } from "../../types/protocol";
import type { Client } from "./client";

/** Scheme of proposed texts: `sightline-proposal://diffId/path`. */
export const PROPOSAL_SCHEME = "sightline-proposal";

/** At the start of a file, makes VS Code decode UTF-8 in any `files.encoding`. It is not in the text of the document. */
const BOM = "\ufeff";

/** Opens a document in an encoding, which VS Code can since 1.100. */
type OpenEncoded = (uri: vscode.Uri, options: { encoding: string }) => Thenable<vscode.TextDocument>;
const CAN_OPEN_ENCODED = Number(vscode.version.split(".")[1]) >= 100;

interface Proposal {
  readonly params: OpenDiffParams;
  /** The proposed text as the document shows it, with uniform line breaks. */
  shown: string;
  readonly uri: vscode.Uri;
  readonly decide: (result: OpenDiffResult) => void;
}

/** Shows proposed changes until disposed. */
export class Proposals implements vscode.FileSystemProvider, vscode.Disposable {
  /** By the text of the URI. */
  private readonly open = new Map<string, Proposal>();
  /** URIs of documents that the user is saving. */
  private readonly saving = new Set<string>();
  /** Texts of open editors, also after the decision. */
  private readonly texts = new Map<string, Uint8Array>();
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  private readonly disposables: vscode.Disposable[];

  readonly onDidChangeFile = this.changed.event;

  constructor(client: Client) {
    client.onRequest("sightline/openDiff", (params) => this.show(params));
    client.onNotification("sightline/closeDiff", ({ diffId }) => {
      const proposal = [...this.open.values()].find(({ params }) => params.diffId === diffId);
      if (proposal) {
        void keepEdits(proposal).then(() => this.decide(proposal, { accepted: false }));
      }
    });
    this.disposables = [
      vscode.workspace.onWillSaveTextDocument(({ document, reason }) => {
        // Not when VS Code saves after a delay or when the focus changes.
        if (document.uri.scheme === PROPOSAL_SCHEME && reason === vscode.TextDocumentSaveReason.Manual) {
          this.saving.add(document.uri.toString());
        }
      }),
      this.changed,
      vscode.workspace.registerFileSystemProvider(PROPOSAL_SCHEME, this, { isCaseSensitive: true }),
      vscode.window.tabGroups.onDidChangeTabs(({ opened, closed }) => {
        closed.forEach((tab) => this.closed(tab));
        // An agent can close its change before the editor is open.
        const outdated = opened.filter((tab) => {
          const uri = proposalOf(tab);
          return uri && !this.open.has(uri.toString());
        });
        void vscode.window.tabGroups.close(outdated);
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  /** Opens a diff editor. Resolves with the user's decision. */
  private async show(params: OpenDiffParams): Promise<OpenDiffResult> {
    const uri = vscode.Uri.from({ scheme: PROPOSAL_SCHEME, authority: params.diffId, path: `/${params.path}` });
    this.texts.set(uri.toString(), Buffer.from((CAN_OPEN_ENCODED ? "" : BOM) + withoutBom(params.contents)));
    const decided = new Promise<OpenDiffResult>((decide) => {
      this.open.set(uri.toString(), { params, uri, shown: withoutBom(params.contents), decide });
    });
    try {
      await this.openEditor(uri, params);
    } catch (error) {
      this.texts.delete(uri.toString());
      if (this.open.delete(uri.toString())) {
        throw error;
      }
    }
    return decided;
  }

  private async openEditor(uri: vscode.Uri, params: OpenDiffParams): Promise<void> {
    const document = await (vscode.workspace.openTextDocument as OpenEncoded)(uri, { encoding: "utf8" });
    const proposal = this.open.get(uri.toString());
    if (!proposal) {
      return;
    }
    proposal.shown = document.getText();
    const file = vscode.Uri.parse(params.uri);
    const exists = await vscode.workspace.fs.stat(file).then(() => true, () => false);
    const older = exists ? file : uri.with({ query: "empty" });
    const isUnsaved = hasUnsavedText(file);
    if (isUnsaved) {
      void vscode.window.showWarningMessage(`${params.path} has unsaved text that is not in the proposed change.`);
    }
    const title = isUnsaved ? `${params.title} (without the unsaved text of the file)` : params.title;
    await vscode.commands.executeCommand("vscode.diff", older, uri, title, {
      preview: false,
      // The user may be typing in another editor.
      preserveFocus: true,
    });
  }

  /** Ends a proposal, and closes its editor. */
  private async decide(proposal: Proposal, result: OpenDiffResult): Promise<void> {
    if (!this.open.delete(proposal.uri.toString())) {
      return;
    }
    try {
      // An unsaved text would be asked about.
      const document = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === proposal.uri.toString());
      if (document?.isDirty) {
        await document.save();
      }
      await vscode.window.tabGroups.close(tabs().filter((tab) => proposalOf(tab)?.toString() === proposal.uri.toString()));
    } finally {
      this.texts.delete(proposal.uri.toString());
      // Last, because the server shows a change again that it cannot use.
      proposal.decide(result);
    }
    const file = vscode.Uri.parse(proposal.params.uri);
    if (result.accepted && hasUnsavedText(file)) {
      void offerComparison(file, proposal.params.path);
    }
  }

  private closed(tab: vscode.Tab): void {
    const proposal = this.open.get(proposalOf(tab)?.toString() ?? "");
    if (proposal) {
      void this.decide(proposal, { accepted: false });
    }
  }

  /** Accepts the proposal of an editor, by default the active one. */
  async accept(uri?: vscode.Uri): Promise<void> {
    const proposal = this.find(uri);
    const document = await vscode.workspace.openTextDocument(proposal.uri);
    await this.decide(proposal, accepted(proposal, document.getText()));
  }

  /** Rejects the proposal of an editor, by default the active one. */
  async reject(uri?: vscode.Uri): Promise<void> {
    await this.decide(this.find(uri), { accepted: false });
  }

  /** Returns the proposal of an editor, by default the active one. */
  private find(uri?: vscode.Uri): Proposal {
    // VS Code passes either side of the diff.
    const wanted = uri?.scheme === PROPOSAL_SCHEME ? uri : proposalOf(vscode.window.tabGroups.activeTabGroup.activeTab);
    const proposal = this.open.get(wanted?.toString() ?? "");
    if (!proposal) {
      throw new Error("No proposed change is open in this editor.");
    }
    return proposal;
  }

  // The file system.

  readFile(uri: vscode.Uri): Uint8Array {
    const text = this.texts.get(uri.toString());
    if (uri.query === "empty") {
      return new Uint8Array();
    }
    if (!text) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return text;
  }

  writeFile(uri: vscode.Uri, content: Uint8Array): void {
    this.texts.set(uri.toString(), content);
    const proposal = this.open.get(uri.toString());
    if (this.saving.delete(uri.toString()) && proposal) {
      void this.decide(proposal, accepted(proposal, withoutBom(Buffer.from(content).toString())));
    }
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: this.readFile(uri).length };
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  readDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  createDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): never {
    throw vscode.FileSystemError.NoPermissions();
  }
}

/** Returns the decision for a text of the document. The proposed text itself is not affected by what VS Code changes. */
function accepted({ params, shown }: Proposal, text: string): OpenDiffResult {
  if (text === shown) {
    return { accepted: true };
  }
  return { accepted: true, contents: params.contents.startsWith(BOM) ? BOM + text : text };
}

/** Opens what the user has edited in a proposal as a new document, before the agent closes it. */
async function keepEdits({ params, uri, shown }: Proposal): Promise<void> {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  const text = document?.getText();
  if (document === undefined || text === undefined || text === shown) {
    return;
  }
  const kept = await vscode.workspace.openTextDocument({ content: text, language: document.languageId });
  await vscode.window.showTextDocument(kept, { preview: false, preserveFocus: true });
  void vscode.window.showWarningMessage(`The agent closed its change of ${params.path}. Your edits are in a new editor.`);
}

function hasUnsavedText(file: vscode.Uri): boolean {
  return vscode.workspace.textDocuments.some(({ isDirty, uri }) => isDirty && uri.toString() === file.toString());
}

/** Says that the unsaved text of a file that an agent changes is kept, and offers to compare them. */
async function offerComparison(file: vscode.Uri, path: string): Promise<void> {
  const compare = "Compare with Saved";
  const message = `The agent changes ${path} on disk. The unsaved text in the editor is kept.`;
  if ((await vscode.window.showWarningMessage(message, compare)) === compare) {
    await vscode.commands.executeCommand("workbench.files.action.compareWithSaved", file);
  }
}

function withoutBom(text: string): string {
  return text.startsWith(BOM) ? text.slice(BOM.length) : text;
}

function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

/** Returns the proposed text that a tab shows. */
function proposalOf(tab: vscode.Tab | undefined): vscode.Uri | undefined {
  const uri = tab?.input instanceof vscode.TabInputTextDiff ? tab.input.modified : undefined;
  return uri?.scheme === PROPOSAL_SCHEME ? uri : undefined;
}
