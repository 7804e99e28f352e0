// A model server on loopback for the APIs that the agents speak: Anthropic messages, OpenAI
// responses, OpenAI chat completions and Gemini generateContent.
//
// The server answers from a plan: a list of texts and tool calls. The number of tool results in
// a request, less those of the first request, selects the step, so a retried request gets the same answer,
// and so does one in a resumed session.

import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { gunzipSync } from "node:zlib";

/** A step of a plan that calls a tool. A step that is a string is a text. */
export function call(name, input, namespace = undefined) {
  return { name, input, namespace };
}

/**
 * Starts a model server. Requests that offer tools are kept in `requests`, which a new plan
 * empties. `strict` refuses requests as real providers do,
 * and thinks. A request with a text of `plans` is answered from that plan.
 */
export async function startModel({ strict } = {}) {
  const model = { plan: [], plans: {}, requests: [], url: "", strict, close: () => server.close() };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    let body = Buffer.concat(chunks);
    if (request.headers["content-encoding"] === "gzip") body = gunzipSync(body);
    answer(model, request, body.length === 0 ? {} : JSON.parse(body), response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  model.url = `http://127.0.0.1:${server.address().port}`;
  return model;
}

function answer(model, request, body, response) {
  const path = request.url.split("?")[0];
  if (/count_?tokens$/i.test(path)) {
    return json(response, 200, { input_tokens: 100, totalTokens: 100 });
  }
  if (request.method === "GET" && path.includes("/models")) {
    const entry = { id: "mock", object: "model", created: 1, owned_by: "mock" };
    return json(response, 200, { object: "list", data: [entry], models: [] });
  }
  const api = API.find(({ matches }) => matches(path));
  if (request.method !== "POST" || !api) return json(response, 404, {});
  const refusal = model.strict?.refusal(path, body);
  if (refusal) return json(response, 400, { type: "error", error: { type: "invalid_request_error", message: refusal } });
  const offered = toolNames(body);
  let step = "A side answer";
  if (offered.length > 0) {
    const received = { body, tools: offered, results: toolResults(body), text: strings(body).join("\n") };
    model.requests.push(received);
    const [, plan] = Object.entries(model.plans).find(([mark]) => received.text.includes(mark)) ?? [, model.plan];
    const earlier = plan === model.plan ? model.requests[0].results.length : 0;
    step = plan[received.results.length - earlier] ?? "The plan is done";
  } else if (body.generationConfig?.responseJsonSchema) {
    // gemini-cli asks which model should answer, and who speaks next.
    step = JSON.stringify({ reasoning: "-", next_speaker: "user", model_choice: "flash", complexity_reasoning: "-", complexity_score: 1 });
  }
  const { events, whole } = api.render(step, body, model.strict);
  if (!(body.stream || path.includes("stream"))) return json(response, 200, whole);
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) {
    if (api.named) response.write(`event: ${event.type}\n`);
    response.write(`data: ${event === DONE ? DONE : JSON.stringify(event)}\n\n`);
  }
  response.end();
}

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const DONE = "[DONE]";

const API = [
  { matches: (path) => path.endsWith("/messages"), named: true, render: anthropic },
  { matches: (path) => path.endsWith("/responses"), named: true, render: responses },
  { matches: (path) => path.endsWith("/chat/completions"), named: false, render: chat },
  { matches: (path) => path.includes("enerateContent"), named: false, render: gemini },
];

function anthropic(step, request, strict) {
  const { model } = request;
  const isText = typeof step === "string";
  const block = isText ? { type: "text", text: step } : { type: "tool_use", id: `toolu_${id()}`, name: step.name, input: step.input };
  const start = isText ? { type: "text", text: "" } : { ...block, input: {} };
  const delta = isText ? { type: "text_delta", text: step } : { type: "input_json_delta", partial_json: JSON.stringify(step.input) };
  const stop_reason = isText ? "end_turn" : "tool_use";
  const usage = { input_tokens: 100, output_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  const message = { id: `msg_${id()}`, type: "message", role: "assistant", model, stop_sequence: null, usage };
  const thinking = request.thinking && strict ? [strict.thinking(request)] : [];
  const index = thinking.length;
  return {
    whole: { ...message, content: [...thinking, block], stop_reason },
    events: [
      { type: "message_start", message: { ...message, content: [], stop_reason: null } },
      ...thinking.flatMap(({ thinking, signature }) => [
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking } },
        { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature } },
        { type: "content_block_stop", index: 0 },
      ]),
      { type: "content_block_start", index, content_block: start },
      { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 10 } },
      { type: "message_stop" },
    ],
  };
}

