/**
 * The terminals: which there are, what runs in them and what it printed.
 *
 * Commands, output and exit codes are known where the shell integration of VS
 * Code is active; of other terminals, that they exist and where they began.
 */

import * as vscode from "vscode";

import type { Terminal } from "../../types/protocol";
import type { Client } from "./client";

/** How long it has to be quiet, in milliseconds; and at most how long output waits. */
const QUIET = 100;

/** Output kept until it is sent, in UTF-16 units. The server keeps no more either. */
const MOST_OUTPUT = 256 * 1024;

interface State {
  readonly id: string;
  command: string | undefined;
  exitCode: number | undefined;
  running: vscode.TerminalShellExecution | undefined;
  output: string;
}

/** Keeps the server informed, from now until it is disposed of. */
export function followTerminals(client: Client): vscode.Disposable {
  const states = new Map<vscode.Terminal, State>();
  let lastId = 0;
  let lastSent = "";
  let timer: NodeJS.Timeout | undefined;

  const stateOf = (terminal: vscode.Terminal): State => {
    let state = states.get(terminal);
    if (!state) {
      state = { id: String(++lastId), command: undefined, exitCode: undefined, running: undefined, output: "" };
      states.set(terminal, state);
    }
    return state;
  };
  const send = (): void => {
    timer = undefined;
    if (!client.isRunning) {
      return;
    }
    const terminals = vscode.window.terminals.map((terminal) => described(terminal, stateOf(terminal)));
    const text = JSON.stringify(terminals);
    if (text === lastSent && !terminals.some((terminal) => terminal.newOutput)) {
      return;
    }
    lastSent = text;
    client.notify("sightline/didChangeTerminals", { terminals });
    for (const state of states.values()) {
      state.output = "";
    }
  };
  const soon = (): void => {
    // Not put off by more output, or a busy terminal would never be heard.
    timer ??= setTimeout(send, QUIET);
  };
  const started = ({ terminal, execution }: vscode.TerminalShellExecutionStartEvent): void => {
    const state = stateOf(terminal);
    state.command = execution.commandLine.value;
    state.exitCode = undefined;
    state.running = execution;
    soon();
    void listen(execution, (text) => {
      state.output = (state.output + text).slice(-MOST_OUTPUT);
      soon();
    });
  };
  const ended = ({ terminal, execution, exitCode }: vscode.TerminalShellExecutionEndEvent): void => {
    const state = stateOf(terminal);
    // The command line may have become known only now.
    state.command = execution.commandLine.value;
    state.exitCode = exitCode;
    state.running = undefined;
    soon();
  };
  const closed = (terminal: vscode.Terminal): void => {
    states.delete(terminal);
    soon();
  };
  const afresh = (): void => {
    lastSent = "";
    soon();
  };

  soon();
  return vscode.Disposable.from(
    client.onDidChange(afresh),
    vscode.window.onDidOpenTerminal(soon),
    vscode.window.onDidCloseTerminal(closed),
    vscode.window.onDidChangeTerminalState(soon),
    vscode.window.onDidChangeTerminalShellIntegration(soon),
    vscode.window.onDidStartTerminalShellExecution(started),
    vscode.window.onDidEndTerminalShellExecution(ended),
    { dispose: () => clearTimeout(timer) },
  );
}

/** Hands on what a command prints, until it ends. */
async function listen(execution: vscode.TerminalShellExecution, take: (text: string) => void): Promise<void> {
  for await (const text of execution.read()) {
    take(text);
  }
}

function described(terminal: vscode.Terminal, state: State): Terminal {
  const cwd = workingDirectory(terminal);
  return {
    id: state.id,
    name: terminal.name,
    isBusy: state.running !== undefined,
    ...(state.command !== undefined && { command: state.command }),
    ...(cwd !== undefined && { cwd }),
    ...(state.exitCode !== undefined && { exitCode: state.exitCode }),
    ...(state.output !== "" && { newOutput: state.output }),
  };
}

/** Where the terminal is; where it began when no shell tells. */
function workingDirectory(terminal: vscode.Terminal): string | undefined {
  const now = terminal.shellIntegration?.cwd?.fsPath;
  if (now !== undefined) {
    return now;
  }
  const options = terminal.creationOptions;
  const began = "cwd" in options ? options.cwd : undefined;
  return typeof began === "string" ? began : began?.fsPath;
}
