/**
 * Sightline for VS Code: starts the server, and connects it to the editor state
 * and the user interface.
 */

import * as vscode from "vscode";

import { AgentConnections, registerMcpServer } from "./agents";
import { Blame } from "./checkpoints/blame";
import { CheckpointContents, SCHEME } from "./checkpoints/contents";
import { Gutter } from "./checkpoints/gutter";
import { CheckpointTree } from "./checkpoints/tree";
import { Client } from "./client";
import { registerCommands } from "./commands";
import { trackEditorState } from "./editor/state";
import { AccessDecorations, changeDecorations } from "./decorations";
import { ENVIRONMENT_SCHEME, EnvironmentContents } from "./environment";
import { McpServerTree } from "./mcpServers";
import { Page } from "./page";
import { Proposals } from "./proposals";
import { readManifest } from "./settings";
import { StatusBar } from "./statusBar";
import { trackTerminals } from "./editor/terminals";

/** Settings that require a restart of the server. */
const NEEDS_RESTART = ["sightline.server.path", "sightline.storage.path", "sightline.log.file"];

let client: Client | undefined;

/** Activates the extension. Does not wait for the server: VS Code runs no command before this returns. */
export function activate(context: vscode.ExtensionContext): void {
  readManifest(context.extension.packageJSON);
  const output = vscode.window.createOutputChannel("Sightline", { log: true });
  const connection = new Client(output);
  client = connection;
  const tree = new CheckpointTree(connection, context.workspaceState);
  const contents = new CheckpointContents(connection);
  const gutter = new Gutter(connection);
  const mcpServers = new McpServerTree(connection);
  const blame = new Blame(connection);
  const environment = new EnvironmentContents(connection);
  const proposals = new Proposals(connection);
  const agents = new AgentConnections(output);
  const page = new Page(connection, context.extensionUri);
  const status = new StatusBar(connection, tree);
  const decorations = new AccessDecorations(connection);

  const updateContext = (): void => {
    void vscode.commands.executeCommand("setContext", "sightline.running", connection.isRunning);
    tree.refresh();
  };
  connection.onNotification("sightline/didCreateCheckpoint", () => tree.refresh());
  const variables = context.environmentVariableCollection;
  variables.persistent = false;
  variables.description = "Coding agents in terminals find this window";
  connection.onNotification("sightline/didChangeBridges", ({ environment = {} }) => setVariables(variables, environment));
  context.subscriptions.push(
    output,
    connection.onDidChange(updateContext),
    status,
    tree,
    decorations,
    vscode.window.registerFileDecorationProvider(changeDecorations),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, contents),
    environment,
    vscode.workspace.registerTextDocumentContentProvider(ENVIRONMENT_SCHEME, environment),
    registerCommands({
      agents,
      blame,
      client: connection,
      contents,
      environment,
      extensionUri: context.extensionUri,
      gutter,
      mcpServers,
      output,
      page,
      proposals,
      status,
      tree,
    }),
    page,
    blame,
    gutter,
    mcpServers,
    proposals,
    agents,
    registerMcpServer(),
    trackEditorState(connection),
    trackTerminals(connection),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (NEEDS_RESTART.some((name) => change.affectsConfiguration(name))) {
        void connection.restart();
      } else if (change.affectsConfiguration("sightline")) {
        connection.sendSettings();
        decorations.refresh();
      }
    }),
  );
  void connection.start();
}

/** Sets the variables of terminals. VS Code marks open terminals at each change. */
function setVariables(variables: vscode.EnvironmentVariableCollection, wanted: { [name: string]: string | undefined }): void {
  for (const [name] of variables) {
    if (wanted[name] === undefined) {
      variables.delete(name);
    }
  }
  for (const [name, value] of Object.entries(wanted)) {
    if (value !== undefined && variables.get(name)?.value !== value) {
      variables.replace(name, value);
    }
  }
}

/** Stops the server and waits for it to exit. */
export async function deactivate(): Promise<void> {
  await client?.stop();
}
