  "tool.execute.before": async (input, output) => {
    const answer = hook("PreToolUse", { session_id: input.sessionID, cwd: directory, tool_name: input.tool, tool_input: output.args })
    const { permissionDecision, permissionDecisionReason } = answer.hookSpecificOutput ?? {}
    if (permissionDecision === "deny") throw new Error(permissionDecisionReason)
  },
