// The settings in the manifest are those of the server's schema.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { configuration, manifests } from "../scripts/settings.mjs";

const schema = JSON.parse(
  await readFile(new URL("../../../schemas/settings.schema.json", import.meta.url), "utf8"),
);
const { properties } = configuration(schema);

test("the manifest has the settings that the schema has now", async () => {
  const { written, wanted } = await manifests();
  assert.equal(written, wanted, "run `npm run settings`");
});

test("no setting has a value that nobody set and the server would take for one", () => {
  for (const [name, { type, default: value }] of Object.entries(properties)) {
    assert.notEqual(value, undefined, `VS Code makes up a default of ${name}`);
    if (value === null) {
      assert.ok(type.includes("null"), `${name} may be null`);
    }
  }
  assert.equal(properties["sightline.tasks.maxCount"].default, null, "0 would delete every task");
});

test("a folder cannot bring along where files are written, or what agents may read", () => {
  const names = ["server.path", "storage.path", "log.file", "access.outsideWorkspace", "access.recursiveReaders"];
  for (const name of names) {
    assert.equal(properties[`sightline.${name}`].scope, "machine", name);
  }
});

test("values of a choice are explained, references are resolved", () => {
  const ignored = properties["sightline.environment.ignoredFiles"];
  assert.deepEqual(ignored.enum, ["hide", "lock"]);
  assert.equal(ignored.enumDescriptions.length, 2);
  assert.ok(!JSON.stringify(properties).includes("$ref"));
});

test("what the extension decides itself is no setting", () => {
  assert.ok(!("sightline.notifications" in properties));
});
