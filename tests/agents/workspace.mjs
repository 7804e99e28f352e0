// A temporary home and project for one agent, and the program under test.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** The program under test. */
export const SIGHTLINE = resolve(process.env.SIGHTLINE ?? join(REPOSITORY, "target/debug/sightline"));

/** Where `tests/provide/agents` puts the agents. */
const AGENTS = join(REPOSITORY, "target/agents");

/** The path of an agent's program, or nothing if it is not provided. */
export function agentProgram(name, path) {
  const program = join(AGENTS, name, "node_modules", path);
  return existsSync(program) ? program : undefined;
}

/** The version of an agent: that of the npm package with its program. */
export function agentVersion(program) {
  let folder = dirname(program);
  while (!existsSync(join(folder, "package.json")) || !packageVersion(folder)) folder = dirname(folder);
  return packageVersion(folder);
}

function packageVersion(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

/** Text of the file that the access rules deny. */
export const SECRET = "DENIED-CONTENT-7731";

/** Milliseconds after which an agent is stopped. */
const AGENT_TIMEOUT = 120_000;

export class Workspace {
  /** Creates a home, and a committed project with a rule, a denied file and an allowed file. */
  constructor(agent) {
    this.folder = mkdtempSync(join(tmpdir(), `sightline-${agent}-`));
    this.home = join(this.folder, "home");
    this.project = join(this.folder, "project");
    this.run = join(this.folder, "run");
    const bin = join(this.folder, "bin");
    for (const folder of [this.home, this.project, this.run, bin]) mkdirSync(folder, { mode: 0o700 });
    symlinkSync(SIGHTLINE, join(bin, "sightline"));
    // No agent reaches a real service.
    const proxy = "http://127.0.0.1:9";
    this.env = {
      PATH: `${bin}:${process.env.PATH}`,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      SHELL: "/bin/bash",
      HOME: this.home,
      TMPDIR: this.run,
      XDG_RUNTIME_DIR: this.run,
      XDG_CONFIG_HOME: join(this.home, ".config"),
      XDG_DATA_HOME: join(this.folder, "data"),
      XDG_STATE_HOME: join(this.folder, "state"),
      XDG_CACHE_HOME: join(this.folder, "cache"),
      NVIM_LOG_FILE: join(this.folder, "nvim.log"),
      HTTP_PROXY: proxy,
      HTTPS_PROXY: proxy,
      NO_PROXY: "127.0.0.1,localhost",
      no_proxy: "127.0.0.1,localhost",
      NO_UPDATE_NOTIFIER: "1",
      npm_config_fetch_retries: "0",
    };
    writeFileSync(join(this.project, "notes.txt"), "saved text\n");
    writeFileSync(join(this.project, "secret.txt"), `${SECRET}\n`);
    writeFileSync(join(this.project, ".clineignore"), "secret.txt\n");
    for (const args of [["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "start"]]) {
      execFileSync("git", args, { cwd: this.project, env: this.env });
    }
  }

  /** Writes a file below the home. */
  write(path, content) {
    const file = join(this.home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`);
  }

  /** Runs the program under test. Returns its exit code and output. */
  sightline(...args) {
    return this.spawn(SIGHTLINE, args, this.env);
  }

  /** Removes the program from the PATH, as if it was uninstalled, until `showProgram`. */
  hideProgram() {
    renameSync(join(this.folder, "bin/sightline"), join(this.folder, "hidden"));
  }

  showProgram() {
    renameSync(join(this.folder, "hidden"), join(this.folder, "bin/sightline"));
  }

  /** Runs an agent in the project until it exits. */
  agent(command, env = {}) {
    return this.spawn(command[0], command.slice(1), { ...this.env, ...env });
  }

  async spawn(program, args, env) {
    const child = spawn(program, args, { cwd: this.project, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), AGENT_TIMEOUT);
    const code = await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => resolve(code));
    });
    clearTimeout(timer);
    return { code, output };
  }

  /** Returns mode, and content or link target, of everything below the home. */
  homeSnapshot() {
    const entries = {};
    const read = (folder, prefix) => {
      for (const name of readdirSync(folder).sort()) {
        const path = join(folder, name);
        const stat = lstatSync(path);
        const mode = (stat.mode & 0o7777).toString(8);
        if (stat.isSymbolicLink()) entries[prefix + name] = `-> ${readlinkSync(path)}`;
        else if (stat.isDirectory()) {
          entries[prefix + name] = `folder ${mode}`;
          read(path, `${prefix}${name}/`);
        } else if (stat.isFile()) entries[prefix + name] = `${mode} ${readFileSync(path, "base64")}`;
      }
    };
    read(this.home, "");
    return entries;
  }

  /** Kills what an agent left running, and removes the folder. */
  close() {
    const mark = `HOME=${this.home}`;
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        if (environment.includes(mark)) process.kill(Number(pid), "SIGKILL");
      } catch {
        // The process has exited, or belongs to another user.
      }
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
