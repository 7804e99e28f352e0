// Turns of real agents in one project, with the user's edits between: what the list says, and the ways back.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AGENTS } from "./agents.mjs";
import { startModel } from "./mock_model.mjs";
import { Workspace, agentProgram } from "./workspace.mjs";

/** The agents that take turns in one project. */
const NAMES = ["claude", "codex", "gemini", "opencode"];
const ROUNDS = 4;

/** Number of lines of the file that all edit, each in other lines. */
const LINES = 100;

function original() {
  return Array.from({ length: LINES }, (_, line) => `line ${line + 1}`);
}

/** Files of the project and their contents, without git's. */
function snapshot(folder, prefix = "") {
  const files = {};
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (name === ".git") continue;
    if (statSync(path).isDirectory()) Object.assign(files, snapshot(path, `${prefix}${name}/`));
    else files[prefix + name] = readFileSync(path, "utf8");
  }
  return files;
}

/** Paths with different contents. */
function changed(one, other) {
  const paths = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...paths].filter((path) => one[path] !== other[path]).sort();
}

function omit(files, name) {
  const { [name]: _, ...others } = files;
  return others;
}

const agents = AGENTS.filter(({ name }) => NAMES.includes(name)).map((agent) => ({ ...agent, path: agentProgram(agent.name, agent.program) }));
const missing = agents.filter(({ path }) => !path).map(({ name }) => name);
const skip = missing.length > 0 && `${missing.join(", ")} not in target/agents; run tests/provide/agents ${missing.join(" ")}`;

describe("turns of four agents", { skip }, () => {
  let workspace, model;
  /** The turns in order: their agent, and the project before and after each. */
  const turns = [];

  function request(method, params = {}) {
    const words = ["request", `sightline/${method}`, JSON.stringify(params)];
    return workspace.sightline(...words).then(({ code, output }) => {
      assert.equal(code, 0, output);
      return JSON.parse(output);
    });
  }

  async function restore(...words) {
    const { code, output } = await workspace.sightline("checkpoint", ...words, "--yes");
    assert.equal(code, 0, output);
    return output;
  }

  const state = () => snapshot(workspace.project);

  before(async () => {
    workspace = new Workspace("turns");
    model = await startModel();
    writeFileSync(join(workspace.project, "shared.txt"), `${original().join("\n")}\n`);
    execFileSync("git", ["add", "."], { cwd: workspace.project });
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "shared"], { cwd: workspace.project });
    for (const agent of agents) agent.configure(workspace, model.url);
    const only = NAMES.flatMap((name) => ["--agent", name]);
    const { code, output } = await workspace.sightline("agents", "install", ...only, "--yes");
    assert.equal(code, 0, output);
    let line = 2;
    for (let round = 1; round <= ROUNDS; round++) {
      for (const agent of agents) {
        // The user edits between the turns.
        const mine = join(workspace.project, "shared.txt");
        const lines = readFileSync(mine, "utf8").split("\n");
        lines[line - 1] = `mine ${round} before ${agent.name}`;
        writeFileSync(mine, lines.join("\n"));
        const turn = { name: `${agent.name}-1.${round}`, agent: agent.name, line: line + 3, file: `${agent.name}-${round}.txt`, before: state() };
        const command = `sed -i '${turn.line}s/.*/${agent.name} ${round}/' shared.txt && echo ${round} > ${turn.file}`;
        model.plan = [agent.run(command)];
        model.requests = [];
        const start = round === 1 ? agent.command : agent.resume;
        const words = [...(agent.interpreter ? [agent.interpreter] : []), ...start(agent.path, `Round ${round} of ${agent.name}`)];
        const { output } = await workspace.agent(words, agent.env(model.url));
        turn.after = state();
        assert.deepEqual(changed(turn.before, turn.after), [turn.file, "shared.txt"].sort(), output);
        turns.push(turn);
        line += 6;
      }
    }
  });
  after(() => {
    model?.close();
    workspace?.close();
  });

  test("the list has each turn with its files, and what the user did before it", async () => {
    const listed = (await request("listTurns")).turns.reverse();
    assert.equal(listed.length, turns.length);
    for (const [index, turn] of turns.entries()) {
      const found = listed[index];
      assert.equal(found.name, turn.name);
      assert.equal(found.agent, turn.agent);
      assert.ok(found.endedAt && found.after, `${found.name} has no end`);
      // opencode quotes the words of its command line.
      assert.match(found.prompt, new RegExp(`^"?Round . of ${turn.agent}`));
      assert.deepEqual(found.files.map(({ path }) => path), [turn.file, "shared.txt"].sort());
      if (index > 0) assert.deepEqual(found.outside?.files.map(({ path }) => path), ["shared.txt"]);
    }
    const { output } = await workspace.sightline("checkpoint", "list");
    for (const { name } of listed) assert.ok(output.includes(name), output);
  });

  test("a restore before a turn and its undo are right to the byte", async () => {
    const last = state();
    const turn = turns[9];
    await restore("restore", turn.name);
    assert.deepEqual(state(), turn.before);
    await restore("undo");
    assert.deepEqual(state(), last);
    await restore("restore", `${turn.name}+`);
    assert.deepEqual(state(), turn.after);
    await restore("undo");
    assert.deepEqual(state(), last);
  });

  test("one turn is reverted, and everything later stays", async () => {
    for (const index of [0, 5, 10, 15]) {
      const turn = turns[index];
      const last = state();
      await restore("restore", turn.name, "--only", "turn");
      const lines = last["shared.txt"].split("\n");
      lines[turn.line - 1] = original()[turn.line - 1];
      const expected = { ...last, "shared.txt": lines.join("\n") };
      delete expected[turn.file];
      assert.deepEqual(state(), expected);
      await restore("undo");
      assert.deepEqual(state(), last);
    }
  });

  test("each line has its author", async () => {
    const { lines } = await request("blame", { path: "shared.txt" });
    assert.equal(lines.length, LINES);
    for (const turn of turns) {
      assert.equal(lines[turn.line - 1].turn, turn.name);
      const mine = lines[turn.line - 4];
      // The states before the first turn were not saved.
      assert.equal(mine.by, turn === turns[0] ? "unknown" : "user", JSON.stringify(mine));
    }
    assert.equal(lines[0].by, "unknown");
  });

  test("a commit of a turn has its state, and nothing else changes", async () => {
    const turn = turns[7];
    const git = (...words) => execFileSync("git", words, { cwd: workspace.project, encoding: "utf8" });
    const before = [git("rev-parse", "HEAD"), git("status", "--porcelain"), state()];
    const { code, output } = await workspace.sightline("checkpoint", "commit", `${turn.name}+`, "--branch", "turn");
    assert.equal(code, 0, output);
    assert.deepEqual([git("rev-parse", "HEAD"), git("status", "--porcelain"), state()], before);
    const files = git("ls-tree", "-r", "--name-only", "turn").trim().split("\n");
    assert.deepEqual(files, Object.keys(turn.after).sort());
    for (const file of files) assert.equal(git("show", `turn:${file}`), turn.after[file], file);
  });
});

