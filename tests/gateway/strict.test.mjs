// Whole sessions with providers that are as strict as the real ones, with redaction in between.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Gateway, MISSING, Provider } from "./gateway.mjs";
import { Strict } from "./strict.mjs";

const LINE = "DENIED-CONTENT-7731";
const KEY = "sk-live-51H8x9JkLmNoPqRs";
/** What tools print; some of it is hidden. */
const RESULTS = [`1\t${LINE}\n2\tok`, "plain output", `API_KEY=${KEY}`, JSON.stringify({ output: `${LINE}\nok` }), "more", `x ${KEY} y ${LINE}`];
const TURNS = RESULTS.length;

/** Each API: how a session begins, and how a turn is added to it. */
const APIS = {
  "messages, thinking bound to the prefix": {
    path: "/v1/messages",
    begin: () => ({ model: "claude-sonnet-5-5", system: [{ type: "text", text: "You help.", cache_control: { type: "ephemeral" } }], tools: [{ name: "Bash", input_schema: { type: "object" } }], messages: [{ role: "user", content: `look: ${LINE}` }] }),
    list: "messages",
    answer: (strict, sent, id) => [strict.thinking(sent), { type: "tool_use", id, name: "Bash", input: { command: "run" } }],
    add(body, answer, id, result) {
      for (const message of body.messages) for (const block of Array.isArray(message.content) ? message.content : []) delete block.cache_control;
      body.messages.push({ role: "assistant", content: answer }, { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: [{ type: "text", text: result }], cache_control: { type: "ephemeral" } }] });
    },
    faults: {
      "an unpaired call": ({ messages }) => messages.at(-1).content.splice(0, 1, { type: "text", text: "x" }),
      "a result without a call": ({ messages }) => (messages.at(-1).content[0].tool_use_id = "other"),
      "a changed signature": ({ messages }) => (messages[1].content[0].signature = "x"),
      "thinking behind a changed result": ({ messages }) => (messages[2].content[0].content[0].text += "."),
      "thinking behind a changed system text": ({ system }) => (system[0].text += "."),
      "five cache marks": (body) => (body.tools = Array.from({ length: 5 }, (_, at) => ({ name: `t${at}`, cache_control: { type: "ephemeral" } }))),
    },
  },
  responses: {
    path: "/v1/responses",
    begin: () => ({ model: "gpt-5-codex", instructions: "You help.", input: [{ type: "message", role: "user", content: [{ type: "input_text", text: `look: ${LINE}` }] }] }),
    list: "input",
    answer: (strict, _, id) => {
      const item = { type: "function_call", id: `fc_${id}`, call_id: id, name: "exec", arguments: "{}" };
      return [strict.reasoningFor(item), item];
    },
    add: (body, answer, id, result) => body.input.push(...answer, { type: "function_call_output", call_id: id, output: [{ type: "input_text", text: result }] }),
    faults: {
      "an unpaired call": ({ input }) => input.pop(),
      "changed reasoning": ({ input }) => (input[1].encrypted_content = "x"),
      "reasoning without its item": ({ input }) => input.splice(2, 1),
      "an item without its reasoning": ({ input }) => input.splice(1, 1),
    },
  },
  "chat completions": {
    path: "/v1/chat/completions",
    begin: () => ({ model: "m", messages: [{ role: "system", content: "You help." }, { role: "user", content: `look: ${LINE}` }] }),
    list: "messages",
    answer: (_, __, id) => ({ role: "assistant", content: null, reasoning_content: "So.", tool_calls: [{ id, type: "function", function: { name: "run", arguments: "{}" } }] }),
    add: (body, answer, id, result) => body.messages.push(answer, { role: "tool", tool_call_id: id, content: result }),
    faults: { "an unpaired call": ({ messages }) => messages.pop(), "a result without a call": ({ messages }) => messages.splice(2, 1) },
  },
  gemini: {
    path: "/v1beta/models/gemini-3-pro:generateContent",
    begin: () => ({ contents: [{ role: "user", parts: [{ text: `look: ${LINE}` }] }] }),
    list: "contents",
    answer: (strict, _, id) => ({ role: "model", parts: [strict.signed({ functionCall: { id, name: "run", args: { id } } })] }),
    add: (body, answer, id, result) => body.contents.push(answer, { role: "user", parts: [{ functionResponse: { id, name: "run", response: { output: result } } }] }),
    faults: { "an unpaired call": ({ contents }) => contents.pop(), "a call without its signature": ({ contents }) => delete contents[1].parts[0].thoughtSignature },
  },
};

describe("strict providers", { skip: MISSING }, () => {
  let folder, provider, gateway, strict, api;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "sightline-gateway-"));
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(join(project, ".env"), `API_KEY=${KEY}\n`);
    writeFileSync(join(project, "secret.txt"), `${LINE}\n`);
    writeFileSync(join(project, ".clineignore"), "secret.txt\n");
    strict = new Strict();
    provider = await Provider.start(({ url, bytes }, response) => {
      const body = JSON.parse(bytes);
      const why = strict.refusal(url, body);
      response.writeHead(why ? 400 : 200, { "content-type": "application/json" });
      const id = `call_${provider.requests.length}`;
      response.end(JSON.stringify(why ? { error: { message: why } } : { id, answer: api.answer(strict, body, id) }));
    });
    gateway = await Gateway.start(["--root", project, "--upstream", `own=${provider.url}`], { folder });
  });
  after(async () => {
    await gateway?.close();
    provider?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const [name, known] of Object.entries(APIS)) {
    test(`a session of ${name}`, async () => {
      api = known;
      const body = api.begin();
      const start = JSON.stringify(body[api.list]).slice(0, -1);
      const head = JSON.stringify(body).split(start)[0];
      const headers = { "x-claude-code-session-id": name, "thread-id": name };
      let sent = [];
      for (let turn = 0; turn < TURNS; turn += 1) {
        const response = await gateway.send("own", api.path, { headers, body: JSON.stringify(body) });
        assert.equal(response.status, 200, response.text);
        const text = provider.requests.at(-1).bytes.toString();
        for (const secret of [LINE, KEY]) assert.ok(!text.includes(secret), text);
        // Append-only, byte for byte; cache marks move.
        const plain = text.replaceAll(',"cache_control":{"type":"ephemeral"}', "");
        for (const earlier of sent) assert.ok(plain.startsWith(earlier), `${plain}\n${earlier}`);
        sent.push(plain.slice(0, -"]}".length));
        assert.ok(text.startsWith(head));
        const { id, answer } = response.json();
        api.add(body, answer, id, RESULTS[turn]);
      }
      assert.deepEqual(strict.refused, []);
    });

    for (const [fault, spoil] of Object.entries(known.faults)) {
      test(`${name}: ${fault} is refused`, async () => {
        api = known;
        const body = api.begin();
        const send = async () => (await gateway.send("own", api.path, { body: JSON.stringify(body) })).json();
        for (let turn = 0; turn < 2; turn += 1) {
          const { id, answer } = await send();
          api.add(body, answer, id, "plain output");
        }
        assert.ok((await send()).answer);
        spoil(body);
        assert.ok((await send()).error);
        strict.refused = [];
      });
    }
  }
});
