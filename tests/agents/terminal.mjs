// A program on a pseudo-terminal, by the `script` command of util-linux.

import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/** What programs ask a terminal, and its answers. */
const ANSWERS = [
  ["\x1b[6n", "\x1b[1;1R"],
  ["\x1b[c", "\x1b[?62;c"],
  ["\x1b[?u", "\x1b[?0u"],
  ["\x1b]10;?", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\"],
  ["\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"],
];

export class Terminal {
  #child;
  #received = "";

  constructor(words, { cwd, env }) {
    const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    const line = `stty rows 40 cols 120; exec ${quoted}`;
    this.#child = spawn("script", ["-qfec", line, "/dev/null"], { cwd, env, stdio: ["pipe", "pipe", "ignore"], detached: true });
    this.#child.stdin.on("error", () => {});
    this.#child.stdout.setEncoding("utf8").on("data", (data) => {
      this.#received += data;
      for (const [question, answer] of ANSWERS) if (data.includes(question)) this.#child.stdin.write(answer);
    });
    this.exited = new Promise((resolve) => this.#child.once("exit", resolve));
  }

  /** Everything that was shown, without spaces and escape sequences. */
  get text() {
    return this.#received
      .replace(/\x1b\][^\x07\x1b]*(\x07|\x1b\\)/g, "")
      .replace(/\x1b\[[0-9;?<>=]*[A-Za-z~]|\x1b[()][A-Z0-9]|\x1b[=>78DEHMNO]/g, "")
      .replace(/\s+/g, "");
  }

  /** Waits until the program has shown a text. */
  async expect(text, milliseconds = 60_000) {
    const end = Date.now() + milliseconds;
    while (!this.text.includes(text.replace(/\s+/g, ""))) {
      if (Date.now() > end) throw new Error(`the terminal does not show ${JSON.stringify(text)}:\n${this.text.slice(-3000)}`);
      await sleep(50);
    }
  }

  /** Types a text and Return, as slow as a person: programs take a burst for a paste. */
  async type(text) {
    for (const letter of text) {
      this.key(letter);
      await sleep(30);
    }
    await sleep(400);
    this.key("\r");
  }

  key(data) {
    this.#child.stdin.write(data);
  }

  /** Ends the program. */
  async close() {
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // It has exited.
    }
    await this.exited;
  }
}
