// The gateway under test, a provider on loopback, and requests between them.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { SIGHTLINE } from "../agents/workspace.mjs";

/** Why the tests cannot run, or nothing. */
export const MISSING = process.env.CI || existsSync(join(dirname(SIGHTLINE), "sightline-gateway")) ? undefined : "sightline-gateway is not built; run cargo build -p sightline -p sightline-gateway";

export class Gateway {
  /** Starts a gateway with a data directory, which is a new one unless given. */
  static async start(options = [], { folder = mkdtempSync(join(tmpdir(), "sightline-gateway-")), env = {} } = {}) {
    const gateway = new Gateway();
    gateway.folder = folder;
    gateway.child = spawn(SIGHTLINE, ["gateway", "--storage", join(folder, "data"), ...options], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    gateway.output = "";
    gateway.child.stderr.on("data", (data) => (gateway.output += data));
    gateway.exited = new Promise((resolve) => gateway.child.once("exit", resolve));
    const line = await new Promise((resolve) => {
      const lines = createInterface(gateway.child.stdout);
      lines.once("line", resolve);
      lines.once("close", () => resolve(undefined));
    });
    gateway.url = line && JSON.parse(line).url;
    return gateway;
  }

  /** Sends a request to a provider. */
  send(upstream, path, options = {}) {
    return send(`${this.url}/${upstream}${path}`, options);
  }

  /** Kills the gateway, and keeps its data. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  async close() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Sends a request. Returns the response, with its whole body. `onChunk` sees its parts as they come. */
export function send(url, { method = "POST", headers = {}, body, onChunk, onSent } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: body === undefined ? headers : { "content-type": "application/json", ...headers }, agent: false }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => {
        chunks.push(chunk);
        onChunk?.(chunk, sent);
      });
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        resolve({ status: response.statusCode, headers: response.headers, bytes, text: bytes.toString(), json: () => JSON.parse(bytes.toString()) });
      });
    });
    sent.on("error", reject);
    onSent?.(sent);
    sent.end(typeof body === "object" && !Buffer.isBuffer(body) ? JSON.stringify(body) : body);
  });
}

/** A provider that keeps requests, and answers by a function. */
export class Provider {
  static async start(answer = (_, response) => response.end("{}")) {
    const provider = new Provider();
    provider.requests = [];
    provider.answer = answer;
    provider.server = createServer(async (incoming, response) => {
      const chunks = [];
      try {
        for await (const chunk of incoming) chunks.push(chunk);
      } catch {
        return;
      }
      const { method, url, headers, rawHeaders } = incoming;
      const received = { method, url, headers, rawHeaders, bytes: Buffer.concat(chunks) };
      provider.requests.push(received);
      provider.answer(received, response);
    });
    await new Promise((resolve) => provider.server.listen(0, "127.0.0.1", resolve));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Returns a frame of zstd with one block that is not compressed: Node 20 cannot write others. */
export function zstd(text) {
  const bytes = Buffer.from(text);
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32LE(bytes.length, 5);
  // The last block, raw.
  head.writeUIntLE((bytes.length << 3) | 1, 9, 3);
  return Buffer.concat([head, bytes]);
}
