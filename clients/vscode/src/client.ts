/**
 * The connection to the server: finds and starts the program, and sends typed
 * requests.
 */

import * as os from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";
import {
  ExecuteCommandRequest,
  LanguageClient,
  type LanguageClientOptions,
  ResponseError,
  State,
  type StaticFeature,
  WorkDoneProgress,
} from "vscode-languageclient/node";

import { type ErrorKind, type Methods, type Notifications, PROTOCOL_VERSION, type ServerNotifications, type ServerRequests } from "../../types/protocol";
import { describeMissingProgram } from "./messages";
import { type Search, search } from "./program";
import { startupSettings, settings } from "./settings";

/**
 * Delay before progress is shown, in milliseconds. Most requests are faster.
 * VS Code drops the fourth message within 800 ms, so short progress messages
 * would hide the result message.
 */
const PROGRESS_DELAY_MS = 500;

// An omitted token would be sent as a second parameter.
const NOT_CANCELLED = new vscode.CancellationTokenSource().token;

/** The server is not running. */
export class NotRunning extends Error {
  constructor() {
    super("The Sightline server is not running. Run “Sightline: Show Output” for details.");
  }
}

/** Returns the kind of an error response. */
export function errorKind(error: unknown): ErrorKind | undefined {
  return error instanceof ResponseError ? (error.data as { kind?: ErrorKind } | undefined)?.kind : undefined;
}

/** The server of this window. */
export class Client implements vscode.Disposable {
  private language: LanguageClient | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly handlers = new Map<string, ((params: unknown) => void)[]>();
  private readonly answers = new Map<string, (params: unknown) => Promise<unknown>>();
  private progressTokens = 0;
  private restarted: Promise<void> = Promise.resolve();

  /** Fires if the server starts or stops. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly output: vscode.LogOutputChannel) {}

  /** Returns whether the server is running. */
  get isRunning(): boolean {
    return this.language?.state === State.Running;
  }

  /** Registers a notification handler, which is kept across restarts. */
  onNotification<M extends keyof ServerNotifications>(
    method: M,
    handle: (params: ServerNotifications[M]) => void,
  ): void {
    const handlers = this.handlers.get(method) ?? [];
    this.handlers.set(method, [...handlers, handle as (params: unknown) => void]);
    if (this.language) {
      this.listen(this.language, method);
    }
  }

  /** Registers the handler of a request of the server, which is kept across restarts. */
  onRequest<M extends keyof ServerRequests>(
    method: M,
    answer: (params: ServerRequests[M]["params"]) => Promise<ServerRequests[M]["result"]>,
  ): void {
    this.answers.set(method, answer as (params: unknown) => Promise<unknown>);
  }

  /** Passes a notification to its handlers. The language client keeps only one handler per method. */
  private listen(language: LanguageClient, method: string): void {
    language.onNotification(method, (params: unknown) => this.handlers.get(method)?.forEach((handle) => handle(params)));
  }

  /**
   * Starts the server. If the program is not found, asks the user, and does not wait for the answer: a message can stay
   * open as long as the user likes.
   */
  async start(): Promise<void> {
    const found = findProgram();
    if (found.program === undefined) {
      void this.askForProgram(found);
      return;
    }
    const command = found.program;
    // A client whose start failed cannot be started again, so each start has its client.
    const language = new LanguageClient(
      "sightline",
      "Sightline",
      { command, args: ["--stdio"] },
      this.options(),
    );
    language.registerFeature(editorStateFeature);
    language.onDidChangeState(() => this.changed.fire());
    for (const method of this.handlers.keys()) {
      this.listen(language, method);
    }
    for (const [method, answer] of this.answers) {
      language.onRequest(method, answer);
    }
    this.language = language;
    try {
      await language.start();
    } catch (error) {
      this.output.error(`cannot start ${command}: ${String(error)}`);
    }
    const announced = language.initializeResult?.capabilities.experimental as { sightline?: { protocolVersion?: number } } | undefined;
    if (this.isRunning && announced?.sightline?.protocolVersion !== PROTOCOL_VERSION) {
      await this.stop();
      const text = `${command} is not a Sightline server with protocol ${PROTOCOL_VERSION}. Update it or the extension.`;
      this.output.error(text);
      void vscode.window.showErrorMessage(text);
    }
    this.changed.fire();
  }

  /** Restarts the server with the current settings, after restarts that are running. */
  async restart(): Promise<void> {
    this.restarted = this.restarted.then(() => this.stop()).then(() => this.start());
    await this.restarted;
  }

  /** Stops the server after its running requests are completed or cancelled. */
  async stop(): Promise<void> {
    const language = this.language;
    this.language = undefined;
    if (language?.state === State.Starting) {
      // A client that is starting cannot be stopped.
      await language.start().catch(() => undefined);
    }
    await language?.dispose().catch((error: unknown) => this.output.warn(`cannot stop the server: ${String(error)}`));
  }

