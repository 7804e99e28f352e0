// MCP servers on the screen Health: five real ones of tests/provide/mcp, used by a client.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

import { scenario, show, until } from "./harness.mjs";

const PROVIDED = path.resolve(import.meta.dirname, "../../target/mcp");
const NODE = path.join(PROVIDED, "node/node_modules/.bin");
const PYTHON = path.join(PROVIDED, "python/bin");

/** The commands of the servers. */
function commands(folder) {
  return {
    everything: [path.join(NODE, "mcp-server-everything")],
    files: [path.join(NODE, "mcp-server-filesystem"), folder],
    memory: [path.join(NODE, "mcp-server-memory")],
    git: [path.join(PYTHON, "mcp-server-git"), "--repository", folder],
    time: [path.join(PYTHON, "mcp-server-time"), "--local-timezone", "UTC"],
  };
}

/** A client of `sightline mcp`. */
class Client {
  constructor(project) {
    this.child = project.spawn(["mcp"]);
    this.child.stderr.resume();
    this.waiting = new Map();
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
    });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  async request(method, params) {
    const id = this.waiting.size + 1;
    const answered = new Promise((resolve) => this.waiting.set(id, resolve));
    this.send({ id, method, params });
    return await answered;
  }

  async initialize() {
    await this.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } });
    this.send({ method: "notifications/initialized" });
  }

  stop() {
    this.child.kill();
  }
}

if (existsSync(path.join(PROVIDED, "provided"))) {
  scenario("five real MCP servers are shown, switched, restarted and trusted as by the command line", async ({ browser, project, start, keep }) => {
    const shop = await project({ "a.txt": "alpha\n", ".mcp.json": JSON.stringify({ mcpServers: { shared: { command: path.join(NODE, "mcp-server-everything") } } }) });
    execFileSync("git", ["init", "-q", shop.folder], { env: shop.env });
    for (const [name, command] of Object.entries(commands(shop.folder))) {
      shop.run(["mcp", "add", name, "--", ...command]);
    }
    const page = await browser.open((await start(shop)).address);
    await show(page, "health");
    const row = (name) => page.locator(`[data-server=${name}]`);
    const listed = (name) => JSON.parse(shop.run(["mcp", "list", "--json"])).find((server) => server.name === name);
    for (const name of Object.keys(commands(""))) {
      await row(name).getByText("started by the next call").waitFor();
    }
    const client = keep(new Client(shop), (one) => one.stop());
    await client.initialize();
    await until("the tools of all servers", async () => {
      const { result } = await client.request("tools/list", {});
      return Object.keys(commands("")).every((name) => result.tools.some((tool) => tool.name.startsWith(`${name}__`)));
    });
    await client.request("tools/call", { name: "time__get_current_time", arguments: { timezone: "UTC" } });
    for (const name of Object.keys(commands(""))) {
      await row(name).getByText(/^running · since .* tools?\b/).waitFor();
      assert.equal(listed(name).state, "ready", name);
    }
    await row("time").getByText("1 call").waitFor();

    // The log is that of the command line.
    await row("files").getByRole("button", { name: "Log" }).click();
    const log = await row("files").locator("pre").textContent();
    assert.equal(log.trim(), shop.run(["mcp", "log", "files"]).trim());
    assert.notEqual(log, "Nothing yet.");

    // A restart is one of the process.
    const { pid } = listed("memory");
    await row("memory").getByRole("button", { name: "Restart" }).click();
    await until("another process", async () => {
      await client.request("tools/call", { name: "memory__read_graph", arguments: {} });
      return ![undefined, pid].includes(listed("memory").pid);
    });

    // Switched off here, it is off for the client and on the command line, and on again.
    const offered = async () => (await client.request("tools/list", {})).result.tools.some((tool) => tool.name.startsWith("git__"));
    await row("git").getByRole("button", { name: "Disable" }).click();
    await row("git").getByText(/^off/).waitFor();
    assert.equal(listed("git").state, "disabled");
    await until("git to be gone", async () => !(await offered()));
    await row("git").getByRole("button", { name: "Enable" }).click();
    await until("git to be offered", offered);

    // A server of the project runs after it was trusted.
    await row("shared").getByText("not trusted: never started").waitFor();
    assert.equal(listed("shared").state, "untrusted");
    await row("shared").getByRole("button", { name: "Trust" }).click();
    await row("shared").getByRole("button", { name: "Trust" }).waitFor({ state: "detached" });
    assert.notEqual(listed("shared").state, "untrusted");
    assert.deepEqual(page.problems, []);
  });
} else {
  console.error("tests/page: the MCP servers of tests/provide/mcp are not there");
}
