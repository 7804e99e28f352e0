// A real Neovim with the plugin, on a pseudo-terminal.

import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Terminal } from "./terminal.mjs";

const PLUGIN = fileURLToPath(new URL("../../clients/nvim", import.meta.url));

/** The program, or nothing if it is not provided. */
export function neovimProgram() {
  const program = resolve(process.env.SIGHTLINE_NVIM ?? fileURLToPath(new URL("../../target/neovim/bin/nvim", import.meta.url)));
  return existsSync(program) ? program : undefined;
}

export class Neovim {
  #socket;
  #workspace;
  #terminal;

  /** Starts Neovim in the project of a workspace, with these settings of the server. */
  static async start(workspace, settings, file) {
    const neovim = new Neovim();
    neovim.#workspace = workspace;
    neovim.#socket = join(workspace.run, "nvim.sock");
    const init = join(workspace.folder, "init.lua");
    const json = JSON.stringify(settings).replaceAll("]]", "] ]");
    writeFileSync(
      init,
      `vim.opt.swapfile = false
vim.opt.runtimepath:prepend(${JSON.stringify(PLUGIN)})
require("sightline").setup({ settings = vim.json.decode([[${json}]]) })
`,
    );
    const words = [neovimProgram(), "-u", init, "-i", "NONE", "--listen", neovim.#socket, file];
    neovim.#terminal = new Terminal(words, { cwd: workspace.project, env: workspace.env });
    const end = Date.now() + 20_000;
    while (neovim.evaluate("len(luaeval('vim.lsp.get_clients()'))") !== "1") {
      if (Date.now() > end) throw new Error(`the server does not start:\n${neovim.#terminal.text}`);
      await sleep(100);
    }
    return neovim;
  }

  /** Returns the value of an expression. */
  evaluate(expression) {
    return this.#remote("--remote-expr", expression)?.trim();
  }

  /** Types keys, in the notation of mappings. */
  keys(keys) {
    this.#remote("--remote-send", keys);
  }

  /** Quits without saving. */
  async quit() {
    this.keys("<C-\\><C-n>:qall!<CR>");
    await this.#terminal.exited;
  }

  /** What the terminal has shown. */
  get text() {
    return this.#terminal.text;
  }

  async close() {
    await this.#terminal?.close();
  }

  #remote(...args) {
    try {
      return execFileSync(neovimProgram(), ["--server", this.#socket, ...args], { env: this.#workspace.env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 10_000 });
    } catch {
      // Neovim does not listen yet, or has exited.
      return undefined;
    }
  }
}
