    beforeRun() {
      try {
        const { contextModification } = hook("UserPromptSubmit", {})
        return contextModification ? { appendContext: contextModification } : undefined
      } catch {
        // A prompt is never stopped.
        return undefined
      }
    },
