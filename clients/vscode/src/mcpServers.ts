/** The view of the MCP servers that agents get, and its commands. */

import * as vscode from "vscode";

import type { McpServer, McpServerParams, McpServerState, McpTool } from "../../types/protocol";
import type { Client } from "./client";
import { count, GONE } from "./format";

/** URI scheme of the log of a server. Its path is the name. */
export const MCP_LOG_SCHEME = "sightline-mcp-log";

/** Icon of each state. */
const ICONS: { [state in McpServerState]: string } = {
  disabled: "circle-slash",
  untrusted: "shield",
  idle: "circle-outline",
  starting: "sync~spin",
  ready: "circle-filled",
  failed: "error",
  changed: "warning",
};

/** A row of the view. */
export type McpNode = { server: McpServer; tool?: McpTool };

/** Data of the view. */
export class McpServerTree implements vscode.TreeDataProvider<McpNode>, vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly registration: vscode.Disposable;

  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly client: Client) {
    this.registration = vscode.Disposable.from(
      vscode.window.registerTreeDataProvider("sightline.mcpServers", this),
      vscode.workspace.registerTextDocumentContentProvider(MCP_LOG_SCHEME, this),
      client.onDidChange(() => this.changed.fire()),
    );
    client.onNotification("sightline/didChangeMcpServers", () => this.changed.fire());
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  async getChildren(node?: McpNode): Promise<McpNode[]> {
    if (!this.client.isRunning || node?.tool) {
      return [];
    }
    if (node) {
      return node.server.tools.map((tool) => ({ server: node.server, tool }));
    }
    const servers = await this.client.request("sightline/listMcpServers", {});
    return servers.map((server) => ({ server }));
  }

  getTreeItem({ server, tool }: McpNode): vscode.TreeItem {
    if (tool) {
      const item = new vscode.TreeItem(tool.name);
      item.iconPath = new vscode.ThemeIcon(tool.changed ? "warning" : "tools");
      item.description = tool.enabled ? `about ${count(tool.tokens, "token")}` : "not offered";
      item.tooltip = tool.exposedAs;
      return item;
    }
    const { Collapsed, None } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(server.name, server.tools.length > 0 ? Collapsed : None);
    item.id = `${server.root ?? ""} ${server.name}`;
    item.contextValue = server.state;
    item.iconPath = new vscode.ThemeIcon(ICONS[server.state]);
    const errors = server.errors > 0 ? ` · ${count(server.errors, "error")}` : "";
    item.description = `${server.state} · ${count(server.tools.length, "tool")} · ${count(server.calls, "call")}${errors}`;
    const ignored = server.ignoredFields.length > 0 ? [`Without effect: ${server.ignoredFields.join(", ")}`] : [];
    item.tooltip = [server.command.join(" "), ...(server.reason === undefined ? [] : [server.reason]), server.source, ...ignored].join("\n");
    return item;
  }

  /** Returns the commands of the view, by name. */
  commands(): Record<string, (node?: McpNode) => unknown> {
    const on = (run: (server: McpServer, params: McpServerParams) => Promise<unknown>) => async (node?: McpNode) => {
      if (!node) {
        throw new Error(GONE);
      }
      const { name, root } = node.server;
      await run(node.server, { name, ...(root !== undefined && { root }) });
      this.changed.fire();
    };
    const enable = (enabled: boolean) => on((_, params) => this.client.request("sightline/setMcpServerEnabled", { ...params, enabled }));
    return {
      "sightline.mcp.refresh": () => this.changed.fire(),
      "sightline.mcp.enable": enable(true),
      "sightline.mcp.disable": enable(false),
      "sightline.mcp.restart": on((_, params) => this.client.request("sightline/restartMcpServer", params)),
      "sightline.mcp.trust": on((server, params) => this.trust(server, params)),
      "sightline.mcp.log": on((server) => this.showLog(server)),
    };
  }

  private async trust({ name, command, env }: McpServer, params: McpServerParams): Promise<void> {
    const variables = env.length > 0 ? `\nVariables: ${env.join(", ")}` : "";
    const detail = `${command.join(" ")}${variables}\n\nIt runs as a program on this machine, until its command changes.`;
    if ((await vscode.window.showWarningMessage(`Let agents use ${name}?`, { modal: true, detail }, "Trust")) === "Trust") {
      await this.client.request("sightline/trustMcpServer", params);
    }
  }

  private async showLog({ name, root }: McpServer): Promise<void> {
    // A new document each time: the text of an open one would stay the same.
    const query = JSON.stringify({ name, root, at: Date.now() });
    const uri = vscode.Uri.from({ scheme: MCP_LOG_SCHEME, path: `${name}.log`, query });
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const { name, root } = JSON.parse(uri.query) as McpServerParams;
    const params = { name, ...(root !== undefined && { root }) };
    return (await this.client.request("sightline/mcpServerLog", params)).text;
  }
}
