// Tests that the committed files are the result of a build, and what they must not contain.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

const ASSETS = path.resolve(import.meta.dirname, "../../../server/page/assets");
/** Maximum size of the script and the style. */
const MAX_BYTES = 60_000;
const SOURCES = path.resolve(import.meta.dirname, "../src");

test("the embedded files are up to date", async () => {
  const built = await mkdtemp(path.join(tmpdir(), "sightline-ui-"));
  try {
    execFileSync(process.execPath, [path.resolve(import.meta.dirname, "../scripts/build.mjs"), built]);
    const names = (await readdir(ASSETS)).sort();
    assert.deepEqual(names, (await readdir(built)).sort());
    for (const name of names) {
      const [committed, fresh] = await Promise.all([ASSETS, built].map((folder) => readFile(path.join(folder, name), "utf8")));
      assert.ok(committed === fresh, `${name} differs: run \`npm run build\` in clients/ui`);
    }
  } finally {
    await rm(built, { recursive: true });
  }
});

test("the bundle is small, and names no address and no way to insert HTML", async () => {
  const script = await readFile(path.join(ASSETS, "ui.js"), "utf8");
  const style = await readFile(path.join(ASSETS, "ui.css"), "utf8");
  const bytes = Buffer.byteLength(script) + Buffer.byteLength(style);
  assert.ok(bytes <= MAX_BYTES, `${bytes} bytes: remove what repeats`);
  // Names of XML namespaces are no addresses that are opened.
  const addresses = (script + style).match(/\bhttps?:\/\/(?!www\.w3\.org\/)[^\s"'`]+/g) ?? [];
  assert.deepEqual(addresses, []);
  const sources = await Promise.all((await readdir(SOURCES, { recursive: true })).filter((name) => /\.tsx?$/.test(name)).map((name) => readFile(path.join(SOURCES, name), "utf8")));
  assert.doesNotMatch(sources.join(""), /innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/);
});
