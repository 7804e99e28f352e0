// Written by `sightline agents install`; removed by `sightline agents uninstall`.
// Adds the editor's context to prompts, and refuses tools that use denied files.
import { spawnSync } from "node:child_process"

const PROGRAM = "{program}"

// A subagent has another session. Its turn is that of the session that started it.
const parents = new Map()

function hook(event, input) {
  const parent_session_id = parents.get(input.session_id)
  const { error, status, stdout } = spawnSync(PROGRAM, ["hook", event, "--agent", "opencode"{flags}], {
    input: JSON.stringify({ hook_event_name: event, parent_session_id, ...input }),
    encoding: "utf8",
    timeout: 10_000,
  })
  if (error || status !== 0) throw new Error("{not checked}")
  return stdout.trim() === "" ? {} : JSON.parse(stdout)
}

export const Sightline = async ({ directory }) => ({
{context}{access}{turns}})
