// Real agents, started by `sightline run`: their requests go through the gateway, and denied files reach no model.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { AGENTS } from "../agents/agents.mjs";
import { startModel } from "../agents/mock_model.mjs";
import { SECRET, SIGHTLINE, Workspace, agentProgram } from "../agents/workspace.mjs";
import { MISSING } from "./gateway.mjs";

const REQUIRED = process.env.CI ? (process.env.SIGHTLINE_TEST_AGENTS ?? "").split(" ") : [];

/** Agents that expand a mention of a file themselves. */
const EXPANDS_MENTIONS = ["claude", "gemini", "qwen"];

for (const agent of AGENTS) {
  const program = agentProgram(agent.name, agent.program);
  if (MISSING || !program) {
    const reason = MISSING ?? `${agent.name} is not in target/agents; run tests/provide/agents ${agent.name}`;
    test(agent.name, { skip: REQUIRED.includes(agent.name) ? false : reason }, () => assert.fail(reason));
    continue;
  }
  describe(agent.name, () => {
    let workspace, model;
    before(async () => {
      workspace = new Workspace(agent.name);
      model = await startModel();
      // The addresses of a user: the gateway has to forward to them.
      agent.configure(workspace, model.url);
    });
    after(() => {
      model?.close();
      workspace?.close();
    });

    async function ask(prompt, ...plan) {
      model.plan = plan;
      model.requests = [];
      const words = [...(agent.interpreter ? [agent.interpreter] : []), ...agent.command(program, prompt)];
      const { code, output } = await workspace.agent([SIGHTLINE, "run", "--agent", agent.name, "--", ...words], agent.env(model.url));
      return { code, output, requests: model.requests };
    }

    if (agent.name === "cline") {
      test("it is not started, because it would go past", async () => {
        const { code, output, requests } = await ask("Hello");
        assert.deepEqual([code, requests], [2, []]);
        assert.match(output, /set `baseUrl`/);
      });
      return;
    }

    test("what its tools read of denied files reaches no model", async () => {
      const steps = [agent.run("cat secret.txt"), agent.run("cat notes.txt"), ...(agent.read ? [agent.read(join(workspace.project, "secret.txt"))] : [])];
      const { output, requests } = await ask("Read them", ...steps);
      assert.ok(requests.length > steps.length, output);
      const { results } = requests.at(-1);
      assert.match(results[0], /hidden from agents by \.clineignore:1/);
      assert.match(results[1], /saved text/);
      if (agent.read) assert.match(results[2], /hidden from agents by \.clineignore:1/);
      assert.ok(requests.every(({ text }) => !text.includes(SECRET)));
      const usage = join(workspace.folder, "data/sightline/gateway/usage.jsonl");
      assert.ok(existsSync(usage), output);
      const records = readFileSync(usage, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
      assert.ok(records.length >= requests.length);
      assert.ok(records.some(({ usage }) => usage.output > 0));
    });

    test("each request repeats the one before", async () => {
      const { output, requests } = await ask("Read them again", agent.run("cat secret.txt"), agent.run("cat notes.txt"), agent.run("cat secret.txt notes.txt"));
      assert.ok(requests.length >= 4, output);
      const items = requests.map(({ body }) => (body.messages ?? body.input ?? body.contents).map((item) => JSON.stringify(item, (key, value) => (key === "cache_control" ? undefined : value))));
      for (let at = 1; at < items.length; at += 1) {
        assert.deepEqual(items[at].slice(0, items[at - 1].length), items[at - 1]);
      }
    });

    if (EXPANDS_MENTIONS.includes(agent.name)) {
      test("a mention of a denied file does not", async () => {
        const { output, requests } = await ask("Explain @secret.txt and @notes.txt");
        assert.ok(requests.length > 0, output);
        assert.match(requests[0].text, /saved text/);
        assert.ok(requests.every(({ text }) => !text.includes(SECRET)));
      });
    }
  });
}
