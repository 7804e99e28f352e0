// Tests that clients/types/protocol.ts compiles in strict mode and rejects
// mistakes of clients.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import test from "node:test";

const tsc = join(import.meta.dirname, "node_modules/.bin/tsc");

test("a client compiles against the types", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, "--project", import.meta.dirname], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout + stderr);
});
