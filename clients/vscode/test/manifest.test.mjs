// What the manifest promises is there.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const read = (name) => readFile(new URL(name, import.meta.url), "utf8");
const { contributes } = JSON.parse(await read("../package.json"));
const source = await read("../src/commands.ts");
const methods = JSON.parse(await read("../../../schemas/methods.json"));

const declared = contributes.commands.map(({ command }) => command);
const registered = [...source.matchAll(/^ {4}"(sightline\.[\w.]+)":/gm)].map(([, name]) => name);

test("every command that is declared is registered, and the other way round", () => {
  assert.ok(registered.length > 10);
  assert.deepEqual(registered.sort(), declared.sort());
});

test("every command in a menu is declared", () => {
  const used = Object.values(contributes.menus).flat().map(({ command }) => command);
  assert.deepEqual(used.filter((command) => !declared.includes(command)), []);
});

test("no command has the name of one of the server's, which the language client registers", () => {
  const names = JSON.stringify(methods);
  for (const command of declared) {
    assert.ok(!names.includes(`"${command.replace(".", "/")}"`), command);
  }
});
