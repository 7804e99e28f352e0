// Tests the texts of error messages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { source } from "../scripts/source.mjs";

const { describeError, describeMissingProgram } = await source("messages.ts");
const { search } = await source("program.ts");

test("the message about a missing program names the searched places, and the log lists the folders", () => {
  const places = { configured: "", packaged: "/nope/server", path: ["/nope/bin"], home: "/nope", isWindows: false };
  const { shown, logged } = describeMissingProgram(search(places));
  assert.equal(shown, "Cannot find the Sightline server: there is no program “sightline” in the extension, on the PATH (1 folder) or in ~/.cargo/bin.");
  assert.deepEqual(logged.split("\n").slice(1), ["  /nope/server", "  /nope/bin", "  /nope/.cargo/bin"]);
});

test("the message about a wrong setting names the value and the setting", () => {
  const { shown } = describeMissingProgram(search({ configured: "/nope", packaged: "", path: [], home: "", isWindows: false }));
  assert.equal(shown, "Cannot find the Sightline server: /nope (setting sightline.server.path) is not a program.");
});

test("an error is shown without its kind or code, which are logged", () => {
  const error = new Error("no checkpoint matches “before”");
  for (const code of ["notFound", -32602]) {
    assert.deepEqual(describeError(error, code), {
      shown: "sightline: no checkpoint matches “before”",
      logged: `no checkpoint matches “before” (${code})`,
    });
  }
  assert.deepEqual(describeError("cannot write"), { shown: "sightline: cannot write", logged: "cannot write" });
});
