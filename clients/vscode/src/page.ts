/**
 * The page of `sightline ui` in an editor: the same files, with messages to this extension in place of HTTP. There is no
 * port and no token: requests go to the server of this window.
 */

import * as vscode from "vscode";
import { ErrorCodes, ResponseError } from "vscode-languageclient/node";

import type { Methods } from "../../types/protocol";
import type { Client } from "./client";

/** Requests of the page. */
const METHODS: readonly string[] = [
  "environmentDetails",
  "checkAccess",
  "listFiles",
  "readFile",
  "listDecisions",
  "listTasks",
  "listTurns",
  "listCheckpoints",
  "diffCheckpoints",
  "blame",
  "previewRestore",
  "restoreCheckpoint",
  "undoRestore",
  "labelCheckpoint",
  "checkpointStats",
  "verifyCheckpoints",
  "unsavedFiles",
  "selection",
  "connectedAgents",
  "openFile",
  "listRules",
  "listMcpServers",
  "setMcpServerEnabled",
  "restartMcpServer",
  "trustMcpServer",
  "mcpServerLog",
].map((name) => `sightline/${name}`);

/** Notifications of the server, and what they mean for the page. */
const EVENTS = {
  "sightline/didCreateCheckpoint": ["didCreateCheckpoint", "didChangeTurns"],
  "sightline/didChangeBridges": ["didChangeBridges"],
  "sightline/didChangeContext": ["didChangeContext"],
  "sightline/didChangeAccessRules": ["didChangeRules", "decision"],
} as const;

interface Request {
  id: number;
  method: string;
  params: object;
}

/** The panel with the page. */
export class Page implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly listening: vscode.Disposable;

  constructor(
    private readonly client: Client,
    private readonly extensionUri: vscode.Uri,
  ) {
    for (const method of Object.keys(EVENTS) as (keyof typeof EVENTS)[]) {
      client.onNotification(method, () => EVENTS[method].forEach((event) => this.send({ event })));
    }
    this.listening = client.onDidChange(() => this.send({ event: client.isRunning ? "connected" : "disconnected" }));
  }

  dispose(): void {
    this.listening.dispose();
    this.panel?.dispose();
  }

  /** Opens the page, or shows it if it is open. */
  async open(): Promise<void> {
    if (this.panel) {
      this.panel.reveal();
      return;
    }
    const folder = vscode.Uri.joinPath(this.extensionUri, "dist", "page");
    const html = new TextDecoder().decode(await vscode.workspace.fs.readFile(vscode.Uri.joinPath(folder, "index.html")));
    const panel = vscode.window.createWebviewPanel("sightline.page", "Sightline", vscode.ViewColumn.Active, {
      enableScripts: true,
      localResourceRoots: [folder],
      // What is selected stays when another tab is shown.
      retainContextWhenHidden: true,
    });
    this.panel = panel;
    panel.iconPath = vscode.Uri.joinPath(this.extensionUri, "media", "sightline.svg");
    panel.onDidDispose(() => (this.panel = undefined));
    panel.webview.onDidReceiveMessage((request: Request) => this.answer(request));
    panel.webview.html = pageHtml(html, panel.webview, folder);
  }

  private send(message: object): void {
    void this.panel?.webview.postMessage(message);
  }

  private async answer({ id, method, params }: Request): Promise<void> {
    try {
      this.send({ id, result: await this.request(method, params) });
    } catch (error) {
      const { message } = error instanceof Error ? error : new Error(String(error));
      const { code, data } = error instanceof ResponseError ? error : { code: ErrorCodes.InternalError, data: undefined };
      this.send({ id, error: { code, message, data } });
    }
  }

  private async request(method: string, params: object): Promise<unknown> {
    if (method === "page/state") {
      const folders = vscode.workspace.workspaceFolders ?? [];
      const roots = folders.map(({ name, uri }) => ({ name, path: uri.fsPath, uri: uri.toString() }));
      return { version: "", readOnly: false, roots, server: this.client.isRunning };
    }
    if (!METHODS.includes(method)) {
      throw new ResponseError(ErrorCodes.MethodNotFound, `${method} is not available here`);
    }
    // Looking at the block delivers it to no agent.
    const peek = method === "sightline/environmentDetails" ? { consume: false } : {};
    return await this.client.request(method as keyof Methods, { ...params, ...peek } as never);
  }
}

/** Returns the page with its theme and its connection, and the addresses of its files in this webview, and only them allowed. */
function pageHtml(html: string, webview: vscode.Webview, folder: vscode.Uri): string {
  const { cspSource } = webview;
  const policy = `default-src 'none'; script-src ${cspSource}; style-src ${cspSource}; img-src ${cspSource}`;
  return html
    .replace("<script", '<link rel="stylesheet" href="theme.css">\n    <script src="host.js" defer></script>\n    <script')
    .replace(/(href|src)="([\w.]+)"/g, (_, name: string, file: string) => `${name}="${webview.asWebviewUri(vscode.Uri.joinPath(folder, file)).toString()}"`)
    .replace("<head>", `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}">`);
}
