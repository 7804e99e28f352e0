// Tests that the manifest matches the code.

import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { test } from "node:test";

const read = (name) => readFile(new URL(name, import.meta.url), "utf8");
const manifest = JSON.parse(await read("../package.json"));
const { contributes } = manifest;
const source = (await read("../src/commands.ts")) + (await read("../src/checkpoints/commands.ts")) + (await read("../src/mcpServers.ts"));
const methods = JSON.parse(await read("../../../schemas/methods.json"));

const declared = contributes.commands.map(({ command }) => command);
const registered = [...source.matchAll(/^ {4,6}"(sightline\.[\w.]+)":/gm)].map(([, name]) => name);

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

test("commands that ask have titles that end in an ellipsis character", () => {
  const asking = contributes.commands.filter(({ title }) => title.endsWith("…")).map(({ command }) => command);
  assert.deepEqual(asking.sort(), [
    "sightline.agents.connect",
    "sightline.checkpoint.commit",
    "sightline.checkpoint.compare",
    "sightline.checkpoint.create",
    "sightline.checkpoint.delete",
    "sightline.checkpoint.rename",
    "sightline.checkpoint.restore",
    "sightline.checkpoint.restoreFile",
    "sightline.checkpoint.undoRestore",
    "sightline.checkpoint.undoThis",
    "sightline.checkpoints.filter",
    "sightline.checkpoints.prune",
    "sightline.mcp.trust",
    "sightline.turn.restore",
    "sightline.turn.restoreAfter",
    "sightline.turn.revert",
  ]);
  assert.ok(!JSON.stringify(contributes.commands).includes("..."));
});

test("undo is offered only if there is a restore to undo", () => {
  const entries = ["commandPalette", "view/title"].map((menu) =>
    contributes.menus[menu].find(({ command }) => command === "sightline.checkpoint.undoRestore"),
  );
  for (const { when } of entries) {
    assert.match(when, /sightline\.canUndo/);
  }
});

test("the palette and the context menu of the editor send to agents and pause them, while the server runs", () => {
  for (const menu of ["commandPalette", "editor/context"]) {
    for (const name of ["sightline.agents.send", "sightline.bridges.pause"]) {
      const entry = contributes.menus[menu].find(({ command }) => command === name);
      assert.match(entry.when, /^sightline\.running/, `${name} in ${menu}`);
    }
  }
});

test("the walkthrough runs declared commands and shows packed images", async () => {
  const [{ steps }] = contributes.walkthroughs;
  const commands = steps.flatMap(({ description }) => [...description.matchAll(/\(command:([\w.]+)\)/g)].map(([, name]) => name));
  assert.equal(commands.length, steps.length);
  assert.deepEqual(commands.filter((command) => !declared.includes(command)), []);
  for (const { media } of steps) {
    assert.match(media.image, /^screenshots\/[\w-]+\.png$/);
    await access(new URL(`../${media.image}`, import.meta.url));
  }
});

test("the readme shows the images of the walkthrough with the same alt texts", async () => {
  const readme = await read("../README.md");
  for (const { media } of contributes.walkthroughs[0].steps) {
    assert.ok(readme.includes(`![${media.altText}](${media.image})`), media.image);
  }
});

test("the gallery gets an icon of 128 by 128 pixels, the readme and the changelog", async () => {
  const icon = await readFile(new URL(`../${manifest.icon}`, import.meta.url));
  assert.equal(icon.toString("latin1", 1, 4), "PNG");
  assert.deepEqual([icon.readUInt32BE(16), icon.readUInt32BE(20)], [128, 128]);
  const packed = (await read("../.vscodeignore")).split("\n");
  for (const pattern of ["!README.md", "!CHANGELOG.md", "!media/**", "!screenshots/*.png"]) {
    assert.ok(packed.includes(pattern), pattern);
  }
});

test("the readme says that there is no telemetry, and links only to packed files", async () => {
  const readme = await read("../README.md");
  assert.match(readme, /no telemetry/);
  const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target);
  assert.deepEqual(links.filter((target) => !/^(https:|screenshots\/)/.test(target)), []);
});
