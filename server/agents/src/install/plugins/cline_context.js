    beforeRun(context) {
      try {
        const { contextModification } = hook("UserPromptSubmit", promptOf(context))
        return contextModification ? { appendContext: contextModification } : undefined
      } catch {
        // A prompt is never stopped.
        return undefined
      }
    },
