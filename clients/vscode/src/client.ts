/**
 * The connection to the server: where the program is, how it is started, and
 * requests with their types.
 *
 * What a server can is known by what it announces, never by its version; and
 * what it announces is not trusted either: a method it turns out not to have
 * counts as missing from then on.
 */

import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";
import {
  ErrorCodes,
  LanguageClient,
  type LanguageClientOptions,
  ResponseError,
  State,
  type StaticFeature,
  WorkDoneProgress,
} from "vscode-languageclient/node";

import type { ErrorKind, Methods, Notifications, ServerNotifications } from "../../types/protocol";
import { atStart, settings } from "./settings";

/**
 * How long work may take before its progress is shown, in milliseconds. Most is
 * done sooner. And VS Code drops the fourth message within 800 ms: three that
 * only flash up would hide the one that tells what came of it.
 */
const PROGRESS_AFTER = 500;

// A token that is left out would be sent as a second parameter.
const NOT_CANCELLED = new vscode.CancellationTokenSource().token;

/** The server has no such method. */
export class Unsupported extends Error {
  constructor(method: string) {
    super(`This sightline server cannot do this (${method}). Install a newer one.`);
  }
}

/** The server is not running. */
export class NotRunning extends Error {
  constructor() {
    super("The sightline server is not running. See “Sightline: Show Output” for the reason.");
  }
}

/** The kind of an error the server answered with. */
export function errorKind(error: unknown): ErrorKind | undefined {
  return error instanceof ResponseError ? (error.data as { kind?: ErrorKind } | undefined)?.kind : undefined;
}

/** The server of this window. */
export class Client implements vscode.Disposable {
  private language: LanguageClient | undefined;
  private readonly missing = new Set<string>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly handlers: { method: string; handle: (params: unknown) => void }[] = [];
  private progressTokens = 0;

  /** It started or stopped, or what it can turned out to be different. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly output: vscode.LogOutputChannel) {}

  /** Is it up? */
  get isRunning(): boolean {
    return this.language?.state === State.Running;
  }

  /** Can the server do this? */
  supports(method: keyof Methods): boolean {
    const announced: unknown = this.language?.initializeResult?.capabilities.experimental?.sightline?.methods;
    return this.isRunning && Array.isArray(announced) && announced.includes(method) && !this.missing.has(method);
  }

  /** Calls `handle` for each notification of this name, also after a restart. */
  onNotification<M extends keyof ServerNotifications>(
    method: M,
    handle: (params: ServerNotifications[M]) => void,
  ): void {
    const handler = { method, handle: handle as (params: unknown) => void };
    this.handlers.push(handler);
    this.language?.onNotification(method, handler.handle);
  }

  /**
   * Starts the server. Tells the user when the program is not there.
   */
  async start(): Promise<void> {
    const command = program();
    if (command === undefined) {
      await this.askForProgram();
      return;
    }
    this.missing.clear();
    const language = new LanguageClient(
      "sightline",
      "Sightline",
      { command, args: ["--stdio"] },
      this.options(),
    );
    language.registerFeature(announcement);
    language.onDidChangeState(() => this.changed.fire());
    for (const { method, handle } of this.handlers) {
      language.onNotification(method, handle);
    }
    this.language = language;
    try {
      await language.start();
    } catch (error) {
      this.output.error(`${command} could not be started: ${String(error)}`);
    }
    this.changed.fire();
  }

  /** Stops the server and starts it again, as the settings are now. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Stops the server; what it has taken on is finished or undone. */
  async stop(): Promise<void> {
    const language = this.language;
    this.language = undefined;
    await language?.dispose().catch((error: unknown) => this.output.warn(`stopping: ${String(error)}`));
  }

  dispose(): void {
    this.changed.dispose();
    void this.stop();
  }

  /** Tells the server that the settings changed. */
  sendSettings(): void {
    void this.send("workspace/didChangeConfiguration", { settings: { sightline: settings() } });
  }

  /** Sends a notification; nothing happens while the server is not running. */
  notify<M extends keyof Notifications>(method: M, params: Notifications[M]): void {
    void this.send(method, params);
  }

  /** Tells the server that a document is as on disk. */
  saved(uri: vscode.Uri): void {
    void this.send("textDocument/didSave", { textDocument: { uri: uri.toString() } });
  }

  private async send(method: string, params: unknown): Promise<void> {
    if (!this.isRunning) {
      return;
    }
    // A connection that broke just now is reported by the language client.
    await this.language?.sendNotification(method, params).catch(() => undefined);
  }

