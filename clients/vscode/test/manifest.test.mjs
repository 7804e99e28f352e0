// Tests that the manifest matches the code.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const read = (name) => readFile(new URL(name, import.meta.url), "utf8");
const { contributes } = JSON.parse(await read("../package.json"));
const source = await read("../src/commands.ts");
const methods = JSON.parse(await read("../../../schemas/methods.json"));

const declared = contributes.commands.map(({ command }) => command);
const registered = [...source.matchAll(/^ {4}"(sightline\.[\w.]+)":/gm)].map(([, name]) => name);

test("declared and registered commands are the same", () => {
  assert.ok(registered.length > 10);
  assert.deepEqual(registered.sort(), declared.sort());
});

test("all menu commands are declared", () => {
  const used = Object.values(contributes.menus).flat().map(({ command }) => command);
  assert.deepEqual(used.filter((command) => !declared.includes(command)), []);
});

test("no command has the name of a server command", () => {
  const names = JSON.stringify(methods);
  for (const command of declared) {
    assert.ok(!names.includes(`"${command.replace(".", "/")}"`), command);
  }
});
