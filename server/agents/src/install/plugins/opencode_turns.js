  event: async ({ event }) => {
    const { info, sessionID } = event.properties ?? {}
    if (event.type === "session.compacted") {
      try {
        hook("PostCompact", { session_id: sessionID, cwd: directory })
      } catch {
        // The next prompt is only shorter.
      }
    }
    if (event.type === "session.created" && info?.parentID) {
      parents.set(info.id, parents.get(info.parentID) ?? info.parentID)
    }
    if (event.type === "session.idle" && !parents.has(sessionID)) {
      try {
        hook("Stop", { session_id: sessionID, cwd: directory })
      } catch {
        // The turn has ended.
      }
    }
  },
