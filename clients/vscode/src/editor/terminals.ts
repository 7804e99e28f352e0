/**
 * Sends the terminals, their commands and their output to the server.
 *
 * Commands, output and exit codes require the shell integration of VS Code.
 * Other terminals are reported with their initial working directory only.
 */

import * as vscode from "vscode";

import type { Terminal } from "../../../types/protocol";
import type { Client } from "../client";

/** Delay before changes are sent, in milliseconds. */
const SEND_DELAY_MS = 100;

/** Maximum unsent output per terminal, in UTF-16 units; the limit of the server. */
const MAX_OUTPUT = 256 * 1024;

interface State {
  readonly id: string;
  pid: number | undefined;
  command: string | undefined;
  exitCode: number | undefined;
  running: vscode.TerminalShellExecution | undefined;
  output: string;
}

/** Sends terminal changes to the server until disposed. */
export function trackTerminals(client: Client): vscode.Disposable {
  const states = new Map<vscode.Terminal, State>();
  let lastId = 0;
  let lastSent = "";
  let timer: NodeJS.Timeout | undefined;

  const stateOf = (terminal: vscode.Terminal): State => {
    let state = states.get(terminal);
    if (!state) {
      const created: State = {
        id: String(++lastId),
        pid: undefined,
        command: undefined,
        exitCode: undefined,
        running: undefined,
        output: "",
      };
      state = created;
      states.set(terminal, state);
      void terminal.processId.then((pid) => {
        created.pid = pid;
        schedule();
      });
    }
    return state;
  };
  const send = (): void => {
    timer = undefined;
    if (!client.isRunning) {
      return;
    }
    const terminals = vscode.window.terminals.map((terminal) => toWire(terminal, stateOf(terminal)));
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
  const schedule = (): void => {
    // More output does not postpone the timer, so busy terminals are sent too.
    timer ??= setTimeout(send, SEND_DELAY_MS);
  };
  const started = ({ terminal, execution }: vscode.TerminalShellExecutionStartEvent): void => {
    const state = stateOf(terminal);
    state.command = execution.commandLine.value;
    state.exitCode = undefined;
    state.running = execution;
    schedule();
    void readOutput(execution, (text) => {
      state.output = (state.output + text).slice(-MAX_OUTPUT);
      schedule();
    });
  };
  const ended = ({ terminal, execution, exitCode }: vscode.TerminalShellExecutionEndEvent): void => {
    const state = stateOf(terminal);
    // The command line may be known only now.
    state.command = execution.commandLine.value;
    state.exitCode = exitCode;
    state.running = undefined;
    schedule();
  };
  const closed = (terminal: vscode.Terminal): void => {
    states.delete(terminal);
    schedule();
  };
  const resend = (): void => {
    lastSent = "";
    schedule();
  };

  schedule();
  return vscode.Disposable.from(
    client.onDidChange(resend),
    vscode.window.onDidOpenTerminal(schedule),
    vscode.window.onDidCloseTerminal(closed),
    vscode.window.onDidChangeTerminalState(schedule),
    vscode.window.onDidChangeTerminalShellIntegration(schedule),
    vscode.window.onDidStartTerminalShellExecution(started),
    vscode.window.onDidEndTerminalShellExecution(ended),
    { dispose: () => clearTimeout(timer) },
  );
}

/** Passes the output of a command to `take` until the command ends. */
async function readOutput(execution: vscode.TerminalShellExecution, take: (text: string) => void): Promise<void> {
  for await (const text of execution.read()) {
    take(text);
  }
}

function toWire(terminal: vscode.Terminal, state: State): Terminal {
  const cwd = workingDirectory(terminal);
  return {
    id: state.id,
    name: terminal.name,
    isBusy: state.running !== undefined,
    ...(state.command !== undefined && { command: state.command }),
    ...(cwd !== undefined && { cwd }),
    ...(state.exitCode !== undefined && { exitCode: state.exitCode }),
    ...(state.output !== "" && { newOutput: state.output }),
    ...(state.pid !== undefined && { pid: state.pid }),
  };
}

/** Returns the working directory, or the initial one without shell integration. */
function workingDirectory(terminal: vscode.Terminal): string | undefined {
  const now = terminal.shellIntegration?.cwd?.fsPath;
  if (now !== undefined) {
    return now;
  }
  const options = terminal.creationOptions;
  const initial = "cwd" in options ? options.cwd : undefined;
  return typeof initial === "string" ? initial : initial?.fsPath;
}
