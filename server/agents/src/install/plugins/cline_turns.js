    afterRun() {
      try {
        hook("Stop", {})
      } catch {
        // The run has ended.
      }
    },
