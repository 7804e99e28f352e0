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

// No event tells that a session continues: it is older than this process.
const started = Date.now()
const known = new Set()

async function isResumed(client, id) {
  if (known.has(id)) return false
  known.add(id)
  const { data } = await client.session.get({ path: { id } }).catch(() => ({}))
  return data?.time.created < started
}

export const Sightline = async ({ client, directory }) => ({
{commands}{context}{access}{turns}})
