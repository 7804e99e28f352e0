// Tests an editor without a server.

import { symlink } from "node:fs/promises";
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
