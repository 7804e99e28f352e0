/**
 * What the editor shows: tabs, visible editors, focus.
 *
 * VS Code tells of one action in bursts of events, so the state is looked at
 * once it is quiet, and sent when it differs from what was sent.
 */

import * as vscode from "vscode";

import type { Notifications, Range, Tab, VisibleEditor } from "../../types/protocol";
import type { Client } from "./client";

/** How long it has to be quiet, in milliseconds. */
const QUIET = 60;

type Subject = "sightline/didChangeTabs" | "sightline/didChangeVisibleEditors" | "textDocument/didFocus";

/** Keeps the server informed, from now until it is disposed of. */
export function followEditor(client: Client): vscode.Disposable {
  const sent = new Map<Subject, string>();
  const unsaved = new Set<vscode.TextDocument>();
  let timer: NodeJS.Timeout | undefined;

  const send = <S extends Subject>(subject: S, params: Notifications[S]): void => {
    const text = JSON.stringify(params);
    if (sent.get(subject) !== text) {
      sent.set(subject, text);
      client.notify(subject, params);
    }
  };
  const sendAll = (): void => {
    if (!client.isRunning) {
      return;
    }
    send("sightline/didChangeTabs", { tabs: tabs() });
    send("sightline/didChangeVisibleEditors", { editors: visibleEditors() });
    send("textDocument/didFocus", focus());
    sendCleaned();
  };
  // A file that changed on disk comes into the editor by a change that nobody
  // saves. LSP's way of saying that a text is as on disk is to say it was saved.
  const sendCleaned = (): void => {
    for (const document of [...unsaved].filter((one) => !one.isDirty)) {
      unsaved.delete(document);
      client.saved(document.uri);
    }
  };
  const soon = (): void => {
    clearTimeout(timer);
    timer = setTimeout(sendAll, QUIET);
  };
  const afresh = (): void => {
    // A server that was started just now knows nothing.
    sent.clear();
    sendAll();
  };

  afresh();
  return vscode.Disposable.from(
    client.onDidChange(afresh),
    vscode.window.tabGroups.onDidChangeTabs(soon),
    vscode.window.tabGroups.onDidChangeTabGroups(soon),
    vscode.window.onDidChangeVisibleTextEditors(soon),
    vscode.window.onDidChangeActiveTextEditor(soon),
    vscode.window.onDidChangeTextEditorSelection(soon),
    vscode.window.onDidChangeTextEditorVisibleRanges(soon),
    vscode.window.onDidChangeTextEditorViewColumn(soon),
    // It also tells when a document becomes dirty or clean, with no changes.
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (document.uri.scheme === "file") {
        unsaved.add(document);
        soon();
      }
    }),
    vscode.workspace.onDidSaveTextDocument((document) => unsaved.delete(document)),
    vscode.workspace.onDidCloseTextDocument((document) => unsaved.delete(document)),
    { dispose: () => clearTimeout(timer) },
  );
}

function tabs(): Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) =>
    group.tabs.flatMap((tab) => {
      const uri = tabUri(tab.input);
      if (!uri) {
        return [];
      }
      return {
        uri: uri.toString(),
        group: group.viewColumn,
        isActive: tab.isActive,
        isDirty: tab.isDirty,
        isPinned: tab.isPinned,
        isPreview: tab.isPreview,
      };
    }),
  );
}

/** The document of a tab; none for a terminal, a web page or settings. */
function tabUri(input: unknown): vscode.Uri | undefined {
  if (
    input instanceof vscode.TabInputText ||
    input instanceof vscode.TabInputNotebook ||
    input instanceof vscode.TabInputCustom
  ) {
    return ofUser(input.uri);
  }
  if (input instanceof vscode.TabInputTextDiff || input instanceof vscode.TabInputNotebookDiff) {
    return ofUser(input.modified) ?? ofUser(input.original);
  }
  return undefined;
}

function visibleEditors(): VisibleEditor[] {
  const active = vscode.window.activeTextEditor;
  return vscode.window.visibleTextEditors
    .filter((editor) => ofUser(editor.document.uri))
    .map((editor) => ({
      uri: editor.document.uri.toString(),
      isActive: editor === active,
      visibleRanges: editor.visibleRanges.map(range),
      selections: editor.selections.map(range),
    }));
}

function focus(): Notifications["textDocument/didFocus"] {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && ofUser(uri) ? { textDocument: { uri: uri.toString() } } : {};
}

/** `uri`, if it is a document of the user's: not output, a diff's old side or the like. */
function ofUser(uri: vscode.Uri): vscode.Uri | undefined {
  return uri.scheme === "file" || uri.scheme === "untitled" ? uri : undefined;
}

function range({ start, end }: vscode.Range): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
