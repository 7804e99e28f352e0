/** Connects coding agents: `sightline agents install`, and the MCP server for VS Code's own. */

import * as vscode from "vscode";

import { findProgram } from "./client";

/** Parts of the API for MCP servers, which VS Code has since 1.101. */
interface McpApi {
  registerMcpServerDefinitionProvider?(
    id: string,
    provider: { provideMcpServerDefinitions(): unknown[] },
  ): vscode.Disposable;
}
type McpServerDefinition = new (label: string, command: string, args: string[]) => unknown;

/** Shows the changes in a terminal. The command that writes them is prepared, not run. */
export function connectAgents(): void {
  const found = findProgram();
  if (found.program === undefined) {
    throw new Error(`cannot connect agents: ${found.reason}`);
  }
  const { program } = found;
  const windows = process.platform === "win32";
  // A POSIX shell needs quotes for spaces, PowerShell also the operator.
  const quoted = windows ? `& "${program}"` : `'${program.replaceAll("'", `'\\''`)}'`;
  const terminal = vscode.window.createTerminal({ name: "Sightline: Connect Agents" });
  terminal.show();
  terminal.sendText(`${quoted} agents install`);
  terminal.sendText(`${quoted} agents install --yes`, false);
}

/** Offers the MCP server, where VS Code has the API for it. */
export function registerMcpServer(): vscode.Disposable {
  const { lm, McpStdioServerDefinition } = vscode as unknown as {
    lm?: McpApi;
    McpStdioServerDefinition?: McpServerDefinition;
  };
  if (!lm?.registerMcpServerDefinitionProvider || !McpStdioServerDefinition) {
    return new vscode.Disposable(() => {});
  }
  return lm.registerMcpServerDefinitionProvider("sightline.mcp", {
    provideMcpServerDefinitions: () => {
      const { program } = findProgram();
      const folders = vscode.workspace.workspaceFolders ?? [];
      const local = folders.filter(({ uri }) => uri.scheme === "file");
      if (program === undefined) {
        return [];
      }
      return local.map(({ name, uri }) => {
        const label = local.length > 1 ? `Sightline (${name})` : "Sightline";
        return new McpStdioServerDefinition(label, program, ["mcp", "--root", uri.fsPath]);
      });
    },
  });
}
