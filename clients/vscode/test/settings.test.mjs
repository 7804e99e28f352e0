// Tests that the settings in the manifest match the schema of the server.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { configuration, manifests } from "../scripts/settings.mjs";

const schema = JSON.parse(
  await readFile(new URL("../../../schemas/settings.schema.json", import.meta.url), "utf8"),
);
const groups = configuration(schema);
const properties = Object.assign({}, ...groups.map((group) => group.properties));

test("the manifest is up to date with the schema", async () => {
  const { written, wanted } = await manifests();
  assert.equal(written, wanted, "run `npm run settings`");
});

test("unset settings have no default that the server would use", () => {
  for (const [name, { type, default: value }] of Object.entries(properties)) {
    assert.notEqual(value, undefined, `VS Code would invent a default of ${name}`);
    if (value === null) {
      assert.ok(type.includes("null"), `${name} may be null`);
    }
  }
  assert.equal(properties["sightline.log.file"].default, null);
});

test("a folder cannot change settings of the server", () => {
  for (const [name, { scope }] of Object.entries(properties)) {
    assert.equal(scope, name === "sightline.trace.server" ? "window" : "machine", name);
  }
});

test("enum values have descriptions and references are resolved", () => {
  const ignored = properties["sightline.environment.ignoredFiles"];
  assert.deepEqual(ignored.enum, ["hide", "lock"]);
  assert.equal(ignored.enumDescriptions.length, 2);
  assert.ok(!JSON.stringify(properties).includes("$ref"));
});

test("settings are in groups, without those that mean nothing in VS Code", () => {
  assert.deepEqual(groups.map(({ title }) => title), ["Agents", "Access", "Checkpoints", "Context", "Diagnostics", "Server"]);
  for (const part of ["notifications", "commands", "conversation", "tasks"]) {
    assert.deepEqual(Object.keys(properties).filter((name) => name.startsWith(`sightline.${part}`)), []);
  }
});
