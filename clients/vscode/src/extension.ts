/**
 * Sightline for VS Code: starts the server and connects what the editor shows
 * and the user does with it. All knowledge is the server's.
 */

import * as vscode from "vscode";

import { CheckpointContents, CheckpointTree, SCHEME } from "./checkpointTree";
import { Client } from "./client";
import { registerCommands } from "./commands";
import { followEditor } from "./editorState";
import { ENVIRONMENT_SCHEME, EnvironmentContents } from "./environment";
import { readManifest } from "./settings";
import { StatusBar } from "./statusBar";
import { followTerminals } from "./terminals";

/** Settings that only count when the server starts. */
const NEEDS_RESTART = ["sightline.server.path", "sightline.storage.path", "sightline.log.file"];

let client: Client | undefined;

/** Called by VS Code once it is up. */
export async function activate(context: vscode.ExtensionContext): Promise<void> {
  readManifest(context.extension.packageJSON);
  const output = vscode.window.createOutputChannel("Sightline", { log: true });
  const connection = new Client(output);
  client = connection;
  const tree = new CheckpointTree(connection);
  const environment = new EnvironmentContents(connection);
  const status = new StatusBar(connection);

  const capabilities = (): void => {
    void vscode.commands.executeCommand("setContext", "sightline.running", connection.isRunning);
    const checkpoints = connection.supports("sightline/listCheckpoints");
    void vscode.commands.executeCommand("setContext", "sightline.checkpoints", checkpoints);
    tree.refresh();
  };
  connection.onNotification("sightline/didCreateCheckpoint", () => tree.refresh());
  context.subscriptions.push(
    output,
    connection.onDidChange(capabilities),
    status,
    tree,
    vscode.window.registerTreeDataProvider("sightline.checkpoints", tree),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, new CheckpointContents(connection)),
    environment,
    vscode.workspace.registerTextDocumentContentProvider(ENVIRONMENT_SCHEME, environment),
    registerCommands({ client: connection, environment, tree, status, output, extensionUri: context.extensionUri }),
    followEditor(connection),
    followTerminals(connection),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (NEEDS_RESTART.some((name) => change.affectsConfiguration(name))) {
        void connection.restart();
      } else if (change.affectsConfiguration("sightline")) {
        connection.sendSettings();
      }
    }),
  );
  await connection.start();
}

/** Called by VS Code before it goes; waits for the server to end. */
export async function deactivate(): Promise<void> {
  await client?.stop();
}
