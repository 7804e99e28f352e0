  config: async (config) => {
    // The program runs the commands with this shell.
    if (config.shell) process.env.SHELL = config.shell
    config.shell = PROGRAM
  },
