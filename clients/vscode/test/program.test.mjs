// Tests the search of the server program.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { source } from "../scripts/source.mjs";

const { search } = await source("program.ts");

let home;
const places = (given = {}) => ({ configured: "", packaged: path.join(home, "server"), path: [path.join(home, "bin")], home, isWindows: false, ...given });
const add = async (name) => {
  const file = path.join(home, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, "", { mode: 0o755 });
  return file;
};

before(async () => {
  home = await mkdtemp(path.join(tmpdir(), "sightline-program-"));
});

after(() => rm(home, { recursive: true }));

test("a missing program is reported with the searched places", () => {
  const { program, reason, folders } = search(places({ path: [path.join(home, "bin"), "relative", ""] }));
  assert.equal(program, undefined);
  assert.equal(reason, "there is no program “sightline” in the extension, on the PATH (1 folder) or in ~/.cargo/bin");
  assert.deepEqual(folders, ["server", "bin", ".cargo/bin"].map((name) => path.join(home, name)));
});

test("a wrong setting is reported with its value, and nothing else is searched", async () => {
  await add("bin/sightline");
  assert.equal(search(places({ configured: "/nope" })).reason, "/nope (setting sightline.server.path) is not a program");
  assert.equal(search(places({ configured: "bin/sightline" })).reason, "bin/sightline (setting sightline.server.path) is not an absolute path");
  assert.equal(search(places({ configured: "~/bin/sightline" })).program, path.join(home, "bin/sightline"));
});

test("the setting precedes the extension, which precedes the PATH", async () => {
  const onPath = await add("bin/sightline");
  assert.equal(search(places()).program, onPath);
  const packaged = await add("server/sightline");
  assert.equal(search(places()).program, packaged);
  assert.equal(search(places({ configured: onPath })).program, onPath);
});
