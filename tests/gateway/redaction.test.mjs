// Contents of denied files reach no provider, and everything else stays as it is.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { Gateway, MISSING, Provider, zstd } from "./gateway.mjs";

const KEY = "sk-live-51H8x9JkLmNoPqRs";
const LINE = "DENIED-CONTENT-7731";
const NOTES = "first line of the denied notes\nsecond line of the denied notes\n";
const LICENCE = "Permission is hereby granted, free of charge, to any person";
const SESSION = { "x-claude-code-session-id": "s-1" };

describe("redaction", { skip: MISSING }, () => {
  let folder, project, provider, gateway, options;

  const write = (path, text) => writeFileSync(join(project, path), text);
  const start = async () => (gateway = await Gateway.start(options, { folder }));

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "sightline-gateway-"));
    project = join(folder, "project");
    mkdirSync(join(project, "src"), { recursive: true });
    write(".env", `API_KEY=${KEY}\n`);
    write("secret.txt", `${LINE}\n${LICENCE}\n`);
    write("notes.md", NOTES);
    write("LICENSE", `${LICENCE}\n`);
    write("src/main.rs", "fn main() {}\n");
    write(".clineignore", "secret.txt\nnotes.md\nshort.txt\nlater/\n");
    write("short.txt", "hunter2\n");
    for (const args of [["init", "-q"], ["add", "LICENSE", "src"]]) execFileSync("git", args, { cwd: project });
    provider = await Provider.start();
    options = ["--root", project, "--upstream", `anthropic=${provider.url}`, "--upstream", `openai=${provider.url}`, "--upstream", `gemini=${provider.url}`];
    await start();
    assert.ok(gateway.url, gateway.output);
  });
  afterEach(async () => {
    await gateway.close();
    provider.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Sends a body, and returns what the provider got, as text and with the number of changed strings. */
  async function through(body, { upstream = "anthropic", path = "/v1/messages", headers = SESSION } = {}) {
    provider.requests = [];
    const response = await gateway.send(upstream, path, { headers, body });
    assert.equal(response.status, 200, response.text);
    const text = provider.requests[0].bytes.toString();
    return { text, json: () => JSON.parse(text), changed: Number(response.headers["x-sightline-redacted"] ?? 0) };
  }

  const user = (content) => ({ model: "m", messages: [{ role: "user", content }] });
  const leaks = (text) => [KEY, LINE, "hunter2", ...NOTES.trim().split("\n")].filter((secret) => text.includes(secret));

  test("values and lines, in each form that agents print", async () => {
    const forms = {
      read: `1\t${LINE}\n2\tok`,
      grep: `secret.txt:1:${LINE}`,
      cline: JSON.stringify([{ query: `${project}/x`, result: `1 | ${LINE}\n2 | ok`, success: true }]),
      "cline, one line": JSON.stringify([{ query: "x", result: `1 | ${LINE}`, success: true }]),
      codex: `Script completed\nWall time 0.1\nOutput:\n${JSON.stringify({ output: `${NOTES}${LINE}\n` })}`,
      "codex, twice": JSON.stringify({ text: JSON.stringify({ output: NOTES }) }),
      opencode: `<path>x</path>\n<content>\n1: ${LINE}\n2: ok\n</content>`,
      copilot: `${LINE}\n<shellId: 0 completed with exit code 0>`,
      shell: `API_KEY=${KEY}`,
      base64: Buffer.from(`API_KEY=${KEY}`).toString("base64"),
      url: `https://x/?key=${KEY}&a=1`,
      numbered: `${NOTES.replace(/^/gm, "   7\u2192")}`,
    };
    for (const [name, form] of Object.entries(forms)) {
      const { text, changed, json } = await through(user([{ type: "text", text: form }]));
      assert.deepEqual(leaks(text), [], `${name}: ${text}`);
      assert.ok(!text.includes(Buffer.from(KEY).toString("base64").slice(4, 20)), name);
      assert.equal(changed, 1, name);
      assert.match(json().messages[0].content[0].text, /\[hidden: \.env\]|\[Sightline: the contents of (secret\.txt|notes\.md) are hidden from agents by \.clineignore:\d+\.\]/, name);
    }
  });

  test("what was hidden is in the log of decisions, once", async () => {
    const headers = { ...SESSION, "user-agent": "claude-cli/2.1.330 (external, cli)" };
    for (let times = 0; times < 2; times += 1) await through(user([{ type: "text", text: `key ${KEY}` }]), { headers });
    // An agent that is not known.
    await through(user([{ type: "text", text: LINE }]));
    const log = readFileSync(join(folder, "data", "decisions", "log.jsonl"), "utf8");
    const logged = log.trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(logged.map(({ agent, door, verdict, subject }) => [agent, door, verdict, subject]), [
      ["claude", "gateway", "redacted", ".env"],
      [undefined, "gateway", "redacted", "secret.txt"],
    ]);
    assert.ok(!log.includes(KEY));
  });

  test("in each place of each API, also in blocks of unknown types", async () => {
    const bodies = [
      ["anthropic", "/v1/messages", { system: [{ type: "text", text: LINE }], messages: [{ role: "user", content: LINE }, { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: [{ type: "text", text: LINE }] }, { type: "mcp_new_result", any: { thing: [LINE] } }] }], tools: [{ name: "x", description: LINE }] }, 5],
      ["anthropic", "/v1/messages/count_tokens", user(LINE), 1],
      ["openai", "/v1/responses", { instructions: LINE, input: [{ type: "message", role: "user", content: [{ type: "input_text", text: LINE }] }, { type: "custom_tool_call_output", call_id: "c", output: [{ type: "input_text", text: LINE }] }] }, 3],
      ["openai", "/v1/chat/completions", { messages: [{ role: "system", content: LINE }, { role: "tool", tool_call_id: "t", content: LINE }] }, 2],
      ["gemini", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", { systemInstruction: { parts: [{ text: LINE }] }, contents: [{ role: "user", parts: [{ functionResponse: { id: "1", name: "r", response: { output: LINE } } }] }] }, 2],
    ];
    for (const [upstream, path, body, expected] of bodies) {
      const { text, changed } = await through(body, { upstream, path });
      assert.deepEqual(leaks(text), [], path);
      assert.equal(changed, expected, path);
    }
  });

  test("a request without them keeps its bytes, and so does everything around them", async () => {
    const clean = `{ "messages":[{"content":"h\\u00e9 \\/ ${LICENCE}","role":"user"}],"x": 1.50e+3, "x":null }`;
    assert.equal((await through(clean)).text, clean);
    const body = clean.replace("h\\u00e9", `${LINE}\\nh\\u00e9`).replace("1.50e+3", `1.50e+3, "y": ["h\\u00e9"]`);
    const { text } = await through(body);
    assert.deepEqual(leaks(text), []);
    assert.ok(text.startsWith(`{ "messages":[{"content":"`) && text.endsWith(`","role":"user"}],"x": 1.50e+3, "y": ["h\\u00e9"], "x":null }`), text);
  });

  test("what the model wrote stays, and opaque fields", async () => {
    const body = {
      messages: [
        { role: "assistant", content: [{ type: "thinking", thinking: LINE, signature: LINE }, { type: "text", text: LINE }, { type: "tool_use", id: "1", name: "Bash", input: { command: LINE } }] },
        { role: "assistant", content: null, reasoning_content: LINE, tool_calls: [{ id: "2", type: "function", function: { name: "x", arguments: LINE } }] },
      ],
      input: [{ type: "reasoning", encrypted_content: LINE, summary: [LINE] }, { type: "function_call", call_id: "1", name: "x", arguments: LINE }],
      contents: [{ role: "model", parts: [{ text: LINE, thoughtSignature: LINE }] }],
    };
    const { text, changed } = await through(body);
    assert.equal(text, JSON.stringify(body));
    assert.equal(changed, 0);
  });

  test("the whole result of a call that names a denied file", async () => {
    for (const path of ["short.txt", join(project, "short.txt"), "./src/../short.txt"]) {
      const { json } = await through({
        messages: [
          { role: "assistant", content: [{ type: "tool_use", id: "1", name: "Read", input: { file_path: path } }, { type: "tool_use", id: "2", name: "Read", input: { file_path: "src/main.rs" } }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "hunter2" }, { type: "tool_result", tool_use_id: "2", content: "hunter2" }] },
        ],
      });
      const [denied, allowed] = json().messages[1].content;
      assert.equal(denied.content, "[Sightline: the contents of short.txt are hidden from agents by .clineignore:3.]", path);
      assert.equal(allowed.content, "hunter2");
    }
    const of = async (name, input) => {
      const call = { role: "assistant", content: [{ type: "tool_use", id: "1", name, input }] };
      const { json } = await through({ messages: [call, { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: JSON.stringify(input) }] }] });
      return json().messages[1].content[0].content;
    };
    for (const [name, input] of [
      ["Bash", { command: "base64 ./short.txt" }],
      ["shell", { command: ["bash", "-lc", "xxd short.txt"] }],
      ["exec_command", { cmd: `cat ${join(project, "short.txt")}` }],
      ["run_commands", { commands: ["head -1 short.txt"] }],
      ["read_files", { files: [{ path: "src/main.rs" }, "short.txt"] }],
      ["mcp__fs__read_text_file", { path: "short.txt" }],
    ]) {
      assert.match(await of(name, input), /^\[Sightline: the contents of short\.txt are hidden from agents by \.clineignore:3\.\]$/, name);
    }
    // What else they print is of use.
    for (const [name, input] of [
      ["Bash", { command: "cat src/main.rs" }],
      ["Bash", { command: "cat short.txt; cargo test" }],
      ["Bash", { command: "grep -r main ." }],
      ["Bash", { command: "ls -l short.txt" }],
    ]) {
      assert.equal(await of(name, input), JSON.stringify(input), input.command);
    }
    const { json } = await through(
      { contents: [{ role: "model", parts: [{ functionCall: { name: "read_file", args: { file_path: "short.txt" } } }] }, { role: "user", parts: [{ functionResponse: { name: "read_file", response: { output: "hunter2" } } }] }] },
      { upstream: "gemini", path: "/v1beta/models/g:generateContent" },
    );
    assert.match(json().contents[1].parts[0].functionResponse.response.output, /hidden from agents/);
  });

  test("the prefix of a session stays the same, byte for byte, whatever happens", async () => {
    const messages = [];
    const sent = [];
    const turn = async (content) => {
      messages.push({ role: "user", content }, { role: "assistant", content: `answer ${messages.length}` });
      const { text } = await through({ messages: messages.slice(0, -1) });
      const prefix = text.slice(0, -"]}".length);
      for (const earlier of sent) assert.ok(prefix.startsWith(earlier), `${prefix}\n${earlier}`);
      sent.push(prefix);
      return text;
    };
    await turn(`look: ${LINE}`);
    await turn(`1\t${LINE}\n2\tthe rest`);
    await turn("a line that becomes denied later, by its content");
    // The secret changes, and a denied file gets what was sent already.
    write("secret.txt", "another secret line\na line that becomes denied later, by its content\n");
    await turn("another secret line");
    assert.deepEqual(leaks(await turn("x")), []);
    // Loosened rules do not show what was hidden.
    write(".clineignore", "");
    await new Promise((resolve) => setTimeout(resolve, 700));
    await turn("y");
    await gateway.kill();
    await start();
    const text = await turn("z");
    assert.doesNotMatch(text, /DENIED-CONTENT|another secret line/);
    const folder = join(gateway.folder, "data/gateway/tasks");
    for (const name of readdirSync(folder)) assert.doesNotMatch(readFileSync(join(folder, name), "utf8"), /DENIED|another secret|the rest|becomes denied/);
  });

  test("tightened rules hide from now on, and new denied files at once", async () => {
    const text = "a line of the file that is denied soon";
    write("soon.txt", `${text}\n`);
    assert.match((await through(user(text))).text, /denied soon/);
    appendFileSync(join(project, ".clineignore"), "soon.txt\n");
    assert.doesNotMatch((await through(user(text))).text, /denied soon/);
    mkdirSync(join(project, "later/deep"), { recursive: true });
    write("later/deep/file.txt", "a line of a file in a denied folder\n");
    assert.doesNotMatch((await through(user("a line of a file in a denied folder"))).text, /denied folder/);
    write("src/.clineignore", "inner.txt\n");
    write("src/inner.txt", "a line of a file with rules of its folder\n");
    assert.doesNotMatch((await through(user("a line of a file with rules of its folder"))).text, /rules of its/);
    write(".env", `API_KEY=${KEY}\nTOKEN=ghx_a1B2c3D4e5F6g7\n`);
    assert.doesNotMatch((await through(user("ghx_a1B2c3D4e5F6g7"))).text, /ghx_/);
  });

  test("a line that another file has too is not hidden, if git does not track it either", async () => {
    await gateway.kill();
    rmSync(join(project, ".git"), { recursive: true });
    write("other.txt", "a line of two files\n");
    write("secret.txt", `${LINE}\na line of two files\n`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await start();
    const { text } = await through(user(`${LINE}\na line of two files\n${LICENCE}`));
    assert.deepEqual(leaks(text), []);
    assert.ok(text.includes("a line of two files") && text.includes(LICENCE), text);
  });

  test("a copy of a denied file does not make its lines public", async () => {
    copyFileSync(join(project, "secret.txt"), join(project, "copy.txt"));
    assert.deepEqual(leaks((await through(user(LINE))).text), []);
  });

  test("compressed requests are compressed again", async () => {
    provider.requests = [];
    const body = JSON.stringify(user(LINE));
    await gateway.send("anthropic", "/v1/messages", { headers: { ...SESSION, "content-encoding": "gzip" }, body: gzipSync(body) });
    assert.match(gunzipSync(provider.requests[0].bytes).toString(), /hidden from agents/);
    await gateway.send("anthropic", "/v1/messages", { headers: { ...SESSION, "content-encoding": "zstd" }, body: zstd(body) });
    assert.equal(provider.requests[1].headers["content-encoding"], "zstd");
    assert.ok(!provider.requests[1].bytes.includes(LINE));
    assert.equal(provider.requests[1].bytes.readUInt32LE(0), 0xfd2fb528);
  });

  test("rules or decisions that cannot be used refuse the request", async () => {
    write(".clineignore", "x\n".repeat(200_000));
    provider.requests = [];
    const response = await gateway.send("anthropic", "/v1/messages", { headers: SESSION, body: user("x") });
    assert.equal(response.status, 400);
    assert.match(response.json().error.message, /cannot check the request: cannot tell what is denied/);
    assert.equal(provider.requests.length, 0);
    write(".clineignore", "secret.txt\n");
    // Rules stay in force until a request sees the file unchanged for half a second.
    await gateway.send("anthropic", "/v1/messages", { headers: SESSION, body: user("x") });
    await new Promise((resolve) => setTimeout(resolve, 700));
    await through(user(LINE));
    const tasks = join(folder, "data/gateway/tasks");
    await gateway.kill();
    for (const name of readdirSync(tasks)) writeFileSync(join(tasks, name), "damaged\n");
    await start();
    provider.requests = [];
    assert.equal((await gateway.send("anthropic", "/v1/messages", { headers: SESSION, body: user("x") })).status, 400);
    assert.equal(provider.requests.length, 0);
  });

  test("killed in a stream, it goes on with the same address and decisions", async () => {
    await gateway.kill();
    const { port } = new URL(gateway.url);
    options.push("--port", port);
    await start();
    provider.answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: 1\n\n");
    };
    const body = user(`look: ${LINE}`);
    const broken = gateway.send("anthropic", "/v1/messages", { headers: SESSION, body, onChunk: () => gateway.child.kill("SIGKILL") });
    await assert.rejects(broken);
    const sent = provider.requests.at(-1).bytes;
    const { url } = gateway;
    provider.answer = (_, response) => response.end("{}");
    await gateway.exited;
    await start();
    assert.equal(gateway.url, url, gateway.output);
    write("secret.txt", "another content\n");
    assert.equal((await through(body)).text, sent.toString());
  });

  test("--dry-run only reports", async () => {
    await gateway.kill();
    options.push("--dry-run");
    await start();
    const { text, changed } = await through(user(LINE));
    assert.deepEqual([text, changed], [JSON.stringify(user(LINE)), 1]);
  });

  test("a session is recognized without an id, and tasks are apart", async () => {
    write("soon.txt", "what the file contains from now on\n");
    const first = user("what the file contains from now on");
    assert.match((await through(first, { headers: {} })).text, /from now on/);
    appendFileSync(join(project, "secret.txt"), "what the file contains from now on\n");
    unlinkSync(join(project, "soon.txt"));
    first.messages.push({ role: "assistant", content: "a" }, { role: "user", content: "more" });
    assert.match((await through(first, { headers: {} })).text, /from now on/);
    assert.doesNotMatch((await through(user("what the file contains from now on"), { headers: SESSION })).text, /from now on/);
  });
});
