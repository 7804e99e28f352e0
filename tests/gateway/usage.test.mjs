// Usage is read from responses, and requests are repeated only before the first byte.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { SIGHTLINE } from "../agents/workspace.mjs";
import { Gateway, MISSING, Provider } from "./gateway.mjs";

const MESSAGES = "/v1/messages";

describe("usage and repeated requests", { skip: MISSING }, () => {
  let provider, gateway, file;
  before(async () => {
    provider = await Provider.start();
    const upstreams = ["anthropic", "openai", "gemini"].flatMap((name) => ["--upstream", `${name}=${provider.url}`]);
    gateway = await Gateway.start([...upstreams, "--limit", "32000"]);
    file = join(gateway.folder, "data/gateway/usage.jsonl");
  });
  after(async () => {
    await gateway.close();
    provider.close();
  });

  async function through(answer, { upstream = "anthropic", path = MESSAGES, headers = {}, body = { model: "claude-sonnet-4-5" } } = {}) {
    provider.requests = [];
    provider.answer = answer;
    const response = await gateway.send(upstream, path, { headers, body }).catch((error) => ({ error }));
    // The line is written when the response has ended for the gateway.
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    return { response, count: provider.requests.length, record: JSON.parse(lines.at(-1)) };
  }

  const stream = (...events) => (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) response.write(`event: x\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  };

  test("a line has the conversation, the model, the status and the tokens", async () => {
    const start = { type: "message_start", message: { usage: { input_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 30, output_tokens: 1 } } };
    const { record } = await through(stream(start, { type: "message_delta", usage: { output_tokens: 9 } }), {
      headers: { "x-claude-code-session-id": "session-1", "x-claude-code-agent-id": "agent-2", "user-agent": "claude-cli/2.1.330 (external)", "x-api-key": "sk-CREDENTIAL" },
    });
    const { at, ...rest } = record;
    assert.ok(at > 1.7e12);
    assert.deepEqual(rest, {
      task: "session-1 agent-2",
      agent: "claude",
      upstream: "anthropic",
      path: MESSAGES,
      model: "claude-sonnet-4-5",
      window: 200000,
      isSubscription: false,
      status: 200,
      outcome: "complete",
      usage: { input: 5, cacheRead: 100, cacheWrite: 30, output: 9 },
      redacted: 0,
    });
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(file, "utf8"), /CREDENTIAL/);
  });

  test("each API", async () => {
    const responses = await through(stream({ type: "response.completed", response: { usage: { input_tokens: 10, input_tokens_details: { cached_tokens: 4 }, output_tokens: 3, output_tokens_details: { reasoning_tokens: 2 } } } }), {
      upstream: "openai",
      path: "/v1/responses",
      headers: { "thread-id": "thread-1", "chatgpt-account-id": "a" },
      body: { model: "unknown-model" },
    });
    assert.deepEqual(responses.record.usage, { input: 6, cacheRead: 4, output: 3, reasoning: 2 });
    assert.deepEqual([responses.record.task, responses.record.window, responses.record.isSubscription], ["thread-1", 32000, true]);
    const gemini = await through((_, response) => response.end(JSON.stringify({ usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2 } })), { upstream: "gemini", path: "/v1beta/models/gemini-2.5-pro:generateContent?key=CREDENTIAL", body: { contents: [] } });
    assert.deepEqual(gemini.record.usage, { input: 7, output: 2 });
    assert.equal(gemini.record.model, "gemini-2.5-pro");
    assert.match(gemini.record.task, /^[0-9a-f]{32}$/);
    assert.doesNotMatch(readFileSync(file, "utf8"), /CREDENTIAL/);
  });

  test("a busy provider is asked again, up to two times", async () => {
    let failures = 2;
    const busy = (status, headers = {}) => (_, response) => {
      if (failures > 0) response.writeHead(status, headers);
      failures -= 1;
      response.end("{}");
    };
    for (const [status, headers] of [[529, {}], [503, {}], [429, { "retry-after": "1" }]]) {
      failures = 2;
      const { response, count, record } = await through(busy(status, headers));
      assert.deepEqual([response.status, count, record.status], [200, 3, 200]);
    }
    failures = 9;
    const { response, count, record } = await through(busy(500));
    assert.deepEqual([response.status, count, record.status], [500, 3, 500]);
  });

  test("other errors are passed on at once", async () => {
    for (const [status, headers] of [[429, { "retry-after": "3600" }], [429, {}], [400, {}], [401, {}], [529, { "x-should-retry": "false" }], [503, { "retry-after": "Thu, 26 Nov 2026 00:00:00 GMT" }]]) {
      const { response, count } = await through((_, response) => {
        response.writeHead(status, headers);
        response.end(`{"error": "${status}"}`);
      });
      assert.deepEqual([response.status, response.text, count], [status, `{"error": "${status}"}`, 1]);
      for (const name of Object.keys(headers)) assert.equal(response.headers[name], headers[name]);
    }
  });

  test("a stream that broke off is not repeated", async () => {
    const { response, count } = await through((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: {"usage": {"input_tokens": 3}}\n\n`);
      setTimeout(() => response.destroy(), 50);
    });
    assert.ok(response.error);
    assert.equal(count, 1);
    const { record } = await through((_, response) => response.end("{}"));
    assert.equal(record.outcome, "complete");
    const broken = readFileSync(file, "utf8").trimEnd().split("\n").at(-2);
    const { outcome, usage } = JSON.parse(broken);
    assert.deepEqual([outcome, usage], ["broken", { input: 3 }]);
  });

  test("a request that the gateway refuses has a line too", async () => {
    const gone = await Provider.start();
    const other = await Gateway.start(["--upstream", `anthropic=${gone.url}`, "--usage", join(gateway.folder, "other.jsonl")]);
    gone.close();
    assert.equal((await other.send("anthropic", MESSAGES, { body: { model: "m" } })).status, 502);
    const { status, outcome } = JSON.parse(readFileSync(join(gateway.folder, "other.jsonl"), "utf8"));
    assert.deepEqual([status, outcome], [502, "refused"]);
    await other.close();
  });

  test("`sightline usage` adds them up, also while a line is being written", async () => {
    appendFileSync(file, `{"at": 1, "ta`);
    const run = async (...options) => (await promisify(execFile)(SIGHTLINE, ["usage", "--file", file, ...options])).stdout;
    const rows = JSON.parse(await run("--json"));
    const row = rows.find(({ task }) => task === "session-1 agent-2");
    assert.deepEqual([row.agent, row.model, row.requests, row.usage.cacheRead], ["claude", "claude-sonnet-4-5", 1, 100]);
    // 5 × 3 + 100 × 0.3 + 30 × 3.75 + 9 × 15, in dollars for a million
    assert.ok(Math.abs(row.cost - 0.0002925) < 1e-9);
    const subscription = rows.find(({ task }) => task === "thread-1");
    assert.equal(subscription.cost, undefined);
    assert.match(await run(), /^day +agent +model +requests/);
    assert.match(await run("--since", "2100-01-01"), /no requests/);
  });
});