  dispose(): void {
    this.changed.dispose();
    void this.stop();
  }

  /** Sends changed settings to the server. */
  sendSettings(): void {
    void this.send("workspace/didChangeConfiguration", { settings: { sightline: settings() } });
  }

  /** Sends a notification if the server is running. */
  notify<M extends keyof Notifications>(method: M, params: Notifications[M]): void {
    void this.send(method, params);
  }

  /** Reports that a document is equal to the file on disk. */
  saved(uri: vscode.Uri): void {
    void this.send("textDocument/didSave", { textDocument: { uri: uri.toString() } });
  }

  private async send(method: string, params: unknown): Promise<void> {
    if (!this.isRunning) {
      return;
    }
    // The language client reports a broken connection.
    await this.language?.sendNotification(method, params).catch(() => undefined);
  }

  /**
   * Sends a request.
   *
   * @throws {NotRunning} if the server is not running
   * @throws {ResponseError} if the server returns an error; see {@link errorKind}
   */
  async request<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    token: vscode.CancellationToken = NOT_CANCELLED,
  ): Promise<Methods[M]["result"]> {
    return await this.running().sendRequest<Methods[M]["result"]>(method, params, token);
  }

  /**
   * Runs a command of the server, which shows what it did.
   *
   * @throws as {@link request}
   */
  async execute(command: "sightline.sendToAgent", argument: object): Promise<void> {
    await this.running().sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] });
  }

  /** Converts objects of VS Code. */
  get toProtocol(): LanguageClient["code2ProtocolConverter"] {
    return this.running().code2ProtocolConverter;
  }

  private running(): LanguageClient {
    if (!this.language || !this.isRunning) {
      throw new NotRunning();
    }
    return this.language;
  }

  /** Sends a request that may take long, with progress and cancellation. */
  async requestWithProgress<M extends MethodsWithProgress>(
    title: string,
    method: M,
    params: Methods[M]["params"],
  ): Promise<Methods[M]["result"]> {
    const workDoneToken = `sightline-vscode-${++this.progressTokens}`;
    const cancelling = new vscode.CancellationTokenSource();
    const answer = this.request(method, { ...params, workDoneToken }, cancelling.token);
    const show = async (progress: vscode.Progress<{ message?: string; increment?: number }>, token: vscode.CancellationToken): Promise<void> => {
      token.onCancellationRequested(() => cancelling.cancel());
      let shown = 0;
      const listening = this.language?.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
        if (value.kind === "report") {
          const { message, percentage = shown } = value;
          // VS Code expects increments.
          progress.report({ increment: percentage - shown, ...(message !== undefined && { message }) });
          shown = percentage;
        }
      });
      await Promise.allSettled([answer]);
      listening?.dispose();
    };
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    const timer = setTimeout(() => void vscode.window.withProgress(options, show), PROGRESS_DELAY_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      cancelling.dispose();
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
      outputChannel: this.output,
      initializationOptions: startupSettings(),
      middleware: {
        workspace: {
          configuration: (params) =>
            params.items.map((item) => (item.section === "sightline" ? settings() : null)),
        },
      },
    };
  }

  private async askForProgram(missing: Search & { program: undefined }): Promise<void> {
    const settingName = "sightline.server.path";
    const { shown, logged } = describeMissingProgram(missing);
    this.output.error(logged);
    const choice = await vscode.window.showErrorMessage(shown, "Show Installation Guide", "Set Path");
    if (choice === "Set Path") {
      await vscode.commands.executeCommand("workbench.action.openSettings", settingName);
    } else if (choice === "Show Installation Guide") {
      await vscode.commands.executeCommand("sightline.help", "installation");
    }
  }
}

/** Methods that take a `workDoneToken`. */
type MethodsWithProgress = {
  [M in keyof Methods]: Methods[M]["params"] extends { workDoneToken?: unknown } ? M : never;
}[keyof Methods];

/** Announces that this client sends editor state notifications. */
const editorStateFeature: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = {
      ...capabilities.experimental,
      sightline: { tabs: true, visibleEditors: true, terminals: true, focus: true, openDiff: true },
    };
  },
  initialize() {},
  getState: () => ({ kind: "static" }),
  clear() {},
};

/** Searches the server program. */
export function findProgram(): Search {
  return search({
    configured: vscode.workspace.getConfiguration("sightline").get<string>("server.path", "").trim(),
    packaged: path.join(__dirname, "..", "server"),
    path: (process.env["PATH"] ?? "").split(path.delimiter),
    home: os.homedir(),
    isWindows: process.platform === "win32",
  });
}