  /**
   * Asks the server.
   *
   * @throws {NotRunning} before it started or after it stopped
   * @throws {Unsupported} when it has no such method
   * @throws {ResponseError} what the server answered; see {@link errorKind}
   */
  async request<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    token: vscode.CancellationToken = NOT_CANCELLED,
  ): Promise<Methods[M]["result"]> {
    const language = this.language;
    if (!language || !this.isRunning) {
      throw new NotRunning();
    }
    try {
      return await language.sendRequest<Methods[M]["result"]>(method, params, token);
    } catch (error) {
      if (error instanceof ResponseError && error.code === ErrorCodes.MethodNotFound) {
        this.missing.add(method);
        this.changed.fire();
        throw new Unsupported(method);
      }
      throw error;
    }
  }

  /** Asks for what may be long work: its progress is shown when it is, and it can be cancelled. */
  async requestWithProgress<M extends MethodsWithProgress>(
    title: string,
    method: M,
    params: Methods[M]["params"],
  ): Promise<Methods[M]["result"]> {
    const workDoneToken = `sightline-vscode-${++this.progressTokens}`;
    const reported = new Reported();
    const listening = this.language?.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind === "report") {
        reported.take(value);
      }
    });
    const cancelling = new vscode.CancellationTokenSource();
    const answer = this.request(method, { ...params, workDoneToken }, cancelling.token);
    const ended = answer.then(
      () => undefined,
      () => undefined,
    );
    const show = (): void => {
      void vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title, cancellable: true },
        async (progress, token) => {
          token.onCancellationRequested(() => cancelling.cancel());
          reported.show(progress);
          await ended;
        },
      );
    };
    const timer = setTimeout(show, PROGRESS_AFTER);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      listening?.dispose();
      cancelling.dispose();
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
      outputChannel: this.output,
      initializationOptions: atStart(),
      middleware: {
        workspace: {
          configuration: (params) =>
            params.items.map((item) => (item.section === "sightline" ? settings() : null)),
        },
      },
    };
  }

  private async askForProgram(): Promise<void> {
    const settingName = "sightline.server.path";
    this.output.error(`no sightline program: ${settingName} is not set to one, and none is on the search path`);
    const choice = await vscode.window.showErrorMessage(
      "Sightline needs its server, the program “sightline”, and did not find it.",
      "Where to Get It",
      "Set Its Path",
    );
    if (choice === "Set Its Path") {
      await vscode.commands.executeCommand("workbench.action.openSettings", settingName);
    } else if (choice === "Where to Get It") {
      await vscode.commands.executeCommand("sightline.help");
    }
  }
}

/** How far work is, for VS Code, which wants to be told of each step by itself. */
class Reported {
  private percentage = 0;
  private shown = 0;
  private message: string | undefined;
  private progress: vscode.Progress<{ message?: string; increment?: number }> | undefined;

  take(report: { message?: string; percentage?: number }): void {
    this.percentage = report.percentage ?? this.percentage;
    this.message = report.message ?? this.message;
    this.tell();
  }

  show(progress: vscode.Progress<{ message?: string; increment?: number }>): void {
    this.progress = progress;
    this.tell();
  }

  private tell(): void {
    const increment = this.percentage - this.shown;
    if (this.progress) {
      this.progress.report({ increment, ...(this.message !== undefined && { message: this.message }) });
      this.shown = this.percentage;
    }
  }
}

/** Methods that take a `workDoneToken`. */
type MethodsWithProgress = {
  [M in keyof Methods]: Methods[M]["params"] extends { workDoneToken?: unknown } ? M : never;
}[keyof Methods];

/** Tells the server that this client sends what its editor shows. */
const announcement: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = {
      ...capabilities.experimental,
      sightline: { tabs: true, visibleEditors: true, terminals: true, focus: true },
    };
  },
  initialize() {},
  getState: () => ({ kind: "static" }),
  clear() {},
};

/** The server's program: that of the settings, else the first on the search path. */
function program(): string | undefined {
  const set = vscode.workspace.getConfiguration("sightline").get<string>("server.path", "").trim();
  if (set !== "") {
    const file = set.startsWith("~/") ? path.join(os.homedir(), set.slice(2)) : set;
    return path.isAbsolute(file) && isFile(file) ? file : undefined;
  }
  const name = process.platform === "win32" ? "sightline.exe" : "sightline";
  const cargo = path.join(os.homedir(), ".cargo", "bin");
  // A desktop's search path often lacks what a shell's has.
  const folders = [...(process.env["PATH"] ?? "").split(path.delimiter), cargo];
  // A relative folder would mean a program of the workspace.
  return folders
    .filter((folder) => path.isAbsolute(folder))
    .map((folder) => path.join(folder, name))
    .find(isFile);
}

function isFile(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
