// Tests of the functions for text and diffs, without a browser.

import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";

import { build } from "esbuild";

/** Imports a module of the page. */
async function load(name) {
  const { outputFiles } = await build({ entryPoints: [path.resolve(import.meta.dirname, "../src", name)], bundle: true, write: false, format: "esm", target: "es2024" });
  return await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}

const { plural, size, split, visible, visibleText } = await load("text.ts");
const { cut, parse } = await load("timeline/diff.ts");

test("characters that are not seen are shown", () => {
  assert.equal(visible("a\u202eb"), "a⟨U+202E⟩b");
  assert.equal(visible("a\nb\tc\x7f"), "a␊b␉c␡");
  assert.equal(visible("\u{e0041}\ufeff\u2066\u200b"), "⟨U+E0041⟩⟨U+FEFF⟩⟨U+2066⟩⟨U+200B⟩");
  assert.equal(visible("naïve 日本 👩🏽 <img onerror=x>"), "naïve 日本 👩🏽 <img onerror=x>");
  assert.equal(visibleText("a\n\tb\r\n\x1b[0m"), "a\n\tb␍\n␛[0m");
});

test("numbers and paths", () => {
  assert.deepEqual([plural(1, "file"), plural(1200, "file")], ["1 file", "1,200 files"]);
  assert.deepEqual([size(999), size(1500), size(24_000_000)], ["999 B", "1.5 kB", "24 MB"]);
  assert.deepEqual([split("a/b/c"), split("c"), split("a/b/"), split("b/")], [["a/b/", "c"], ["", "c"], ["a/", "b/"], ["", "b/"]]);
});

const PATCH = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,4 @@
 one
-two
+2
+2.5
 three
@@ -9 +10 @@ fn name()
---- a
+++ b
\\ No newline at end of file
`;

test("a diff is parsed into blocks", () => {
  const [first, second, ...rest] = parse(PATCH);
  assert.equal(rest.length, 0);
  assert.deepEqual(
    first.blocks.map(({ kind, before, after, lines }) => [kind, before, after, lines.join("|")]),
    [
      ["same", 1, 1, "one"],
      ["removed", 2, 2, "two"],
      ["added", 3, 2, "2|2.5"],
      ["same", 3, 4, "three"],
    ],
  );
  // Lines that look like the names of files.
  assert.deepEqual(second.blocks.map(({ kind, lines }) => [kind, lines[0]]), [["removed", "--- a"], ["added", "++ b"], ["note", "No newline at end of file"]]);
});

test("a long diff is cut at a line", () => {
  const [cutHunks, lines] = cut(parse(PATCH), 3);
  assert.equal(lines, 8);
  assert.deepEqual(cutHunks.map(({ blocks }) => blocks.flatMap(({ lines }) => lines)), [["one", "two", "2"]]);
});