function responses(step, _, strict) {
  const key = id();
  const item =
    typeof step === "string"
      ? { type: "message", role: "assistant", id: `msg_${key}`, content: [{ type: "output_text", text: step }] }
      : { type: "function_call", id: `fc_${key}`, call_id: `call_${key}`, name: step.name, namespace: step.namespace, arguments: JSON.stringify(step.input) };
  const usage = { input_tokens: 100, input_tokens_details: null, output_tokens: 10, output_tokens_details: null, total_tokens: 110 };
  const items = strict && typeof step !== "string" ? [strict.reasoningFor(item), item] : [item];
  const whole = { id: `resp_${key}`, object: "response", status: "completed", output: items, usage };
  return {
    whole,
    events: [
      { type: "response.created", response: { id: whole.id } },
      ...items.map((item, output_index) => ({ type: "response.output_item.done", output_index, item })),
      { type: "response.completed", response: whole },
    ],
  };
}

function chat(step, { model }) {
  const isText = typeof step === "string";
  const tool = isText ? undefined : { id: `call_${id()}`, type: "function", function: { name: step.name, arguments: JSON.stringify(step.input) } };
  const message = isText ? { role: "assistant", content: step } : { role: "assistant", content: null, tool_calls: [tool] };
  const finish_reason = isText ? "stop" : "tool_calls";
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const base = { id: `chatcmpl-${id()}`, created: 1, model };
  const chunk = { ...base, object: "chat.completion.chunk" };
  const delta = isText ? message : { ...message, tool_calls: [{ index: 0, ...tool }] };
  return {
    whole: { ...base, object: "chat.completion", usage, choices: [{ index: 0, message, finish_reason }] },
    events: [
      { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason }], usage },
      DONE,
    ],
  };
}

function gemini(step, _, strict) {
  const plain = typeof step === "string" ? { text: step } : { functionCall: { name: step.name, args: step.input } };
  const part = strict?.signed(plain) ?? plain;
  const whole = {
    candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    modelVersion: "mock",
  };
  return { whole, events: [whole] };
}

function id() {
  return randomUUID().replaceAll("-", "");
}

/** Names of the tools that a request offers; a tool in a namespace is `namespace.name`. */
function toolNames({ tools }) {
  return (tools ?? []).flatMap((tool) => {
    if (tool.functionDeclarations) return tool.functionDeclarations.map(({ name }) => name);
    if (tool.type === "namespace") return tool.tools.map(({ name }) => `${tool.name}.${name}`);
    return [tool.function?.name ?? tool.name ?? tool.type];
  });
}

/** Texts of the tool results in a request, in order. */
function toolResults({ messages, input, contents }) {
  const results = [];
  for (const { role, content } of messages ?? []) {
    if (role === "tool") results.push(content);
    else if (Array.isArray(content)) results.push(...content.filter(({ type }) => type === "tool_result").map(({ content }) => content));
  }
  for (const item of Array.isArray(input) ? input : []) {
    if (item.type?.endsWith("_output")) results.push(item.output);
  }
  for (const { parts } of contents ?? []) {
    results.push(...(parts ?? []).filter(({ functionResponse }) => functionResponse).map(({ functionResponse }) => functionResponse.response));
  }
  return results.map((result) => strings(result).join("\n"));
}

/** Every string in a JSON value: what a model can see. */
function strings(value) {
  if (typeof value === "string") return [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(strings) : [];
}
