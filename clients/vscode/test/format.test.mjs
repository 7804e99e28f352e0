// Tests relative times, the marks of changed files, and the list of connected agents.

import assert from "node:assert/strict";
import { test } from "node:test";

import { source } from "../scripts/source.mjs";

const { count, dayName, describeAgents, relativeTime, size, statusMark } = await source("format.ts");

test("times are relative, in the largest unit that fits", () => {
  const seconds = { "just now": 59, "1 minute ago": 60, "59 minutes ago": 3599, "2 hours ago": 7300, "1 day ago": 86_400, "3 weeks ago": 22 * 86_400, "1 year ago": 400 * 86_400 };
  for (const [text, age] of Object.entries(seconds)) {
    assert.equal(relativeTime(1_000, 1_000 + age * 1000), text);
  }
  assert.equal(relativeTime(5_000, 1_000), "just now", "the clock of the server may be ahead");
});

test("days have a name, numbers a noun, and sizes a unit", () => {
  const now = new Date(2026, 0, 2, 0, 10).getTime();
  const names = [0, 20, 24 * 60 + 20].map((minutes) => dayName(now - minutes * 60_000, now));
  assert.deepEqual(names, ["Today", "Yesterday", "Wednesday, December 31, 2025"]);
  assert.deepEqual([count(1, "file"), count(0, "turn")], ["1 file", "0 turns"]);
  assert.deepEqual([size(1), size(1_500_000)], ["1 kB", "1.5 MB"]);
});

test("changed files have the letter and color of source control", () => {
  assert.deepEqual(["modified", "added", "deleted", "renamed", "typeChanged"].map((status) => statusMark(status).letter).join(""), "MADRT");
  assert.equal(statusMark("added").color, "gitDecoration.addedResourceForeground");
  assert.equal(statusMark("toString"), undefined, "a kind that a newer server sends");
});

test("the connected agents are listed, and that they are paused", () => {
  const [names, paused] = ["Connected agents: claude-code, Codex", "The selection is not shown to agents"];
  assert.deepEqual(describeAgents({ agents: [], isPaused: false }), []);
  assert.deepEqual(describeAgents({ agents: ["claude-code", "Codex"], isPaused: false }), [names]);
  assert.deepEqual(describeAgents({ agents: ["claude-code", "Codex"], isPaused: true }), [names, paused]);
});
