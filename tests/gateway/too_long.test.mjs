// A conversation that exceeds the context window is made shorter once, where that is safe.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { Gateway, MISSING, Provider } from "./gateway.mjs";

const ERRORS = {
  anthropic: { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 200001 tokens > 200000 maximum" } },
  openai: { error: { message: "Your input exceeds the context window of this model.", type: "invalid_request_error", code: "context_length_exceeded" } },
};
const NOTICE = /\[Sightline: this old result was removed/g;

describe("too long conversations", { skip: MISSING }, () => {
  let provider, gateway;
  beforeEach(async () => {
    provider = await Provider.start();
    gateway = await Gateway.start(["--upstream", `anthropic=${provider.url}`, "--upstream", `openai=${provider.url}`]);
  });
  afterEach(async () => {
    await gateway.close();
    provider.close();
  });

  /** The provider accepts requests up to a size. */
  function limit(size, error) {
    provider.requests = [];
    provider.answer = ({ bytes }, response) => {
      if (bytes.length > size) response.writeHead(400, { "content-type": "application/json" });
      response.end(bytes.length > size ? JSON.stringify(error) : "{}");
    };
  }

  function messages(results, model = "claude-sonnet-4-5") {
    const turns = Array.from({ length: results }, (_, at) => [
      { role: "assistant", content: [{ type: "tool_use", id: `t${at}`, name: "Bash", input: { command: `run ${at}` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: `t${at}`, content: `${at} `.repeat(1000) }] },
    ]);
    return { model, tools: [{ name: "Bash" }], messages: [{ role: "user", content: "start" }, ...turns.flat()] };
  }

  function responses(results) {
    const turns = Array.from({ length: results }, (_, at) => [
      { type: "function_call", call_id: `c${at}`, name: "exec", arguments: "{}" },
      { type: "function_call_output", call_id: `c${at}`, output: `${at} `.repeat(1000) },
    ]);
    return { model: "gpt-5-codex", tools: [{ name: "exec" }], input: [{ type: "message", role: "user", content: "start" }, ...turns.flat()] };
  }

  const claude = { "x-claude-code-session-id": "s" };
  const send = (body, headers = claude, upstream = "anthropic", path = "/v1/messages") => gateway.send(upstream, path, { headers, body });
  const text = (at) => provider.requests.at(at).bytes.toString();

  test("old results are replaced once, and stay so", async () => {
    limit(20_000, ERRORS.anthropic);
    assert.equal((await send(messages(12))).status, 200);
    assert.equal(provider.requests.length, 2);
    const masked = text(1);
    assert.equal(masked.match(NOTICE).length, 8);
    const sent = JSON.parse(masked).messages;
    assert.deepEqual(sent.slice(-8), messages(12).messages.slice(-8));
    sent.forEach(({ content }, at) => Array.isArray(content) && assert.equal(content[0].tool_use_id, messages(12).messages[at].content[0].tool_use_id));
    // The next request begins with the same bytes, also after a restart.
    await gateway.kill();
    const { folder } = gateway;
    gateway = await Gateway.start(["--upstream", `anthropic=${provider.url}`], { folder });
    limit(20_000, ERRORS.anthropic);
    assert.equal((await send(messages(13))).status, 200);
    assert.equal(provider.requests.length, 1);
    assert.ok(text(0).startsWith(masked.slice(0, -"]}".length)));
  });

  test("of Codex too", async () => {
    limit(20_000, ERRORS.openai);
    const { status } = await send(responses(12), { "thread-id": "t" }, "openai", "/v1/responses");
    assert.deepEqual([status, provider.requests.length, text(1).match(NOTICE).length], [200, 2, 8]);
  });

  test("if that does not help, the words of the provider are passed on", async () => {
    limit(100, ERRORS.anthropic);
    const response = await send(messages(12));
    assert.deepEqual([response.status, response.json(), provider.requests.length], [400, ERRORS.anthropic, 2]);
    const again = await send(messages(12));
    assert.deepEqual([again.json(), provider.requests.length], [ERRORS.anthropic, 3]);
  });

  test("elsewhere nothing is replaced", async () => {
    const body = messages(12);
    const cases = [
      ["thinking that is bound", messages(12, "claude-sonnet-5-5"), claude],
      ["an unknown model", messages(12, "mock"), claude],
      ["no id", body, {}],
      ["a summary", { ...body, tools: undefined }, claude],
      ["results that are managed", { ...body, context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } }, claude],
      ["few results", messages(4), claude],
    ];
    for (const [name, body, headers] of cases) {
      limit(100, ERRORS.anthropic);
      const response = await send(body, headers);
      assert.deepEqual([response.status, response.json(), provider.requests.length], [400, ERRORS.anthropic, 1], name);
    }
    limit(100, { type: "error", error: { type: "invalid_request_error", message: "tool_use ids must be unique" } });
    assert.equal((await send(body)).status, 400);
    assert.equal(provider.requests.length, 1);
  });
});
