// Written by `sightline agents install`; removed by `sightline agents uninstall`.
// Adds the editor's context to prompts, and refuses tools that use denied files.
import { spawnSync } from "node:child_process"

const PROGRAM = "{program}"

function hook(event, input) {
  const { error, status, stdout } = spawnSync(PROGRAM, ["hook", event, "--agent", "cline"{flags}], {
    input: JSON.stringify({ session_id: String(process.pid), cwd: process.cwd(), ...input }),
    encoding: "utf8",
    // Cline ends a run if a plugin takes more than 3 seconds.
    timeout: 2_500,
  })
  if (error || status !== 0) throw new Error("{not checked}")
  return stdout.trim() === "" ? {} : JSON.parse(stdout)
}

// The prompt is the last message of the user: `<user_input mode="act">TEXT</user_input>`.
function promptOf(context) {
  const last = context?.snapshot?.messages?.findLast(({ role }) => role === "user")
  const text = last?.content?.map?.((part) => part.text ?? "").join("\n")
  if (!text) return {}
  const [, mode, prompt] = /^<user_input mode="(\w+)">([^]*)<\/user_input>\s*$/.exec(text) ?? [null, undefined, text]
  return { prompt, permission_mode: mode }
}

export default {
  name: "sightline",
  manifest: { capabilities: ["hooks"] },
  hooks: {
{context}{access}{turns}  },
}
