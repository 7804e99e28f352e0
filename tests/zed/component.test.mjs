// Tests the WebAssembly component of the extension with the calls of Zed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { load, start } from "./host.mjs";

const repository = join(import.meta.dirname, "../..");
const component = join(repository, "target/zed/wasm32-wasip2/release/sightline_zed.wasm");
const server = "sightline";

const missing = !existsSync(component) && `${component} is missing; tests/provide/wasm builds it`;
assert(!(missing && process.env.CI), missing);

describe("the Zed extension", { skip: missing }, () => {
  let folder;
  let make;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "sightline-zed-"));
    make = await load(component, folder);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test("the server on the search path is started", async () => {
    const shell = [["PATH", "/bin"]];
    const zed = await start(make, { program: "/bin/sightline", shell });
    assert.deepEqual(zed.extension.languageServerCommand(server, zed.worktree), {
      command: "/bin/sightline",
      args: ["--stdio"],
      env: shell,
    });
    assert.deepEqual(zed.asked, ["sightline"]);
  });

  test("the program of the settings is started", async () => {
    const binary = { path: "/opt/sightline", arguments: ["--stdio", "--x"], env: { A: "1" } };
    const zed = await start(make, {
      settings: { sightline: { binary } },
      program: "/bin/sightline",
      shell: [["A", "0"]],
    });
    assert.deepEqual(zed.extension.languageServerCommand(server, zed.worktree), {
      command: "/opt/sightline",
      args: ["--stdio", "--x"],
      env: [["A", "1"]],
    });
  });

  test("without a server the user is told what to do", async () => {
    const zed = await start(make);
    assert.throws(
      () => zed.extension.languageServerCommand(server, zed.worktree),
      (error) => /not on the PATH.*cargo install.*"binary"/s.test(error.payload ?? error),
    );
  });

  test("the settings reach the server when it starts and when it asks", async () => {
    const settings = { notifications: true, storage: { path: "/a" } };
    const initialization_options = { storage: { path: "/b" } };
    const zed = await start(make, { settings: { sightline: { settings, initialization_options } } });
    const { extension, worktree } = zed;
    assert.deepEqual(
      JSON.parse(extension.languageServerInitializationOptions(server, worktree)),
      { notifications: true, storage: { path: "/b" } },
    );
    assert.deepEqual(
      JSON.parse(extension.languageServerWorkspaceConfiguration(server, worktree)),
      { sightline: settings },
    );
  });

  test("without settings none are passed", async () => {
    const { extension, worktree } = await start(make);
    assert.equal(extension.languageServerInitializationOptions(server, worktree), undefined);
    assert.equal(extension.languageServerWorkspaceConfiguration(server, worktree), undefined);
  });
});
