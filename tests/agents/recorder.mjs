// Records what an agent sends to the editor by its IDE protocol: a relay between the two, to
// which the files of the editor are changed to point.

import { chmodSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, request as httpRequest } from "node:http";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TRANSCRIPTS = fileURLToPath(new URL("../transcripts/bridges", import.meta.url));

export class Recorder {
  #workspace;
  /** What is replaced in the transcript, by placeholder. */
  #secrets = {};
  #files = [];
  #steps = [];
  #connections = new Map();
  #relay;

  /** Puts the relay between the editor and the agents that it waits for in a folder. */
  static async start(workspace, folder) {
    const recorder = new Recorder();
    recorder.#workspace = workspace;
    const names = readdirSync(folder).filter((name) => !name.startsWith("."));
    const lock = names.find((name) => /\.(lock|json)$/.test(name));
    if (lock) await recorder.#relayHttp(folder, lock);
    else await recorder.#relayFrames(join(folder, names[0]));
    return recorder;
  }

  /** Writes the transcript, with placeholders for what differs from machine to machine. */
  save(agent, version, setting) {
    // An agent may try to connect again after the editor has quit.
    const steps = this.#steps.filter(({ head, status }) => !head || status).map((step) => JSON.stringify(step));
    const head = JSON.stringify({ agent, version, setting }, null, 2).slice(0, -2);
    let text = `${head},\n  "steps": [\n    ${steps.join(",\n    ")}\n  ]\n}\n`;
    const { project, home, folder } = this.#workspace;
    const placeholders = { ...this.#secrets, "{root}": project, "{home}": home, "{folder}": folder };
    for (const [placeholder, value] of Object.entries(placeholders)) text = text.replaceAll(value, placeholder);
    text = text.replace(/"pid":\d+/g, '"pid":1').replace(/(Sec-WebSocket-Key: )[^"]+/gi, "$1dGhlIHNhbXBsZSBub25jZQ==");
    text = text.replace(/(PID: )\d+/g, (_, name) => `${name}1`);
    const ids = [...new Set(text.match(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g))];
    ids.forEach((id, at) => (text = text.replaceAll(id, `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`)));
    writeFileSync(join(TRANSCRIPTS, `${agent}.json`), text);
  }

  close() {
    this.#relay.close();
    for (const file of this.#files) rmSync(file, { force: true });
  }

  /** Adds a step, in the order in which agents send. */
  #add(socket, step) {
    if (!this.#connections.has(socket)) this.#connections.set(socket, this.#connections.size);
    const added = { connection: this.#connections.get(socket), ...step };
    this.#steps.push(added);
    return added;
  }

  async #relayHttp(folder, name) {
    const path = join(folder, name);
    const found = JSON.parse(readFileSync(path, "utf8"));
    const port = found.port ?? (found.socketPath ? undefined : Number.parseInt(name));
    const target = port ? { host: "127.0.0.1", port } : { socketPath: found.socketPath };
    this.#relay = createHttpServer((request, response) => this.#forward(target, request, response));
    this.#relay.on("upgrade", (request, socket) => this.#upgrade(target, request, socket));
    const listening = port ? [0, "127.0.0.1"] : [`${found.socketPath}.relay`];
    await new Promise((resolve) => this.#relay.listen(...listening, resolve));
    const own = this.#relay.address().port;
    const file = join(folder, port ? name.replace(String(port), String(own)) : name);
    if (found.port) found.port = own;
    if (found.socketPath) found.socketPath = listening[0];
    rmSync(path);
    writeFileSync(file, JSON.stringify(found), { mode: 0o600 });
    this.#files.push(file);
    const token = found.authToken ?? found.headers.Authorization.split(" ")[1];
    this.#secrets["{token}"] = token;
    if (port) this.#secrets["{port}"] = String(own);
  }

  /** Returns the headers of a request for the editor. */
  #headers(target, { rawHeaders }) {
    const isHost = (at) => target.port && /^host$/i.test(rawHeaders[at - 1] ?? "") && at % 2 === 1;
    return rawHeaders.map((text, at) => (isHost(at) ? `127.0.0.1:${target.port}` : text));
  }

  /** Returns the step of a request: its first line and headers, as sent. */
  #head({ method, url, rawHeaders }) {
    const lines = [`${method} ${url} HTTP/1.1`];
    for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
    return { head: lines };
  }

  async #forward(target, request, response) {
    const step = this.#add(request.socket, this.#head(request));
    const body = await collect(request);
    if (body.length > 0) step.body = JSON.parse(body);
    const { method, url: path } = request;
    const forwarded = httpRequest({ ...target, method, path, headers: this.#headers(target, request), setHost: false }, async (answer) => {
      step.status = answer.statusCode;
      response.writeHead(answer.statusCode, answer.headers);
      if (/event-stream/.test(answer.headers["content-type"])) {
        response.flushHeaders();
        answer.on("error", () => response.destroy());
        response.on("close", () => answer.destroy());
        return answer.pipe(response);
      }
      const text = await collect(answer);
      if (text.length > 0) step.answer = outcome(JSON.parse(text));
      response.end(text);
    });
    forwarded.on("error", () => response.destroy());
    forwarded.end(body);
  }

  #upgrade(target, request, socket) {
    const step = this.#add(socket, this.#head(request));
    const editor = connect(target);
    const headers = this.#headers(target, request);
    const lines = [step.head[0]];
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
    editor.write(`${lines.join("\r\n")}\r\n\r\n`);
    const calls = new Map();
    const fromAgent = webSocketReader((message) => {
      const sent = this.#add(socket, { message });
      if (message.id !== undefined && message.method) calls.set(message.id, sent);
    });
    let answered = Buffer.alloc(0);
    const fromEditor = webSocketReader((message) => {
      const sent = calls.get(message.id);
      if (sent && !message.method) sent.answer = outcome(message);
    });
    socket.on("data", fromAgent);
    editor.on("data", (data) => {
      if (step.status) return fromEditor(data);
      answered = Buffer.concat([answered, data]);
      const end = answered.indexOf("\r\n\r\n");
      if (end < 0) return;
      step.status = Number(answered.toString("latin1").split(" ")[1]);
      fromEditor(answered.subarray(end + 4));
    });
    relay(socket, editor);
  }

  /** Codex: a socket, and frames that begin with their length. */
  async #relayFrames(path) {
    const real = `${path}.editor`;
    renameSync(path, real);
    this.#files.push(path, real);
    this.#relay = createServer((socket) => {
      const editor = connect(real);
      const calls = new Map();
      socket.on("data", frameReader((message) => calls.set(message.requestId, this.#add(socket, { message }))));
      editor.on("data", frameReader((message) => {
        const sent = calls.get(message.requestId);
        if (sent) sent.answer = message.resultType;
      }));
      relay(socket, editor);
    });
    await new Promise((resolve) => this.#relay.listen(path, resolve));
    chmodSync(path, 0o600);
  }
}

/** Returns what a response says: `result`, or the code of its error. */
function outcome(message) {
  return message.error ? { error: message.error.code } : "result";
}

/** Passes everything on between two sockets. */
function relay(agent, editor) {
  for (const [from, to] of [[agent, editor], [editor, agent]]) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  }
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Returns a reader of the messages of one direction of a WebSocket, unfragmented and uncompressed. */
function webSocketReader(onMessage) {
  let data = Buffer.alloc(0);
  return (more) => {
    data = Buffer.concat([data, more]);
    for (;;) {
      if (data.length < 2) return;
      const isMasked = data[1] >= 0x80;
      let [length, at] = [data[1] & 0x7f, 2];
      if (length === 126) [length, at] = [data.length < 4 ? Infinity : data.readUInt16BE(2), 4];
      else if (length === 127) [length, at] = [data.length < 10 ? Infinity : Number(data.readBigUInt64BE(2)), 10];
      const start = at + (isMasked ? 4 : 0);
      if (data.length < start + length) return;
      const body = Buffer.from(data.subarray(start, start + length));
      if (isMasked) body.forEach((byte, index) => (body[index] = byte ^ data[at + (index % 4)]));
      if ((data[0] & 0x0f) === 1) onMessage(JSON.parse(body));
      data = data.subarray(start + length);
    }
  };
}

/** Returns a reader of frames that begin with their length, in four bytes. */
function frameReader(onMessage) {
  let data = Buffer.alloc(0);
  return (more) => {
    data = Buffer.concat([data, more]);
    while (data.length >= 4 && data.length >= 4 + data.readUInt32LE()) {
      const end = 4 + data.readUInt32LE();
      onMessage(JSON.parse(data.subarray(4, end)));
      data = data.subarray(end);
    }
  };
}
