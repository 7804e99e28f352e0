/**
 * Sends the editor state to the server: tabs, visible editors and focus.
 *
 * VS Code reports one action as several events, so changes are debounced, and
 * sent only if the state differs from the last one sent.
 */

import * as vscode from "vscode";

import type { Diagnostic, Notifications, Tab, VisibleEditor } from "../../../types/protocol";
import type { Client } from "../client";

/** Debounce time, in milliseconds. */
const DEBOUNCE_MS = 60;
/** Maximum diagnostics of a file; the server keeps no more. */
const MAX_DIAGNOSTICS = 200;

type Subject = "sightline/didChangeTabs" | "sightline/didChangeVisibleEditors" | "textDocument/didFocus";

/** Sends editor state changes to the server until disposed. */
export function trackEditorState(client: Client): vscode.Disposable {
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
    send("sightline/didChangeVisibleEditors", { editors: visibleEditors(client) });
    send("textDocument/didFocus", focus());
    sendDiagnostics();
    sendCleanDocuments();
  };
  // VS Code reloads a file that changed on disk without a save event. A
  // didSave notification tells the server that the text equals the file.
  const sendCleanDocuments = (): void => {
    for (const document of [...unsaved].filter((one) => !one.isDirty)) {
      unsaved.delete(document);
      client.saved(document.uri);
    }
  };
  const diagnosed = new Map<string, vscode.Uri>();
  const sendDiagnostics = (): void => {
    for (const [text, uri] of diagnosed) {
      client.notify("sightline/didChangeDiagnostics", { uri: text, diagnostics: diagnostics(client, uri) });
    }
    diagnosed.clear();
  };
  const noteDiagnostics = (uris: readonly vscode.Uri[]): void => {
    for (const uri of uris) {
      if (uri.scheme === "file") {
        diagnosed.set(uri.toString(), uri);
      }
    }
  };
  const schedule = (): void => {
    clearTimeout(timer);
    timer = setTimeout(sendAll, DEBOUNCE_MS);
  };
  const resend = (): void => {
    // A restarted server has no state.
    sent.clear();
    noteDiagnostics(vscode.languages.getDiagnostics().map(([uri]) => uri));
    sendAll();
  };

  resend();
  return vscode.Disposable.from(
    client.onDidChange(resend),
    vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      noteDiagnostics(uris);
      schedule();
    }),
    vscode.window.onDidChangeWindowState(({ focused }) => {
      if (focused) {
        // Another editor of the folder had the focus.
        sent.delete("textDocument/didFocus");
        schedule();
      }
    }),
    vscode.window.tabGroups.onDidChangeTabs(schedule),
    vscode.window.tabGroups.onDidChangeTabGroups(schedule),
    vscode.window.onDidChangeVisibleTextEditors(schedule),
    vscode.window.onDidChangeActiveTextEditor(schedule),
    vscode.window.onDidChangeTextEditorSelection(schedule),
    vscode.window.onDidChangeTextEditorVisibleRanges(schedule),
    vscode.window.onDidChangeTextEditorViewColumn(schedule),
    // Also fires, without changes, if a document becomes dirty or clean.
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (document.uri.scheme === "file") {
        unsaved.add(document);
        schedule();
      }
    }),
    vscode.workspace.onDidSaveTextDocument((document) => unsaved.delete(document)),
    vscode.workspace.onDidCloseTextDocument((document) => unsaved.delete(document)),
    { dispose: () => clearTimeout(timer) },
  );
}

/** Returns the most severe diagnostics of a file, as in LSP. */
function diagnostics(client: Client, uri: vscode.Uri): Diagnostic[] {
  return [...vscode.languages.getDiagnostics(uri)]
    .sort((a, b) => a.severity - b.severity)
    .slice(0, MAX_DIAGNOSTICS)
    .map((diagnostic) => client.toProtocol.asDiagnostic(diagnostic) as Diagnostic);
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

/** Returns the document of a tab. Terminals, web pages and settings have none. */
function tabUri(input: unknown): vscode.Uri | undefined {
  if (
    input instanceof vscode.TabInputText ||
    input instanceof vscode.TabInputNotebook ||
    input instanceof vscode.TabInputCustom
  ) {
    return userDocument(input.uri);
  }
  if (input instanceof vscode.TabInputTextDiff || input instanceof vscode.TabInputNotebookDiff) {
    return userDocument(input.modified) ?? userDocument(input.original);
  }
  return undefined;
}

function visibleEditors(client: Client): VisibleEditor[] {
  const active = vscode.window.activeTextEditor;
  return vscode.window.visibleTextEditors
    .filter((editor) => userDocument(editor.document.uri))
    .map((editor) => ({
      uri: editor.document.uri.toString(),
      isActive: editor === active,
      visibleRanges: editor.visibleRanges.map((range) => client.toProtocol.asRange(range)),
      selections: editor.selections.map((range) => client.toProtocol.asRange(range)),
    }));
}

function focus(): Notifications["textDocument/didFocus"] {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && userDocument(uri) ? { textDocument: { uri: uri.toString() } } : {};
}

/** Returns `uri` if it is a user document, not output or the old side of a diff. */
function userDocument(uri: vscode.Uri): vscode.Uri | undefined {
  return uri.scheme === "file" || uri.scheme === "untitled" ? uri : undefined;
}
