// Tests the WebAssembly component of the extension with the calls of Zed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { load, start } from "./host.mjs";

const repository = join(import.meta.dirname, "../..");
const component = join(repository, "target/zed/wasm32-wasip2/release/sightline_zed.wasm");
const server = "sightline";
const manifest = await readFile(join(repository, "clients/zed/extension.toml"), "utf8");
const version = /^version = "(.*)"$/m.exec(manifest)[1];

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
      settings: { lsp: { sightline: { binary } } },
      program: "/bin/sightline",
      shell: [["A", "0"]],
    });
    assert.deepEqual(zed.extension.languageServerCommand(server, zed.worktree), {
      command: "/opt/sightline",
      args: ["--stdio", "--x"],
      env: [["A", "1"]],
    });
  });

  describe("without a server", () => {
    const name = `sightline-v${version}-x86_64-unknown-linux-musl`;
    const release = `owner/sightline v${version}`;
    const program = `releases/v${version}/${name}/sightline`;
    let directory;
    let releases;
    beforeEach(async () => {
      directory = await mkdtemp(join(folder, "work-"));
      const packed = await mkdtemp(join(folder, "release-"));
      await mkdir(join(packed, name));
      await writeFile(join(packed, name, "sightline"), "#!/bin/sh\necho downloaded\n");
      execFileSync("tar", ["-czf", join(packed, `${name}.tar.gz`), "-C", packed, name]);
      releases = { [release]: [join(packed, "SHA256SUMS"), join(packed, `${name}.tar.gz`)] };
    });

    test("that of the release is downloaded once", async () => {
      await mkdir(join(directory, "releases/v0.0.1"), { recursive: true });
      const zed = await start(make, { directory, releases });
      const command = () => zed.extension.languageServerCommand(server, zed.worktree).command;
      assert.equal(command(), program);
      assert.equal(execFileSync(join(directory, program), { encoding: "utf8" }), "downloaded\n");
      assert.deepEqual(zed.statuses, ["sightline downloading", "sightline none"]);
      assert.deepEqual(await readdir(join(directory, "releases")), [`v${version}`]);

      assert.equal(command(), program);
      assert.equal(zed.downloads, 1);
      assert.deepEqual(zed.extension.contextServerCommand(server, zed.project), { command: program, args: ["mcp"], env: [] });
    });

    test("an interrupted download is repeated", async () => {
      const zed = await start(make, { directory, releases });
      zed.isOffline = true;
      const command = () => zed.extension.languageServerCommand(server, zed.worktree).command;
      assert.throws(command, (error) => /the connection was closed/.test(error.payload ?? error));
      assert.deepEqual(zed.statuses, ["sightline downloading", "sightline failed"]);
      zed.isOffline = false;
      assert.equal(command(), program);
      assert.equal(zed.downloads, 2);
    });

    test("and without a release, the message names the setting", async () => {
      const zed = await start(make, { directory });
      assert.throws(
        () => zed.extension.languageServerCommand(server, zed.worktree),
        (error) => /not on the PATH.*has no release.*"binary"/s.test(error.payload ?? error),
      );
    });

    test("the tools for agents are started from the PATH", async () => {
      const zed = await start(make, { directory });
      const { command, args } = zed.extension.contextServerCommand(server, zed.project);
      assert.deepEqual([command, ...args], ["/usr/bin/env", "sightline", "mcp"]);
    });
  });

  test("the settings reach the server when it starts and when it asks", async () => {
    const settings = { notifications: true, storage: { path: "/a" } };
    const initialization_options = { storage: { path: "/b" } };
    const zed = await start(make, { settings: { lsp: { sightline: { settings, initialization_options } } } });
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