test("two agents at once share what both change", { skip }, async () => {
  const workspace = new Workspace("at-once");
  const models = [];
  try {
    const [claude, codex] = ["claude", "codex"].map((name) => agents.find((agent) => agent.name === name));
    writeFileSync(join(workspace.project, "both.txt"), "one\ntwo\nthree\n");
    for (const agent of [claude, codex]) {
      models.push(await startModel());
      agent.configure(workspace, models.at(-1).url);
    }
    const { code, output } = await workspace.sightline("agents", "install", "--agent", "claude", "--agent", "codex", "--yes");
    assert.equal(code, 0, output);
    const [began, done] = ["began", "done"].map((name) => join(workspace.folder, name));
    // The turn of Codex lies within that of Claude Code.
    const commands = [
      [claude, `sed -i 1s/.*/claude/ both.txt; touch ${began}; until [ -e ${done} ]; do sleep 0.1; done; echo c > claude.txt`],
      [codex, `sed -i 3s/.*/codex/ both.txt; echo c > codex.txt`],
    ];
    const runs = commands.map(async ([agent, command], at) => {
      const model = models[at];
      model.plan = [agent.run(command)];
      while (agent === codex && !existsSync(began)) await sleep(50);
      const ran = await workspace.agent(agent.command(agent.path, `At once by ${agent.name}`), agent.env(model.url));
      writeFileSync(agent === codex ? done : began, "");
      return ran.output;
    });
    const outputs = await Promise.all(runs);
    const listed = await workspace.sightline("request", "sightline/listTurns");
    const { turns } = JSON.parse(listed.output);
    const files = (name) => turns.find((turn) => turn.name === name).files.map(({ path, sharedWith = [] }) => [path, ...sharedWith]);
    const shared = ["both.txt", "codex-1.1"];
    assert.deepEqual(files("claude-1.1"), [shared, ["claude.txt"], ["codex.txt", "codex-1.1"]], outputs.join("\n"));
    assert.deepEqual(files("codex-1.1"), [["both.txt", "claude-1.1"], ["codex.txt", "claude-1.1"]], listed.output);
    const before = snapshot(workspace.project);
    const reverted = await workspace.sightline("checkpoint", "restore", "codex-1.1", "--only", "turn", "--yes");
    assert.match(reverted.output, /warning claude-1\.1 ran at the same time/);
    assert.deepEqual(snapshot(workspace.project), { ...omit(before, "codex.txt"), "both.txt": "claude\ntwo\nthree\n" });
    await workspace.sightline("checkpoint", "undo", "--yes");
    assert.deepEqual(snapshot(workspace.project), before);
  } finally {
    for (const model of models) model.close();
    workspace.close();
  }
});

for (const agent of AGENTS) {
  const path = agentProgram(agent.name, agent.program);
  test(`a turn of ${agent.name} ends`, { skip: !path && `${agent.name} is not in target/agents` }, async () => {
    const workspace = new Workspace(agent.name);
    const model = await startModel();
    try {
      agent.configure(workspace, model.url);
      const { code, output } = await workspace.sightline("agents", "install", "--agent", agent.name, "--yes");
      assert.equal(code, 0, output);
      model.plan = [agent.run("echo changed > changed.txt")];
      const words = [...(agent.interpreter ? [agent.interpreter] : []), ...agent.command(path, "Change it")];
      const ran = await workspace.agent(words, agent.env(model.url));
      assert.ok(existsSync(join(workspace.project, "changed.txt")), ran.output);
      const listed = await workspace.sightline("request", "sightline/listTurns");
      const { turns } = JSON.parse(listed.output);
      assert.equal(turns.length, 1, listed.output);
      assert.deepEqual(turns[0].files.map(({ path }) => path), ["changed.txt"], listed.output);
      assert.ok(turns[0].after && turns[0].endedAt, listed.output);
      // Plugins of Cline get no prompt.
      if (agent.name !== "cline") assert.match(turns[0].prompt, /^"?Change it/);
    } finally {
      model.close();
      workspace.close();
    }
  });
}
