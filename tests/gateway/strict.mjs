// What real providers refuse: unpaired calls, changed signatures, thinking behind a changed prefix, reasoning without its
// item, and more than four cache marks.

import { createHmac, randomBytes } from "node:crypto";

/** Models of Anthropic that bind their thinking to everything before it. */
const BINDS = /^claude-\w+-5-[0-9]/;
const MAX_MARKS = 4;

export class Strict {
  constructor() {
    this.key = randomBytes(32);
    /** Why requests were refused. */
    this.refused = [];
    /** Reasoning of OpenAI by the id of the item that follows it. */
    this.reasoning = new Map();
  }

  #sign(...values) {
    return createHmac("sha256", this.key).update(JSON.stringify(values)).digest("base64");
  }

  /** Returns a thinking block for the next message. */
  thinking({ model, system, tools, messages }) {
    const thinking = "It follows from the above.";
    return { type: "thinking", thinking, signature: this.#signature(model, thinking, system, tools, messages) };
  }

  #signature(model, thinking, system, tools, before) {
    const prefix = BINDS.test(model) ? [withoutMarks(system), withoutMarks(tools), withoutMarks(before)] : [];
    return this.#sign(model, thinking, ...prefix);
  }

  /** Returns a reasoning item for the item that follows it. */
  reasoningFor(item) {
    const id = `rs_${item.id}`;
    this.reasoning.set(item.id, id);
    return { type: "reasoning", id, summary: [], encrypted_content: this.#sign(id) };
  }

  /** Returns a part of Gemini with its signature. */
  signed(part) {
    return part.functionCall ? { ...part, thoughtSignature: this.#sign(part.functionCall.args) } : part;
  }

  /** Returns why a request is refused, or nothing. */
  refusal(path, body) {
    const why = body.messages && path.endsWith("/messages") ? this.#messages(body) : Array.isArray(body.input) ? this.#responses(body) : body.messages ? completions(body) : body.contents ? this.#gemini(body) : undefined;
    if (why) this.refused.push(why);
    return why;
  }

  #messages({ model, system, tools, messages }) {
    const marks = JSON.stringify([system, tools, messages]).split('"cache_control":{').length - 1;
    if (marks > MAX_MARKS) return `A maximum of ${MAX_MARKS} blocks with cache_control may be provided. Found ${marks}.`;
    let open = new Set();
    for (const [at, { role, content }] of messages.entries()) {
      const blocks = Array.isArray(content) ? content : [];
      if (role === "user") {
        for (const { type, tool_use_id } of blocks) {
          if (type === "tool_result" && !open.delete(tool_use_id)) return `messages.${at}: unexpected tool_use_id ${tool_use_id} in tool_result blocks`;
        }
        // Several messages of the user are one.
        if (open.size > 0 && messages[at + 1]?.role !== "user") return `messages.${at}: tool_use ids were found without tool_result blocks immediately after: ${[...open]}`;
        continue;
      }
      for (const block of blocks) {
        if (block.type === "tool_use") open.add(block.id);
        if (block.type !== "thinking") continue;
        const expected = this.#signature(model, block.thinking, system, tools, messages.slice(0, at));
        if (block.signature !== expected) return `messages.${at}: thinking block is bound to a different conversation`;
      }
    }
    return open.size > 0 ? `tool_use ids were found without tool_result blocks: ${[...open]}` : undefined;
  }

  #responses({ input }) {
    const calls = new Map();
    for (const [at, item] of input.entries()) {
      if (item.type === "reasoning") {
        if (item.encrypted_content !== this.#sign(item.id)) return "The encrypted content could not be verified.";
        if (this.reasoning.get(input[at + 1]?.id) !== item.id) return `Item '${item.id}' of type 'reasoning' was provided without its required following item.`;
      }
      const reasoning = this.reasoning.get(item.id);
      if (reasoning && input[at - 1]?.id !== reasoning) return `Item '${item.id}' was provided without its required 'reasoning' item: '${reasoning}'.`;
      if (/_call$/.test(item.type ?? "") && item.call_id) calls.set(item.call_id, item);
      if (/_call_output$/.test(item.type ?? "") && !calls.delete(item.call_id)) return `No tool call found for function call output with call_id ${item.call_id}.`;
    }
    return calls.size > 0 ? `No tool output found for function call ${[...calls.keys()]}.` : undefined;
  }

  #gemini({ contents }) {
    for (const [at, { role, parts }] of contents.entries()) {
      const calls = (parts ?? []).filter(({ functionCall }) => functionCall);
      const answers = (contents[at + 1]?.parts ?? []).filter(({ functionResponse }) => functionResponse);
      if (role === "model" && calls.length !== answers.length) return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
      for (const { functionCall, thoughtSignature } of calls) {
        if (thoughtSignature !== this.#sign(functionCall.args)) return `Function call is missing a thought_signature in functionCall parts: ${functionCall.name}`;
      }
    }
    return undefined;
  }
}

function completions({ messages }) {
  let open = new Set();
  for (const { role, tool_calls, tool_call_id } of messages) {
    if (role === "tool") {
      if (!open.delete(tool_call_id)) return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
      continue;
    }
    if (open.size > 0) break;
    open = new Set((tool_calls ?? []).map(({ id }) => id));
  }
  return open.size > 0 ? `An assistant message with 'tool_calls' must be followed by tool messages: ${[...open]}` : undefined;
}

/** Marks are not a part of the prefix. */
function withoutMarks(value) {
  return JSON.parse(JSON.stringify(value ?? null, (key, value) => (key === "cache_control" ? undefined : value)));
}
