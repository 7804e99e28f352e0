    beforeTool({ toolCall, input }) {
      try {
        const answer = hook("PreToolUse", { tool_name: toolCall?.toolName ?? toolCall?.name ?? "", tool_input: input })
        return answer.cancel ? { skip: true, reason: answer.errorMessage } : undefined
      } catch (error) {
        return { skip: true, reason: error.message }
      }
    },
