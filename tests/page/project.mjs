// A real project, in which agents are at work: their hooks are called as the agents call them.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** The program. */
export const PROGRAM = process.env.SIGHTLINE_SERVER ?? path.resolve(import.meta.dirname, "../../target/debug/sightline");

/** The names that agents have for the prompt, the call of a tool and the end of a turn. */
const EVENTS = {
  claude: ["UserPromptSubmit", "PreToolUse", "Stop"],
  codex: ["UserPromptSubmit", "PreToolUse", "Stop"],
  gemini: ["BeforeAgent", "BeforeTool", "AfterAgent"],
};

/** Their names for the tools that write a file and run a command. */
const TOOLS = { claude: ["Write", "Bash"], codex: ["Write", "Bash"], gemini: ["write_file", "run_shell_command"] };

/** A workspace folder with a home directory of the test. */
export class Project {
  constructor(home, folder) {
    this.home = home;
    this.folder = folder;
    // Only the variables that programs need: no settings, no git.
    this.env = { PATH: process.env.PATH, HOME: home, TMPDIR: path.join(home, "tmp"), LANG: "C.UTF-8", TZ: "UTC" };
  }

  /** Creates a project with `files` (name to text). */
  static async create(files, { name = "shop", config = "" } = {}) {
    const home = mkdtempSync(path.join(tmpdir(), "sightline-page-"));
    const project = new Project(home, path.join(home, name));
    await mkdir(path.join(home, "tmp"));
    await project.write(files);
    await mkdir(path.join(home, ".config/sightline"), { recursive: true });
    await writeFile(path.join(home, ".config/sightline/config.toml"), config);
    return project;
  }

  async write(files) {
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(this.folder, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }

  /** Runs the program in the folder, and returns what it prints. */
  run(args, input = "") {
    return execFileSync(PROGRAM, args, { cwd: this.folder, env: this.env, input, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["pipe", "pipe", "pipe"] });
  }

  /** Starts the program in the folder. */
  spawn(args) {
    return spawn(PROGRAM, args, { cwd: this.folder, env: this.env, stdio: ["pipe", "pipe", "pipe"] });
  }

  /** Calls a hook of an agent. Returns its answer, if it has one. */
  hook(agent, event, session, fields) {
    const input = JSON.stringify({ session_id: session, cwd: this.folder, hook_event_name: event, ...fields });
    const answer = this.run(["hook", event, "--agent", agent, "--checkpoints"], input);
    return answer === "" ? undefined : JSON.parse(answer);
  }

  /** Begins a turn of Claude Code before whose end the agent is gone. */
  interrupt(session, prompt, name) {
    const begin = JSON.stringify({ session_id: session, cwd: this.folder, prompt });
    const args = ["hook", "UserPromptSubmit", "--agent", "claude", "--checkpoints"];
    const agent = "const [program, input, ...args] = process.argv.slice(1); require('child_process').execFileSync(program, args, { input })";
    execFileSync(process.execPath, ["-e", agent, "--", PROGRAM, begin, ...args], { cwd: this.folder, env: this.env });
    this.hook("claude", "PreToolUse", session, { tool_name: "Write", tool_input: { file_path: path.join(this.folder, name), content: "" } });
  }

  /** Runs a turn: the prompt, an edit of `files` (a text or, to delete it, `null`), and the end. */
  async turn(session, prompt, files, { agent = "claude", end = true } = {}) {
    const [before, call, after] = EVENTS[agent];
    const [write, shell] = TOOLS[agent];
    this.hook(agent, before, session, { prompt });
    for (const [name, text] of Object.entries(files)) {
      const tool = text === null ? { tool_name: shell, tool_input: { command: `rm ${name}` } } : { tool_name: write, tool_input: { file_path: path.join(this.folder, name), content: text } };
      const answer = this.hook(agent, call, session, tool);
      assert.ok(!JSON.stringify(answer ?? {}).includes("deny"), JSON.stringify(answer));
      if (text === null) {
        rmSync(path.join(this.folder, name));
      } else {
        await this.write({ [name]: text });
      }
    }
    if (end) {
      this.hook(agent, after, session, {});
    }
  }

  /** Starts the server as an editor does, with `name` open. Returns a function that ends it. */
  async edit(name) {
    const server = this.spawn(["--stdio"]);
    const send = (message) => {
      const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
      server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
      server.stdin.write(body);
    };
    const uri = (file) => pathToFileURL(file).href;
    const file = path.join(this.folder, name);
    const initialized = once(server.stdout, "data");
    send({ id: 1, method: "initialize", params: { processId: null, rootUri: uri(this.folder), capabilities: {} } });
    await initialized;
    server.stdout.resume();
    send({ method: "initialized", params: {} });
    send({ method: "textDocument/didOpen", params: { textDocument: { uri: uri(file), languageId: "text", version: 1, text: await readFile(file, "utf8") } } });
    return async () => {
      const ended = once(server, "exit");
      server.kill();
      await ended;
    };
  }

  remove() {
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

/** A small shop, with secrets. */
export const SHOP = {
  "README.md": "# Shop\n\nSells things.\n",
  "src/cart.ts": "export function total(items: number[]): number {\n  let sum = 0;\n  for (const item of items) {\n    sum += item;\n  }\n  return sum;\n}\n",
  "src/parser.ts": Array.from({ length: 60 }, (_, index) => `export const rule${index} = ${index};\n`).join(""),
  "tests/cart.test.ts": "import { total } from \"../src/cart\";\n\ntest(\"total\", () => expect(total([1, 2])).toBe(3));\n",
  ".env": "STRIPE_KEY=sk_live_planted_secret_1\n",
  "deploy/prod.pem": "planted_secret_2\n",
  "notes/private.md": "planted_secret_3\n",
  ".clineignore": "# Not for agents\nnotes/\n",
};

/** Some history in the shop: three agents, the user, a restore. */
export async function history(project) {
  const parser = SHOP["src/parser.ts"];
  await project.turn("s1", "Fix the parser test, and keep the old rules working", {
    "src/parser.ts": parser.replace("rule7 = 7", "rule7 = 70").replace("rule40 = 40", "rule40 = 41"),
    "tests/parser.test.ts": "test(\"rule 7\", () => expect(rule7).toBe(70));\n",
  });
  await project.write({ "README.md": "# Shop\n\nSells things, and rents some.\n" });
  await project.turn("s1", "How does the cart compute its total?", {});
  await project.turn("c1", "Round the total to cents", { "src/cart.ts": SHOP["src/cart.ts"].replace("return sum", "return Math.round(sum * 100) / 100") }, { agent: "codex" });
  project.run(["checkpoint", "create", "--label", "before the new prices"]);
  await project.turn("g1", "Add prices per country", { "src/prices.ts": "export const prices = { de: 10, fr: 12 };\n", "src/cart.ts": "export const total = 0;\n" }, { agent: "gemini" });
  project.run(["checkpoint", "restore", "gemini-1.1", "--yes"]);
  await project.turn("s1", "Rename the test folder and drop the old readme", { "README.md": null, "docs/intro.md": "# Intro\n" });
}
