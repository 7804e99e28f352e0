// A small editor: starts the language server and shares tabs and unsaved text with it.

import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export class Editor {
  #server;
  #folder;
  #pending = new Map();
  #nextId = 1;
  #received = Buffer.alloc(0);

  /** Starts the server and waits until it is initialized. */
  static async start(sightline, folder, env) {
    const editor = new Editor(sightline, folder, env);
    const uri = pathToFileURL(folder).href;
    await editor.request("initialize", {
      processId: process.pid,
      rootUri: uri,
      workspaceFolders: [{ uri, name: "workspace" }],
      capabilities: {},
    });
    editor.notify("initialized", {});
    return editor;
  }

  constructor(sightline, folder, env) {
    this.#folder = folder;
    this.#server = spawn(sightline, ["--stdio"], { cwd: folder, env, stdio: ["pipe", "pipe", "ignore"] });
    this.#server.stdout.on("data", (data) => this.#read(data));
  }

  /** Opens a file as the active tab. With `text`, it has unsaved changes. */
  open(name, text = undefined) {
    const uri = pathToFileURL(join(this.#folder, name)).href;
    const saved = readFileSync(join(this.#folder, name), "utf8");
    this.notify("textDocument/didOpen", { textDocument: { uri, languageId: "plaintext", version: 1, text: saved } });
    if (text !== undefined) {
      this.notify("textDocument/didChange", { textDocument: { uri, version: 2 }, contentChanges: [{ text }] });
    }
  }

  /** Tells the server which tabs are open; the first is active. */
  showTabs(...names) {
    const tabs = names.map((name, index) => ({ uri: pathToFileURL(join(this.#folder, name)).href, isActive: index === 0 }));
    this.notify("sightline/didChangeTabs", { tabs });
  }

  request(method, params) {
    const id = this.#nextId++;
    this.#send({ id, method, params });
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }

  notify(method, params) {
    this.#send({ method, params });
  }

  /** Shuts the server down and waits until it has exited. */
  async close() {
    const exited = new Promise((resolve) => this.#server.once("exit", resolve));
    await this.request("shutdown");
    this.notify("exit");
    await exited;
  }

  #send(message) {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  #read(data) {
    this.#received = Buffer.concat([this.#received, data]);
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.#received.subarray(0, end))[1]);
      if (this.#received.length < end + 4 + length) return;
      const message = JSON.parse(this.#received.subarray(end + 4, end + 4 + length));
      this.#received = this.#received.subarray(end + 4 + length);
      if (message.method !== undefined && message.id !== undefined) {
        this.#send({ id: message.id, result: null });
      } else if (message.method === undefined) {
        const { resolve, reject } = this.#pending.get(message.id);
        this.#pending.delete(message.id);
        if (message.error) reject(new Error(message.error.message));
        else resolve(message.result);
      }
    }
  }
}
