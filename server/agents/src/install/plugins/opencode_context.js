  "chat.message": async (input, output) => {
    const prompt = output.parts.map((part) => part.text ?? "").join("\n")
    const answers = []
    try {
      const session = { session_id: input.sessionID, cwd: directory }
      if (await isResumed(client, input.sessionID)) answers.push(hook("SessionStart", { ...session, source: "resume" }))
      const permission_mode = input.agent === "plan" ? "plan" : undefined
      answers.push(hook("UserPromptSubmit", { ...session, prompt, permission_mode }))
    } catch {
      // A prompt is never stopped.
    }
    for (const answer of answers) {
      const text = answer.hookSpecificOutput?.additionalContext
      if (!text) continue
      const id = `prt_${Date.now().toString(16)}${Math.random().toString(36).slice(2)}`
      output.parts.push({ id, messageID: output.message.id, sessionID: input.sessionID, type: "text", text, synthetic: true })
    }
  },
  "tool.execute.after": async (input, output) => {
    try {
      const answer = hook("PostToolUse", { session_id: input.sessionID, cwd: directory, tool_name: input.tool, tool_input: input.args ?? {}, tool_response: output })
      Object.assign(output, answer.hookSpecificOutput?.updatedToolOutput)
    } catch {
      // The tool has run.
    }
  },
