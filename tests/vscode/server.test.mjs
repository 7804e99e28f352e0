// Tests an editor without a server, and with one of another version.

import { rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before } from "node:test";

import { scenario, startEditor } from "./harness.mjs";

let editor;

before(async () => {
  editor = await startEditor({
    files: { "README.md": "# Shop\n" },
    machine: { "sightline.server.path": "~/sightline" },
    icon: "circle-slash",
  });
});

after(async () => {
  await editor?.stop();
});

scenario("the server starts while the message that it is missing is open", () => editor, async ({ home, status }) => {
  const message = editor.toast("Cannot find the Sightline server");
  await message.waitFor();

  await editor.showCheckpoints();
  const restart = editor.page.locator(".pane-body").getByRole("button", { name: "Restart Server" });
  await restart.waitFor();
  await symlink(process.env.SIGHTLINE_SERVER, path.join(home, "sightline"));
  await restart.click();

  await status.locator("[class*='codicon-eye']").waitFor();
  await message.waitFor();
});

// Announces another protocol than the real server, which it starts.
const OTHER_PROTOCOL = `#!${process.execPath}
const { spawn } = require("node:child_process");
const server = spawn(${JSON.stringify(process.env.SIGHTLINE_SERVER)}, process.argv.slice(2), { stdio: ["inherit", "pipe", "inherit"] });
server.stdout.on("data", (data) => process.stdout.write(data.toString("latin1").replace('"protocolVersion":1', '"protocolVersion":2'), "latin1"));
`;

scenario("a server with another protocol is stopped, and the message says what to update", () => editor, async ({ home, status }) => {
  const program = path.join(home, "sightline");
  await rm(program);
  await writeFile(program, OTHER_PROTOCOL, { mode: 0o755 });
  await editor.command("Sightline: Restart Server");
  await editor.toast("is not a Sightline server with protocol 1. Update it or the extension.").waitFor();
  await status.locator("[class*='codicon-circle-slash']").waitFor();

  await rm(program);
  await symlink(process.env.SIGHTLINE_SERVER, program);
  await editor.command("Sightline: Restart Server");
  await status.locator("[class*='codicon-eye']").waitFor();
});
