// Written by `sightline agents install`; removed by `sightline agents uninstall`.
// Adds the editor's context to prompts, and refuses tools that use denied files.
import { spawnSync } from "node:child_process"

const PROGRAM = "{program}"

function hook(event, input) {
  const { error, status, stdout } = spawnSync(PROGRAM, ["hook", event, "--agent", "opencode"{flags}], {
    input: JSON.stringify({ hook_event_name: event, ...input }),
    encoding: "utf8",
    timeout: 10_000,
  })
  if (error || status !== 0) throw new Error("{not checked}")
  return stdout.trim() === "" ? {} : JSON.parse(stdout)
}

export const Sightline = async ({ directory }) => ({
{context}{access}})
