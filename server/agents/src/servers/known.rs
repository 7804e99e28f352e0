//! The servers that `sightline mcp add NAME` knows.

/// A server that many people use.
#[derive(Clone, Copy, Debug)]
pub struct KnownServer {
    /// Its name.
    pub name: &'static str,
    /// Program and arguments.
    pub command: &'static [&'static str],
    /// What it can do, and what to know.
    pub about: &'static str,
}

/// The servers that `sightline mcp add NAME` knows. The package manager of the user picks the version.
pub(super) const KNOWN: &[KnownServer] = &[
    KnownServer {
        name: "chrome-devtools",
        command: &["npx", "-y", "chrome-devtools-mcp@latest", "--isolated"],
        about: "inspects pages in Chrome: network, console, performance; sends what the pages send",
    },
    KnownServer {
        name: "everything",
        command: &[
            "npx",
            "-y",
            "@modelcontextprotocol/server-everything",
            "stdio",
        ],
        about: "shows every feature of the protocol; for tests",
    },
    KnownServer {
        name: "fetch",
        command: &["uvx", "mcp-server-fetch"],
        about: "reads web pages, also those of this machine and its network",
    },
    KnownServer {
        name: "filesystem",
        command: &[
            "npx",
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "${workspaceFolder}",
        ],
        about: "reads, writes and lists the files of the workspace",
    },
    KnownServer {
        name: "git",
        command: &[
            "uvx",
            "mcp-server-git",
            "--repository",
            "${workspaceFolder}",
        ],
        about: "reads and changes the git repository: status, diffs, commits, branches",
    },
    KnownServer {
        name: "memory",
        command: &["npx", "-y", "@modelcontextprotocol/server-memory"],
        about: "keeps notes between sessions in a file of its package, for all projects",
    },
    KnownServer {
        name: "playwright",
        command: &[
            "npx",
            "-y",
            "@playwright/mcp@latest",
            "--headless",
            "--isolated",
        ],
        about: "uses web pages in a browser: navigates, clicks, types, takes screenshots",
    },
    KnownServer {
        name: "time",
        command: &["uvx", "mcp-server-time"],
        about: "tells the time and converts time zones",
    },
];
