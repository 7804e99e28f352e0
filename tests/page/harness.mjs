// Starts `sightline ui` for a project and opens it in a browser.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { test } from "node:test";

import { chromium } from "playwright-core";

import { history, PROGRAM, Project, SHOP } from "./project.mjs";

export { PROGRAM, Project };

/** Timeout for anything to appear, in milliseconds. Generous for slow, busy machines. */
export const PATIENCE = 60_000;

/** Whether pages are connected by messages, as in the webview of an editor, in place of HTTP. */
const OVER_MESSAGES = process.env.SIGHTLINE_PAGE_TRANSPORT === "messages";

/** A running `sightline ui`. */
export class Ui {
  constructor(project, child, address) {
    this.project = project;
    this.child = child;
    this.address = address;
    this.origin = new URL(address).origin;
    this.token = new URL(address).hash.slice(1);
  }

  static async start(project, args = []) {
    const child = project.spawn(["ui", "--no-open", ...args]);
    const errors = child.stderr.setEncoding("utf8").toArray();
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /http:\/\/127\.0\.0\.1:\d+\/#\S+/.exec(line)?.[0];
      if (address) {
        return new Ui(project, child, address);
      }
    }
    throw new Error(`sightline ui ended: ${(await errors).join("")}`);
  }

  /** Sends a request as the page does. */
  async rpc(method, params = {}) {
    const answer = await fetch(`${this.origin}/rpc`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ method, params }),
    });
    return await answer.json();
  }

  async stop(signal = "SIGTERM") {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = once(this.child, "exit");
      this.child.kill(signal);
      await ended;
    }
  }
}

/** A browser with what went wrong in its pages. */
export class Browser {
  static async start() {
    const browser = new Browser();
    browser.chromium = await chromium.launch({
      executablePath: process.env.SIGHTLINE_CHROMIUM,
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
      timeout: PATIENCE,
    });
    return browser;
  }

  /** Opens an address. `requests` of the page are all URLs that it asked for, `problems` its errors and violations of the policy. */
  async open(address, { width = 1280, height = 800, theme = "light", before } = {}) {
    const context = await this.chromium.newContext({ viewport: { width, height }, colorScheme: theme, permissions: ["clipboard-read", "clipboard-write"] });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.requests = [];
    page.problems = [];
    page.on("request", (request) => page.requests.push(request.url()));
    page.on("pageerror", (error) => page.problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().includes("ERR_CONNECTION_REFUSED")) {
        page.problems.push(message.text());
      }
    });
    if (process.env.SIGHTLINE_UI_ASSETS) {
      await page.route(/:\d+\/(index\.html|ui\.js|ui\.css)?$/, (route) => replace(route, process.env.SIGHTLINE_UI_ASSETS));
    }
    await before?.(page);
    const { origin, hash } = new URL(address);
    if (OVER_MESSAGES && hash) {
      await connectByMessages(page, { origin, token: hash.slice(1) });
    }
    await page.goto(OVER_MESSAGES ? origin : address);
    await page.getByTestId("nav-timeline").waitFor();
    return page;
  }

  async stop() {
    await this.chromium.close();
  }
}

/** Connects the page as an extension does. Its requests and events are those of `sightline ui`. */
export async function connectByMessages(page, { origin, token }, isMissing = () => false) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  await page.exposeFunction("forward", async (method, params) => {
    if (isMissing(method)) {
      return { error: { code: -32601, message: "no such request" } };
    }
    const answer = await fetch(`${origin}/rpc`, { method: "POST", headers, body: JSON.stringify({ method, params }) });
    return await answer.json();
  });
  await page.addInitScript(() => {
    window.acquireVsCodeApi = () => ({
      postMessage: ({ id, method, params }) => void window.forward(method, params).then((answer) => window.postMessage({ id, ...answer })),
    });
  });
  await page.addInitScript({ path: path.join(import.meta.dirname, "../../clients/vscode/src/webview/host.js") });
  const { body } = await fetch(`${origin}/events`, { headers });
  const send = async () => {
    for await (const line of createInterface({ input: Readable.fromWeb(body) })) {
      // The page may be loading, or be closed.
      await page.evaluate((event) => window.postMessage({ event }), line && JSON.parse(line).event).catch(() => {});
    }
  };
  // The stream ends with the server.
  send().catch(() => {});
}

/** Answers with a file of `folder` in place of the embedded one, so that the page is tested without building the program. */
async function replace(route, folder) {
  const response = await route.fetch();
  const body = await readFile(path.join(folder, path.basename(new URL(route.request().url()).pathname) || "index.html"));
  const { "content-length": _, ...headers } = response.headers();
  await route.fulfill({ response, headers, body });
}

/** The row of a turn. */
export function turn(page, name) {
  return page.locator(`[data-testid=turn][data-name="${name}"]`);
}

/** Opens a screen by its link. */
export async function show(page, screen) {
  await page.getByTestId(`nav-${screen}`).click();
  await page.locator(`[data-testid=nav-${screen}][aria-current=page]`).waitFor();
}

/** Opens the page of a shop with some history, and the preview of a restore to before its first turn. */
export async function openRestore({ browser, project, start }) {
  const shop = await project(SHOP);
  await history(shop);
  const ui = await start(shop);
  const page = await browser.open(ui.address);
  await turn(page, "claude-1.1").click();
  await page.getByTestId("restore").click();
  await page.getByTestId("confirm-restore").waitFor();
  return { shop, ui, page };
}

/** Waits until `check` returns a truthy value, and returns it. */
export async function until(what, check) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const value = await check();
    if (value) {
      return value;
    }
    assert.ok(Date.now() < end, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Reads a file of the project, or returns undefined. */
export async function read(project, name) {
  return await readFile(path.join(project.folder, name), "utf8").catch(() => undefined);
}

/** Defines a test that closes what it opened. With `http`, it is about requests that a page in an editor does not send. */
export function scenario(name, run, { http = false } = {}) {
  test(name, { skip: http && OVER_MESSAGES }, async () => {
    const opened = [];
    const keep = (one, close) => {
      opened.unshift(() => close(one));
      return one;
    };
    try {
      const browser = keep(await Browser.start(), (one) => one.stop());
      await run({
        browser,
        project: async (files, options) => keep(await Project.create(files, options), (one) => one.remove()),
        start: async (project, args) => keep(await Ui.start(project, args), (one) => one.stop()),
        keep,
      });
    } finally {
      for (const close of opened) {
        await close();
      }
    }
  });
}
