-- Generated from the types in server/protocol. Do not edit. Change the types, then run
--   cargo xtask generate

--- Access of an agent to a path.
---@alias sightline.AccessKind
---| "allowed" # Inside a workspace root and not denied.
---| "denied" # Denied by a rule, or because access could not be determined.
---| "outside" # Outside every workspace root.

--- A line of a rule file.
---@class sightline.AccessRule
---@field line integer Line number, starting at 1; 0 for a built-in rule.
---@field pattern string The pattern as written.
---@field source string Rule file, relative to its workspace root; an absolute path for a file above the root; `built-in` for the rule that hides the rule file.

--- File access of agents.
---@class sightline.AccessSettings
---@field commands? sightline.AgentCommands What enforces the rules for commands of agents: a check of their command lines, or also the kernel, which hides denied files from commands (Linux, for agents that were connected with `sightline agents install --only commands`). Only in the settings of the user, not of a project. Default: `"check"`.
---@field mentions? sightline.Mentions Whether a prompt may mention a denied file with `@`. Agents add the content of mentioned files to the prompt themselves. Default: `"deny"`.
---@field outsideWorkspace? sightline.OutsideWorkspace Whether agents may read files outside every workspace folder. Default: `"deny"`.
---@field recursiveReaders? sightline.RecursiveReaders Whether agents may run commands that read whole folders, such as `grep -r` and `tar`, on folders with denied files that the command does not exclude. Default: `"deny"`.
---@field secrets? sightline.Secrets Whether agents may read files that usually contain secrets, such as `.env` and private keys. A line in `.clineignore` allows single ones: `!.env`. Default: `"deny"`.
---@field visibleTo? string[] First words of commands that may use denied files, such as `npm run dev`: the check of commands lets them pass, and `sightline exec` hides nothing from them. An entry holds only for a line with one simple command, without quotes. Only in the settings of the user, not of a project. Default: `[]`.

--- What enforces the access rules for commands of agents.
---@alias sightline.AgentCommands
---| "check" # Command lines are checked.
---| "hide" # Also, denied files that git does not track are hidden.

--- Coding agents.
---@class sightline.AgentSettings
---@field connect? sightline.ConnectedAgent[] Agents that learn the focused file and the selection as they change. Turns on the settings `bridges.*Ide` that they need. Default: `[]`.

--- One turn of an agent: a prompt and the edits that follow.
---@class sightline.AgentTurn
---@field agent string Name of the agent.
---@field session string Session of the agent.
---@field turn string Turn of the session, as the agent calls it, or its name.

--- Params of `sightline/appendMessages`.
---@class sightline.AppendMessagesParams
---@field messages sightline.Message[] New messages since the last call, in order.
---@field meta? sightline.MessageMeta Metadata stored with each message.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with `.`.

--- Result of `sightline/appendMessages`.
---@class sightline.AppendMessagesResult
---@field count integer Total number of messages since the last compaction, as returned by `sightline/loadTask`.

--- Params of `sightline/applyCompaction`.
---@class sightline.ApplyCompactionParams
---@field error? string Reason why there is no summary.
---@field maxFiles? integer Maximum number of files whose text is included. Defaults to 5.
---@field maxLinesPerFile? integer Maximum number of lines per included file. Defaults to 1000.
---@field messages? sightline.Message[] The whole conversation. Defaults to the stored conversation of `taskId`.
---@field model? sightline.ModelRef Model used to count the tokens of the conversation.
---@field retainFrom? integer Index of the first message to keep unchanged, from the plan. Computed if absent.
---@field summary? string The answer of the model.
---@field taskId? string Id of the task whose stored conversation is compacted.
---@field trigger? sightline.CompactionTrigger What triggered the compaction. Default: `"auto"`.

--- Result of `sightline/applyCompaction`.
---@class sightline.ApplyCompactionResult
---@field fallback boolean True if there was no summary and the newest part was kept instead.
---@field fallbackReason? string Reason why there was no summary.
---@field filesIncluded string[] Files whose text is included with the summary.
---@field messages sightline.Message[] The compacted conversation.
---@field postTokens integer Number of tokens after compaction.
---@field preTokens integer Number of tokens before compaction.

--- Author of a line.
---@alias sightline.BlameAuthor
---| "agent" # An agent: the line appeared in a turn.
---| "user" # The user or another program: the line appeared outside every turn.
---| "unknown" # The line is older than the checkpoints, or a state around its change was not saved.

--- Author of a line.
---@class sightline.BlameLine
---@field agent? string Name of the agent. Absent if several agents had a turn then.
---@field at? integer Time of the first checkpoint with the line, in milliseconds since the Unix epoch. Absent if no checkpoint has it yet, and for `unknown`.
---@field by sightline.BlameAuthor Author.
---@field line integer Number of the line, from 1.
---@field turn? string Name of the turn in which it was written. Absent if several turns ran then.
---@field turns? string[] Names of the turns, if several ran when it was written.

--- Params of `sightline/blame`.
---@class sightline.BlameParams
---@field path string File.
---@field root? string Path, URI or name of the workspace folder, if several have the file.

--- Result of `sightline/blame`.
---@class sightline.BlameResult
---@field lines sightline.BlameLine[] Each line of the file on disk, in order.

--- IDE protocols of coding agents. A bridge sends the focused file and the selection to every agent
--- that runs in a workspace folder. Files that agents may not see are never sent.
---@class sightline.BridgeSettings
---@field claudeIde? boolean Serve Claude Code and opencode: a WebSocket on loopback, and a lock file in `~/.claude/ide`. Default: `false`.
---@field codexIde? boolean Serve `/ide` of Codex: a local socket in the temporary folder. Default: `false`.
---@field copilotIde? boolean Serve Copilot CLI: a local socket, and a lock file in `~/.copilot/ide`. Default: `false`.
---@field geminiIde? boolean Serve gemini-cli and Qwen Code: HTTP on loopback, and files in the temporary folder and in `~/.qwen/ide`. Default: `false`.
---@field pause? boolean Show agents nothing of the editor. They stay connected. The command `sightline.pauseBridges` has the same effect until this setting changes. Default: `false`.
---@field selection? boolean Send selected text, not only the file and the position. Default: `true`.

--- Params of `sightline/checkAccess`.
---@class sightline.CheckAccessParams
---@field command? string Shell command line to check. The answer is advice, not a sandbox.
---@field commands? string[] More command lines to check, independently of each other. Default: `[]`.
---@field mentioned? boolean The user mentions the paths in a prompt. Setting `access.mentions` can allow them. Default: `false`.
---@field paths? string[] Paths to check: `file:` URIs, absolute paths, or paths relative to a workspace root. Default: `[]`.

--- Result of `sightline/checkAccess`.
---@class sightline.CheckAccessResult
---@field command? sightline.CommandAccess Result for the command, if the request has one.
---@field commands? sightline.CommandAccess[] One result per command of `commands`, in the same order. Default: `[]`.
---@field paths sightline.PathAccess[] One result per requested path, in the same order.

--- A checkpoint: the saved state of a workspace folder.
---@class sightline.Checkpoint
---@field added integer Files added since the previous checkpoint.
---@field bytes integer Total size of the files, in bytes.
---@field createdAt integer Creation time, in milliseconds since the Unix epoch.
---@field deleted integer Files deleted since the previous checkpoint.
---@field durationMs integer Time taken to create the checkpoint, in milliseconds.
---@field files integer Number of files in the checkpoint.
---@field group? sightline.GroupMember[] Checkpoints created together, one per workspace folder. Absent if there is one folder.
---@field head? sightline.CheckpointHead Branch and commit of the user's repository. Absent without a commit, and for a checkpoint of an older version.
---@field id string Id of the checkpoint: a git commit id of 40 hexadecimal digits.
---@field imported? string Id in the store the checkpoint was imported from. Accepted wherever a checkpoint id is expected.
---@field kind sightline.CheckpointKind Why the checkpoint was created. Default: `"manual"`.
---@field label? string Label chosen by the user.
---@field messages? integer Number of messages in the conversation of the task when the checkpoint was created.
---@field modified integer Files whose content or mode changed since the previous checkpoint.
---@field purpose? sightline.CheckpointPurpose Purpose of a checkpoint that was not requested by a client.
---@field restoredId? string Id of the checkpoint that was about to be restored, for an undo point of files.
---@field root string URI of the workspace folder.
---@field skipped sightline.SkippedPath[] Paths in the workspace that are not in the checkpoint. Ignored paths are not listed.
---@field taskId? string Task the checkpoint belongs to.
---@field turn? sightline.CheckpointTurn Turn of an agent at whose first edit or end the checkpoint was created automatically.
---@field undoneBy? string Id of the undo point of the undo, for an undo point whose restore was undone.

--- Branch and commit of the user's repository.
---@class sightline.CheckpointHead
---@field branch? string Name of the branch. Absent if a commit was checked out.
---@field commit string Id of the commit.

--- Why a checkpoint was created.
---@alias sightline.CheckpointKind
---| "turnStart" # Before the first edit of a turn of an agent.
---| "turnEnd" # At the end of a turn of an agent.
---| "manual" # On request.
---| "undoPoint" # Before a restore.
---| "imported" # Imported from the store of another tool.
---| "automatic" # Automatically, outside a turn.

--- Purpose of a checkpoint that was not requested by a client.
---@alias sightline.CheckpointPurpose
---| "undo" # Undo point, created before a restore.
---| "imported" # Imported from the store of another tool.

--- Workspace checkpoints.
---@class sightline.CheckpointSettings
---@field blameHover? boolean Show the author of a line, a turn, an agent or the user, when the mouse rests on it. Read when the editor starts. Default: `false`.
---@field exclude? string[] Names of folders to skip, in addition to ignored paths. Default: `["node_modules",".venv","__pycache__"]`.
---@field keepAutomatic? integer Number of automatic checkpoints to keep per workspace folder. A few more are kept until the oldest are removed together. Default: `200`.
---@field maxFileSize? integer Maximum file size, in bytes. Larger files are skipped. Default: `20971520`.
---@field maxFiles? integer Number of files above which the first checkpoint must be confirmed. Default: `500000`.
---@field maxTotalSize? integer Total size, in bytes, above which the first checkpoint must be confirmed. Default: `10737418240`.
---@field turnNames? sightline.TurnNames What is stored of the prompt of each turn of an agent, to find the turn again. It stays on this machine. Hooks read this setting from the configuration files, not from an editor. Default: `"prompt"`.

--- Params of `sightline/checkpointStats`.
---@class sightline.CheckpointStatsParams
---@field root? string Limits the operation to this workspace folder, given by path, URI or name.

--- Result of `sightline/checkpointStats`.
---@class sightline.CheckpointStatsResult
---@field bytes integer Disk usage, in bytes.
---@field count integer Number of stored checkpoints, including undo points.
---@field newest? integer Creation time of the newest checkpoint, in milliseconds since the Unix epoch.
---@field oldest? integer Creation time of the oldest checkpoint, in milliseconds since the Unix epoch.
---@field verifiedAt? integer Time of the last verification, if it found no problem, in milliseconds since the Unix epoch.

--- Turn of an agent that a checkpoint belongs to.
---@class sightline.CheckpointTurn
---@field agent string Name of the agent.
---@field endedAt? integer End of the turn, in milliseconds since the Unix epoch.
---@field name? string Name of the turn, such as `claude-2.3`. Accepted wherever a checkpoint id is expected, for the state before the turn; with a `+`, for the state after it.
---@field number? integer Number of the prompt in the session, from 1. The fields from here on are absent if the turn was not recorded here: by an older version, or on another machine.
---@field prompt? string The first characters of the prompt, if the setting `checkpoints.turnNames` stores them.
---@field session string Session of the agent.
---@field startedAt? integer Time of the prompt, in milliseconds since the Unix epoch.
---@field turn string The turn as stored with the checkpoint: its name or, by an older version or for a fetched checkpoint, what the agent called it.

--- Params of `sightline/classifyError`.
---@class sightline.ClassifyErrorParams
---@field error? any The error as received: the response body, or the error object with all its properties.
---@field provider? string Id of the provider.

--- Result of `sightline/classifyError`.
---@class sightline.ClassifyErrorResult
---@field contextWindowExceeded boolean True if the request is too long for the model. Truncate it and send it again.
---@field retryable boolean True if the same request may succeed later. Wait and send it again.

--- Params of `sightline/closeDiff`, server to client.
---@class sightline.CloseDiffParams
---@field diffId string The diff. A later result of its `sightline/openDiff` is ignored.

--- Access of a command line.
---@class sightline.CommandAccess
---@field allowed boolean False if any operand is denied.
---@field denied sightline.DeniedOperand[] Denied operands.
---@field instead? string A command that does the same without the denied files, if there is one.
---@field written? string[] Absolute paths that the command would write, create, move, link or remove, as far as its words show them. Default: `[]`.

--- Commands of `workspace/executeCommand`.
---@class sightline.CommandSettings
---@field showResults? boolean Show command results as a message or document. For editors that discard command results. Enabled by default only in Helix.

--- Params of `sightline/commitCheckpoint`.
---@class sightline.CommitCheckpointParams
---@field branch string Name of the new branch.
---@field id string Checkpoint, named as in `sightline/diffCheckpoints`: the name of a turn with a `+` is the state after it.
---@field message? string Commit message. By default the label of the checkpoint, or the prompt of the turn that ends with it.
---@field root? string Path, URI or name of the only workspace folder to search, unless the id is whole.

--- Result of `sightline/commitCheckpoint`.
---@class sightline.CommitCheckpointResult
---@field branch string Name of the branch.
---@field commit string Id of the commit.

--- Trigger of a compaction.
---@alias sightline.CompactionTrigger
---| "auto" # The context window was full.
---| "manual" # The user requested it.

--- An agent with an IDE protocol.
---@alias sightline.ConnectedAgent
---| "claude" # Claude Code.
---| "codex" # Codex.
---| "copilot" # Copilot CLI.
---| "gemini" # gemini-cli.
---| "opencode" # opencode.
---| "qwen" # Qwen Code.

--- Params of `sightline/connectedAgents`.
---@class sightline.ConnectedAgentsParams
---@field isPaused? boolean Pauses or resumes the IDE protocols of agents first, until the setting `bridges.pause` changes.

--- Rules for truncating conversations.
---@alias sightline.ConversationProfile
---| "default" # The rules of Sightline.
---| "cline" # Exactly the rules of Cline 3.89.

--- Truncation of conversations.
---@class sightline.ConversationSettings
---@field models? table<string, sightline.ModelSettings> Context windows by model id, for unknown models or to correct the built-in table. The context window in a request takes precedence.
---@field notices? sightline.NoticeSettings Notices that replace removed text.
---@field profile? sightline.ConversationProfile Rules for truncating conversations. Default: `"default"`.

--- Params of `sightline/countTokens`.
---@class sightline.CountTokensParams
---@field encoding? string Encoding to use regardless of the model: `o200k_base`, `o200k_harmony`, `cl100k_base`, `p50k_base`, `p50k_edit`, `r50k_base` or `gpt2`.
---@field messages? sightline.Message[] Messages to count, including per-message overhead. `content` is a string or a list of blocks. Default: `[]`.
---@field model? sightline.ModelRef Model to count for. Without `model` and `encoding`, `o200k_base` is used.
---@field taskId? string Id of the task of these messages. Usage reported for the task calibrates the count. Without texts and messages, counts the part of the stored conversation that would be sent.
---@field texts? string[] Texts to count. Special token markers count as plain text. Default: `[]`.
---@field usage? sightline.Usage Usage reported by the provider for a request with exactly these texts and messages. Later counts of the task start from it.

--- Result of `sightline/countTokens`.
---@class sightline.CountTokensResult
---@field calibration? number Ratio of tokens reported by the provider to tokens counted here, if usage was reported.
---@field encoding string Encoding used for the counts.
---@field exact boolean True if `tokens` is an exact count of the encoding, not an estimate.
---@field items integer[] Number of tokens of each text, then of each message, in request order.
---@field lower? integer Likely lower bound. Absent if the count is exact.
---@field method string Method used for the count, as text.
---@field tokens integer Total number of tokens: the sum of `items`, unless it is based on reported usage.
---@field upper? integer Likely upper bound. Absent if the count is exact.

--- What a command finds at a hidden path.
---@alias sightline.Cover
---| "file" # A file that cannot be opened.
---| "folder" # An empty folder.
---| "readOnly" # The file itself, which cannot be written: a file with access rules or settings. Git would fail to add an untracked file that it cannot read.

--- Params of `sightline/createCheckpoint`.
---@class sightline.CreateCheckpointParams
---@field automatic? boolean Created without a request of the user, outside a turn. Default: `false`.
---@field confirmLarge? boolean Create the first checkpoint even if the workspace exceeds the size limits. Default: `false`.
---@field first? boolean Only the first checkpoint of the folder is created: if there is one, the newest is returned. Default: `false`.
---@field label? string Label chosen by the user.
---@field root? string Path, URI or name of a workspace folder. If absent, creates a group with one checkpoint per folder.
---@field taskId? string Task the checkpoint belongs to.
---@field turn? sightline.AgentTurn Turn of an agent that is about to edit. If it is not known yet, it begins and gets a name. The checkpoint is automatic: it counts for the setting `checkpoints.keepAutomatic`, unless it has a label.
---@field turnEnd? boolean The turn ends. If nothing changed since the newest checkpoint, that one is returned, and none is created. Default: `false`.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Something that an agent was refused, that was hidden from it, or that it was allowed.
---@class sightline.Decision
---@field agent? string The agent, such as `claude`, or the client of the MCP server.
---@field at integer Time, in milliseconds since the Unix epoch.
---@field door string Where it was decided: `hook`, `block`, `mcp` (our tools), `hub` (tools of other servers), `bridge`, `lsp`, `cli` or `gateway`.
---@field rule? sightline.AccessRule The rule that decided.
---@field session? string The session, as the agent names it.
---@field subject string The file, or the first word of a command and a hash of it.
---@field tool? string The tool, event or method.
---@field verdict sightline.DecisionVerdict The decision.

--- Decision of `sightline/truncateHistory`.
---@alias sightline.DecisionOfTruncation
---| "fits" # The conversation fits.
---| "deduplicated" # Duplicate file reads were replaced, which saved enough.
---| "truncated" # Messages were left out.

--- A decision.
---@alias sightline.DecisionVerdict
---| "denied" # Refused.
---| "redacted" # Contents were replaced in a text.
---| "allowed" # Allowed.

--- Params of `sightline/deleteTask`.
---@class sightline.DeleteTaskParams
---@field taskId string Id of the task.

--- Result of `sightline/deleteTask`.
---@class sightline.DeleteTaskResult
---@field freedBytes integer Freed disk space, in bytes.

--- A denied file or folder.
---@class sightline.DeniedEntry
---@field kind sightline.FileKind Kind of the entry.
---@field path string Path relative to its workspace folder.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.
---@field reason? string Why it is denied, if no rule decides, such as a link that leads outside the workspace.
---@field rule? sightline.AccessRule The rule that denies it, or what a link leads to.
---@field uri string URI of the entry.

--- A command operand that names a denied file.
---@class sightline.DeniedOperand
---@field path string The operand after shell quote removal.
---@field reason string What the command would do with the file, as text.
---@field rule? sightline.AccessRule The matching rule, if a rule decided.

--- A diagnostic of a language server, as in LSP. Other fields are ignored.
---@class sightline.Diagnostic
---@field code? sightline.DiagnosticCode Code of the rule.
---@field message string The message.
---@field range sightline.Range Where it is.
---@field severity? integer 1 is an error, 2 a warning, 3 an information and 4 a hint. Defaults to an error.
---@field source? string Name of the tool.

--- Code of a diagnostic: a string or an integer.
---@alias sightline.DiagnosticCode string|integer

--- Diagnostics in open documents.
---@class sightline.DiagnosticSettings
---@field changedFiles? boolean Report open files that changed since the last checkpoint, as a hint on the first line. Default: `false`.
---@field rules? boolean Report mistakes in `.clineignore` and rules that match no file. Default: `true`.

--- Params of `sightline/diagnostics`.
---@class sightline.DiagnosticsParams
---@field paths? string[] Only of these files: `file:` URIs, absolute paths, or paths relative to a workspace root.

--- Result of `sightline/diagnostics`.
---@class sightline.DiagnosticsResult
---@field files sightline.FileDiagnostics[] Files with diagnostics, sorted by path.
---@field omitted integer Number of files left out because agents may not see them.
---@field text string The diagnostics as printed in the `diagnostics` section of the environment block, one line each.

--- Params of `sightline/didChangeAccessRules`, server to client.
---@class sightline.DidChangeAccessRulesParams
---@field root string URI of the workspace folder whose rules changed.

--- Params of `sightline/didChangeBridges`, server to client, and result of `sightline/connectedAgents`.
---@class sightline.DidChangeBridgesParams
---@field agents string[] Names of the agents that are connected by their IDE protocol, oldest connection first.
---@field environment? table<string, string> Environment variables for terminals of the editor, by which agents find this server without an option.
---@field isPaused boolean True if they get no editor state.

--- Params of `sightline/didChangeContext`, server to client.
---@class sightline.DidChangeContextParams
---@field revision integer Latest revision of the editor state.

--- Params of `sightline/didChangeDiagnostics`.
---@class sightline.DidChangeDiagnosticsParams
---@field diagnostics sightline.Diagnostic[] All diagnostics of the document, of all language servers. At most 200 are kept, the most severe ones.
---@field uri string URI of the document.

--- Params of `sightline/didChangeFiles`, server to client.
---@class sightline.DidChangeFilesParams
---@field uris string[] URIs of the open documents whose files changed.

--- Params of `sightline/didChangeMcpServers`.
---@class sightline.DidChangeMcpServersParams
---@field revision integer Number of the change.

--- Params of `sightline/didChangeTabs`.
---@class sightline.DidChangeTabsParams
---@field tabs sightline.Tab[] All tabs, in editor order.

--- Params of `sightline/didChangeTerminals`.
---@class sightline.DidChangeTerminalsParams
---@field terminals sightline.Terminal[] All terminals.

--- Params of `sightline/didChangeVisibleEditors`.
---@class sightline.DidChangeVisibleEditorsParams
---@field editors sightline.VisibleEditor[] All visible editors.

--- Params of `sightline/didCreateCheckpoint`.
---@class sightline.DidCreateCheckpointParams
---@field checkpoint sightline.Checkpoint The new checkpoint.

--- Params of `textDocument/didFocus`: the active editor.
---@class sightline.DidFocusParams
---@field textDocument? sightline.FocusedDocument The focused document. Absent if no editor has the focus.

--- Params of `sightline/diffCheckpoints`.
---@class sightline.DiffCheckpointsParams
---@field contents? boolean Include the file contents. Default: `false`.
---@field from string Checkpoint on the old side: an id, at least 4 digits of one, `last` for the newest that is not an undo point, or the name of a turn such as `claude-2.3`: the state before it, or with a `+` the state after it. A leading `HEAD ` is ignored.
---@field patch? boolean Include a unified diff in `text`. Default: `false`.
---@field paths? string[] Limits the operation to these paths and everything below them.
---@field root? string Path, URI or name of the only workspace folder to search, unless the id is whole.
---@field to? string Checkpoint on the new side, as in `from`; `NAME+` of a running turn is the current workspace. By default the current workspace or, if `from` is the name of a turn, the state after that turn.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Result of `sightline/diffCheckpoints`.
---@class sightline.DiffCheckpointsResult
---@field files sightline.FileDifference[] Changed files, sorted by path.
---@field text? string Unified diff, if requested with `patch`.

--- Kind of difference.
---@alias sightline.DifferenceStatus
---| "added" # The file is new.
---| "modified" # The content or the executable bit changed.
---| "deleted" # The file was deleted.
---| "renamed" # The file was moved, with the same content.
---| "typeChanged" # The file type changed, for example from a file to a symbolic link.

--- Params of `sightline/environmentDetails`.
---@class sightline.EnvironmentDetailsParams
---@field changedFiles? string[] URIs of further files that changed since the agent last read or wrote them, for clients that track files themselves.
---@field consume? boolean Mark terminal output and recently modified files as delivered. If false, the request has no side effects. Default: `true`.
---@field includeFiles? boolean Include the file list, the workspace configuration and the command line tools. Default: `false`.
---@field maxFiles? integer Maximum number of entries in the file list. Default: `200`.
---@field mode? sightline.Mode Mode of the agent. Default: `"act"`.
---@field model? sightline.ModelRef Model, for the size of its context window.
---@field now? integer Time to print, in milliseconds since the Unix epoch, for reproducible output. Defaults to the clock of the server.
---@field requesterPids? integer[] Process ids of the program that asks and of its parents. The terminal in which it runs is left out.
---@field sections? sightline.SectionId[] Return only these sections, in protocol order.
---@field sinceRevision? integer Return only the current time and the sections that changed since this revision of an earlier result.
---@field taskId? string Id of the task, for its recently modified files.
---@field timeZone? string IANA name of the time zone to print, for reproducible output. Defaults to the time zone of the server.
---@field unsavedFiles? string[] URIs of further files with unsaved changes, such as those of another editor.
---@field usage? sightline.Usage Token usage of the last request to the model.

--- Result of `sightline/environmentDetails`.
---@class sightline.EnvironmentDetailsResult
---@field revision integer Revision of the state shown, for `sinceRevision`.
---@field sections sightline.Section[] Sections of the block, in order.
---@field text string The whole block, including its tags.
---@field tokens integer Estimated tokens of `text`.

--- Environment record.
---@class sightline.EnvironmentEntry
---@field cline_version string Version of the server. The key is Cline's.
---@field host_name string Name of the editor.
---@field host_version string Version of the editor.
---@field os_arch string Architecture: `x64`, `arm64`, ...
---@field os_name string Operating system: `linux`, `darwin`, `win32`, ...
---@field os_version string Release of the operating system.
---@field ts integer Time of the record, in milliseconds since the Unix epoch.

--- Environment block.
---@class sightline.EnvironmentSettings
---@field ignoredFiles? sightline.IgnoredFiles Whether file lists show denied entries. Default: `"hide"`.
---@field outsideFiles? sightline.OutsideFiles Whether the block shows open files outside every workspace folder. Default: `"hide"`.
---@field sections? table<sightline.SectionId, sightline.SectionSettings> Options per section, by section name, as `sightline config` lists them: `openTabs`, `files`, ...

--- The `data` of an error response.
---@class sightline.ErrorData
---@field kind sightline.ErrorKind Stable kind of the error.
---@field path? string Path that caused the error, if any.
---@field rule? sightline.AccessRule Rule that denied access, if any.

--- Stable error kind, for programs. The error message is for the user.
---@alias sightline.ErrorKind
---| "invalidParams" # A parameter is missing, has the wrong type or is invalid.
---| "notFound" # The file, task or checkpoint does not exist.
---| "accessDenied" # The access rules deny the file.
---| "conflict" # The state changed since it was read.
---| "busy" # Another operation holds the lock.
---| "cancelled" # The client cancelled the request.
---| "unsupported" # The operation does not support this kind of file or folder.
---| "storage" # The data of the server cannot be read or written.
---| "tooLarge" # A limit is exceeded.
---| "notInitialized" # The server has not answered `initialize` yet.
---| "internal" # Internal error: a bug in the server.

--- The diagnostics of one file.
---@class sightline.FileDiagnostics
---@field diagnostics sightline.Diagnostic[] The diagnostics, most severe first.
---@field path string Path relative to the workspace root, with `/`.

--- A changed file.
---@class sightline.FileDifference
---@field additions integer Number of added lines; 0 for a binary file.
---@field after? string New text, if requested with `contents`.
---@field before? string Old text, if requested with `contents`.
---@field binary boolean True if either side is not text.
---@field deletions integer Number of deleted lines; 0 for a binary file.
---@field hunks? sightline.Hunk[] Changed parts of a text file, as the unified diff shows them, with `contents`. Absent if there are none, and without contents.
---@field newMode? string New git file mode.
---@field oldMode? string Old git file mode, such as `100644`.
---@field oldPath? string Old path of a renamed file.
---@field omitted? string Reason why requested contents are missing, or why the file was not compared.
---@field path string Path relative to a workspace folder. For a deleted file, its old path.
---@field pathEncoded? boolean True if a name is not UTF-8 and `path` and `oldPath` are percent-encoded.
---@field status sightline.DifferenceStatus Kind of difference.
---@field uri string URI of the file.

--- One list entry.
---@class sightline.FileEntry
---@field access sightline.AccessKind Access to the entry. `denied` entries are listed only with the setting `environment.ignoredFiles: "lock"`.
---@field kind sightline.FileKind Kind of the entry.
---@field path string Path relative to the workspace root, with `/`, without a trailing slash.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.

--- Hunks of a file to restore.
---@class sightline.FileHunks
---@field hunks integer[] Numbers of the hunks, as `sightline/diffCheckpoints` with `contents` and the same `id` as `from` lists them.
---@field path string Path of the file.

--- Kind of a list entry.
---@alias sightline.FileKind
---| "file" # A regular file, or anything other than a directory or a symbolic link.
---| "directory" # A directory.
---| "symlink" # A symbolic link. Links are never followed.

--- File record, with Cline's field names.
---
--- Dates are in milliseconds since the Unix epoch. Unknown dates are absent on the wire
--- and `null` in the stored file, as in Cline.
---@class sightline.FileMetadataEntry
---@field cline_edit_date? integer Time the agent last edited the file, in milliseconds since the Unix epoch.
---@field cline_read_date? integer Time the agent last read the file, in milliseconds since the Unix epoch.
---@field path string Path relative to the workspace root.
---@field record_source sightline.FileOperation Operation that created the record.
---@field record_state sightline.RecordState Whether this is the newest entry of its path.
---@field user_edit_date? integer Time the user last edited the file, in milliseconds since the Unix epoch.

--- Operation on a file.
---@alias sightline.FileOperation
---| "read_tool" # The agent read it.
---| "user_edited" # The user edited it.
---| "cline_edited" # The agent edited it.
---| "file_mentioned" # The user mentioned it, and its text was sent.

--- The focused document.
---@class sightline.FocusedDocument
---@field uri string URI of the document.

--- One checkpoint of a group created together.
---@class sightline.GroupMember
---@field id string Id of its checkpoint.
---@field root string URI of the workspace folder.

--- A file whose contents were replaced.
---@class sightline.HiddenFile
---@field count integer Number of values, lines and parts of diffs that were replaced.
---@field path string The file.
---@field rule? sightline.AccessRule The rule that denies it.

--- A path that is hidden from commands.
---@class sightline.HiddenPath
---@field cover sightline.Cover What a command finds there.
---@field path string The absolute path, without symbolic links below the workspace folder.

--- Params of `sightline/hiddenPaths`.
---@class sightline.HiddenPathsParams
---@field mounts? string The mount namespace that the server must be in, as `/proc/self/ns/mnt` names it.
---@field roots? string[] The workspace folders that the server must have, and no others: `file:` URIs without symbolic links. Empty: any. Default: `[]`.

--- Result of `sightline/hiddenPaths`.
---@class sightline.HiddenPathsResult
---@field paths sightline.HiddenPath[] What is hidden, sorted by path.

--- A changed part of a file, with the lines around it.
---@class sightline.Hunk
---@field after integer[] The same on the new side.
---@field before integer[] First line, from 1, and number of lines on the old side. With 0 lines, the first one is the line before.
---@field number integer Number in the file, from 1.

--- Display of denied entries in file lists.
---@alias sightline.IgnoredFiles
---| "hide" # Omit them. A closing line gives their number.
---| "lock" # Show them with a lock symbol.

--- Part of the conversation to keep after its first two messages.
---@alias sightline.Keep
---| "none" # Nothing.
---| "lastTwo" # The last two messages.
---| "half" # About half.
---| "quarter" # About a quarter.

--- A file whose text is included with a summary.
---@class sightline.KeyFile
---@field lines integer Number of included lines.
---@field path string Path of the file, as in other results.
---@field reason sightline.KeyFileReason Reason for including the file.

--- Reason for including a file, most important first.
---@alias sightline.KeyFileReason
---| "modified" # The file was changed in the conversation.
---| "mentioned" # The file is mentioned several times.
---| "recent" # The file was read recently.

--- Params of `sightline/labelCheckpoint`.
---@class sightline.LabelCheckpointParams
---@field id string Checkpoint, named as in `sightline/diffCheckpoints`.
---@field label? string The new label. If absent or empty, the label is removed.
---@field root? string Path, URI or name of the only workspace folder to search, unless the id is whole.

--- Params of `sightline/listCheckpoints`.
---@class sightline.ListCheckpointsParams
---@field id? string Return only this checkpoint, named as in `sightline/diffCheckpoints`.
---@field limit? integer Maximum number of checkpoints to return, newest first.
---@field path? string Return only checkpoints in which this file differs from the checkpoint before.
---@field root? string Return only checkpoints of this workspace folder, given by path, URI or name.
---@field taskId? string Return only checkpoints of this task.

--- Result of `sightline/listCheckpoints`.
---@class sightline.ListCheckpointsResult
---@field checkpoints sightline.Checkpoint[] Checkpoints, newest first.

--- Params of `sightline/listDecisions`.
---@class sightline.ListDecisionsParams
---@field agent? string Only those about this agent.
---@field all? boolean Also those that allowed something, if the setting `log.allowed` kept them. Default: `false`.
---@field limit? integer Maximum number of decisions.
---@field since? integer Only those since this time, in milliseconds since the Unix epoch.

--- Result of `sightline/listDecisions`.
---@class sightline.ListDecisionsResult
---@field decisions sightline.Decision[] The decisions, newest first.

--- Params of `sightline/listFiles`.
---@class sightline.ListFilesParams
---@field limit? integer Maximum number of entries to return. Default: `200`.
---@field path? string Directory to list: a `file:` URI, an absolute path, or a path relative to a workspace root. Defaults to the first workspace root.
---@field recursive? boolean List subdirectories recursively. Default: `true`.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Result of `sightline/listFiles`.
---@class sightline.ListFilesResult
---@field entries sightline.FileEntry[] Entries in breadth-first order, each directory sorted by bytes.
---@field omitted integer Number of entries left out because `.clineignore` denies them.
---@field outside? integer Number of symbolic links left out because they lead outside the workspace folders.
---@field text string The list as printed in the `files` section of the environment block.
---@field truncated boolean True if the list was cut at the limit or the time budget.

--- Params of `sightline/listMcpServers`.
---@class sightline.ListMcpServersParams
---@field found? boolean Lists the servers in the configuration of agents instead, which `sightline mcp adopt` moves. Default: `false`.
---@field root? string Workspace folder: its URI, path or name. Defaults to all.

--- Result of `sightline/listMcpServers`: the servers of the user and of the project.
---@alias sightline.ListMcpServersResult sightline.McpServer[]

--- Params of `sightline/listRules`.
---@class sightline.ListRulesParams
---@field limit? integer Maximum number of entries to return; 1000 by default.
---@field root? string Return only the rules of this workspace folder, given by path, URI or name.

--- Result of `sightline/listRules`.
---@class sightline.ListRulesResult
---@field entries sightline.DeniedEntry[] Denied entries of the workspace, without what is below a denied folder.
---@field files sightline.RuleFile[] Rule files, sorted by path. The built-in rules for secrets are not in a file.
---@field problem? string Why the entries of a folder could not be listed.
---@field truncated? boolean True if there may be more entries.

--- Params of `sightline/listTasks`.
---@class sightline.ListTasksParams
---@field limit? integer Maximum number of tasks to return. Defaults to all.

--- Result of `sightline/listTasks`.
---@class sightline.ListTasksResult
---@field tasks sightline.TaskSummary[] Tasks, most recently updated first.

--- Params of `sightline/listTurns`.
---@class sightline.ListTurnsParams
---@field before? string Return only turns that began before this one, to continue a list.
---@field limit? integer Maximum number of turns to return, newest first; 100 by default, at most 1000.
---@field root? string Return only turns of this workspace folder, given by path, URI or name.
---@field session? string Return only turns of this session: its name, such as `claude-2`, or what the agent calls it.

--- Result of `sightline/listTurns`.
---@class sightline.ListTurnsResult
---@field turns sightline.ListedTurn[] Turns, newest first.

--- A turn of an agent: a prompt, and what followed.
---@class sightline.ListedTurn
---@field after? string Id of the checkpoint at the end.
---@field agent string Name of the agent.
---@field before? string Id of the checkpoint before the first edit. Absent if the turn edited nothing.
---@field endedAt? integer End of the turn, in milliseconds since the Unix epoch.
---@field files sightline.TurnFile[] Files that changed in the turn, sorted by path. At most 200.
---@field head? sightline.CheckpointHead Branch and commit of the user's repository at the prompt.
---@field moreFiles? integer Number of changed files that are not listed.
---@field name string Name of the turn, such as `claude-2.3`.
---@field number integer Number of the prompt in the session, from 1.
---@field outside? sightline.OutsideChanges What changed between the end of the turn before and the first edit.
---@field prompt? string The first characters of the prompt, if the setting `checkpoints.turnNames` stores them.
---@field root string URI of the workspace folder.
---@field running? boolean True if the turn has not ended.
---@field session string Session, as the agent calls it.
---@field startedAt integer Time of the prompt, in milliseconds since the Unix epoch.

--- Params of `sightline/loadTask`.
---@class sightline.LoadTaskParams
---@field taskId string Id of the task.

--- Result of `sightline/loadTask`.
---@class sightline.LoadTaskResult
---@field contextHistory any[] Edits to sent messages, in the format of Cline's `context_history.json`.
---@field deletedRange integer[] Messages left out of requests: first and last index, inclusive. `[2, 1]` is the empty range.
---@field messages sightline.Message[] The conversation since its last compaction.
---@field metadata sightline.TaskMetadata Metadata of the task.
---@field recovered sightline.Recovered Result of reading the log.

--- Log level.
---@alias sightline.LogLevel
---| "off" # No messages.
---| "error" # Errors.
---| "warn" # Errors and warnings.
---| "info" # Also major events.
---| "debug" # Also every request.
---| "trace" # All messages.

--- Log of the server.
---@class sightline.LogSettings
---@field allowed? boolean Whether `sightline log` also keeps what agents were allowed. Only in the settings of the user, not of a project. Default: `false`.
---@field commands? sightline.LoggedCommands What `sightline log` keeps of commands. Only in the settings of the user, not of a project. Default: `"hash"`.
---@field file? string Log file. Defaults to standard error. Read only at startup.
---@field level? sightline.LogLevel Log level. Default: `"warn"`.

--- What the log of decisions keeps of a command.
---@alias sightline.LoggedCommands
---| "hash" # Its first word, and a hash.
---| "full" # The command.

--- A configured MCP server.
---@class sightline.McpServer
---@field agent? string The agent in whose configuration it is, if that was asked for.
---@field calls integer Number of calls in this session. Default: `0`.
---@field command string[] Program and arguments as configured, or the address. Default: `[]`.
---@field env string[] Names of its variables. Default: `[]`.
---@field errors integer Number of calls that failed or were refused. Default: `0`.
---@field ignoredFields string[] Members of its entry that have no effect. Default: `[]`.
---@field name string Its name.
---@field pid? integer Process id, if it is running.
---@field reason? string Why it failed, or is not offered.
---@field root? string The workspace folder, if it is a server of a project.
---@field source string The file with its entry.
---@field startedAt? integer When it was started, in milliseconds since the Unix epoch.
---@field state sightline.McpServerState What it does: in the session of an agent that uses it, or without one.
---@field tools sightline.McpTool[] Its tools, if they are known. Default: `[]`.

--- Result of `sightline/mcpServerLog`.
---@class sightline.McpServerLogResult
---@field text string What the server printed, without the values of its variables. At most 256 KiB.

--- Params of the other requests about one MCP server.
---@class sightline.McpServerParams
---@field name string Name of the server.
---@field root? string Workspace folder. Defaults to all.

--- What an MCP server does.
---@alias sightline.McpServerState
---| "disabled" # Agents do not get it.
---| "untrusted" # It is a server of the project that the user has not trusted. It is never started.
---| "idle" # It is started by the next call.
---| "starting" # It is starting.
---| "ready" # It is running.
---| "failed" # Its entry is invalid, or it cannot be started.
---| "changed" # The definition of a tool differs from the one that was first seen.

--- A tool of an MCP server.
---@class sightline.McpTool
---@field changed boolean Whether its definition differs from the one that was first seen.
---@field enabled boolean Whether agents get it.
---@field exposedAs string Its name for agents.
---@field name string Its name.
---@field tokens integer Approximate number of tokens of its definition.

--- Whether a prompt may mention a denied file.
---@alias sightline.Mentions
---| "deny" # The prompt is refused.
---| "allow" # The agent adds the content of the file.

--- A message in the format of the Anthropic API. Other fields and block types are allowed and returned unchanged.
---@class sightline.Message
---@field content any A string, or a list of content blocks.
---@field role string `user` or `assistant`.
---@field [string] any

--- New text of a content block.
---@class sightline.MessageEdit
---@field block integer Index of the content block in the message.
---@field message integer Index of the message in the whole conversation.
---@field text string New text of the block. For a tool result, the text of its first block.

--- Message filter: selects the newest messages that satisfy every limit.
---@class sightline.MessageFilter
---@field maxAge? integer Maximum age, in milliseconds. Messages without `ts` always match.
---@field maxMessages? integer Maximum number of messages.
---@field maxTokens? integer Maximum total number of tokens.

--- Metadata of a message.
---@class sightline.MessageMeta
---@field cwd? string Working directory of the agent. Defaults to the first workspace folder.
---@field gitBranch? string Branch checked out in the working directory. Read from the repository if absent.
---@field now? integer Time of the messages, in milliseconds since the Unix epoch. Defaults to the clock of the server.
---@field sessionId? string Id of the client session. Defaults to the session of the server.
---@field version? string Version of the client. Defaults to the version in `clientInfo`, else the version of the server.

--- Replacement of a message.
---@class sightline.MessageRepair
---@field message integer Index of the message in the whole conversation.
---@field replacement sightline.Message Message to send instead, with its edits applied.

--- Mode of the agent.
---@alias sightline.Mode
---| "act" # The agent may make changes.
---| "plan" # The agent only plans.

--- A model with its properties.
---@class sightline.ModelInfo
---@field contextWindow? number Size of the context window, in tokens.
---@field id string Id of the model.
---@field provider? string Id of the provider. `openai` is any OpenAI-compatible endpoint.

--- A model: its id, or an object with more information.
---@alias sightline.ModelRef string|sightline.ModelInfo

--- Context window of a model.
---@class sightline.ModelSettings
---@field contextWindow? integer Size of the context window, in tokens.
---@field usableTokens? integer Number of tokens that may be used before truncation starts. Derived from the context window if absent.

--- Model record.
---@class sightline.ModelUsageEntry
---@field mode string `act` or `plan`.
---@field model_id string Id of the model.
---@field model_provider_id string Id of the provider.
---@field ts integer Time of the record, in milliseconds since the Unix epoch.

--- Notices that replace text removed from a conversation.
---@class sightline.NoticeSettings
---@field duplicateFileRead? string Notice that replaces an older read of a file that was read again.
---@field missingToolResult? string Result inserted for a tool call that has none.
---@field truncation? string Notice inserted into an assistant message when messages are left out.

--- Params of `sightline/openDiff`, server to client.
---@class sightline.OpenDiffParams
---@field contents string Proposed text of the whole file.
---@field diffId string Identifies the diff in `sightline/closeDiff`. If an accepted change cannot be used, because no checkpoint can be created or the file has changed, a message says so, and the request is sent again with the same id and the text that the user accepted.
---@field path string Path of the file, as results of requests name it.
---@field title string Title for the user, on one line.
---@field uri string URI of the file. It may not exist yet.

--- Result of `sightline/openDiff`.
---@class sightline.OpenDiffResult
---@field accepted boolean True if the user accepted the change. The agent writes the file, not the editor.
---@field contents? string The text that the user accepted, if it differs from the proposed one.

--- Params of `sightline/openFile`.
---@class sightline.OpenFileParams
---@field line? integer Line to show, starting at 1.
---@field path string File to show: a `file:` URI, an absolute path, or a path relative to a workspace root.

--- Result of `sightline/openFile`.
---@class sightline.OpenFileResult
---@field path string The file that the editor was asked to show: relative to the workspace root, with `/`.

--- What changed between two turns: by the user, another program, or another agent.
---@class sightline.OutsideChanges
---@field files sightline.TurnFile[] Files, sorted by path. At most 200. Their contents are not compared.
---@field from? sightline.CheckpointHead Branch and commit before, if they changed.
---@field moreFiles? integer Number of changed files that are not listed.
---@field to? sightline.CheckpointHead Branch and commit after, if they changed.
---@field turns? string[] Names of other turns that ran then.

--- Display of open files outside every workspace folder.
---@alias sightline.OutsideFiles
---| "hide" # Omit them.
---| "show" # Show them.

--- Whether files outside every workspace folder may be read.
---@alias sightline.OutsideWorkspace
---| "deny" # Such files are refused.
---| "allow" # Such files are read, except those that a rule denies.

--- Access to one path.
---@class sightline.PathAccess
---@field access sightline.AccessKind Access to the path.
---@field allowedBy? sightline.AccessRule For an allowed path: the line of the user that lifts a built-in rule for secrets.
---@field path string The path as requested.
---@field reason? string Reason when no rule decided, such as an invalid path or rules that cannot be read.
---@field resolved? string The path that it leads to, if symlinks decided that it is not the written one.
---@field rule? sightline.AccessRule The matching rule, if a rule decided.

--- Params of `sightline/planCompaction`.
---@class sightline.PlanCompactionParams
---@field filter? sightline.MessageFilter Filter for the messages shown in the prompt, in addition to the limit of the model.
---@field instructions? string Instructions from the user for the summary.
---@field maxFiles? integer Maximum number of files whose text is included. Default: `5`.
---@field maxLinesPerFile? integer Maximum number of lines per included file. Default: `1000`.
---@field messages? sightline.Message[] The whole conversation. Defaults to the stored conversation of `taskId`.
---@field model sightline.ModelRef Model that receives the conversation and the prompt.
---@field retainRatio? number Fraction of the messages to keep unchanged, counted from the newest. Default: `0.2`.
---@field taskId? string Id of the task with the stored conversation.

--- Result of `sightline/planCompaction`.
---@class sightline.PlanCompactionResult
---@field files sightline.KeyFile[] Files whose text is included with the summary.
---@field needed boolean True if the context window is full enough for compaction, and there is more to compact than an earlier summary.
---@field prompt string Prompt to send to a model as the only message.
---@field retainFrom integer Index of the first message that is kept unchanged.
---@field tokens integer Number of tokens that would be sent now.

--- A position in text, as in LSP.
---@class sightline.Position
---@field character integer Offset in the line, starting at 0, in the negotiated position encoding.
---@field line integer Line, starting at 0.

--- Params of `sightline/previewRestore`.
---@class sightline.PreviewRestoreParams
---@field allRoots? boolean Include the checkpoints of other workspace folders from the same group. Fails with `conflict` if one of those folders is not open. Default: `false`.
---@field hunks? sightline.FileHunks[] Restore only these hunks of files, and `paths` besides. Fails if one of them does not exist. If `id` is the name of a turn, they are reverted as with `only`.
---@field id string Checkpoint, named as in `sightline/diffCheckpoints`. With `undo`, `last` is the undo point of the last restore.
---@field only? sightline.RestoreOnly Revert the turn, and keep later changes. `id` is the name of a turn, or one of its checkpoints.
---@field paths? string[] Limits the operation to these paths and everything below them.
---@field root? string Path, URI or name of the only workspace folder to search, unless the id is whole.
---@field undo? boolean Preview `sightline/undoRestore`, with its changes in every folder, or a restore. By default, an undo if `id` is the undo point of a restore of files and there are no `paths`.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Result of `sightline/previewRestore`.
---@class sightline.PreviewRestoreResult
---@field changes sightline.RestoreChange[] Changes the restore would make.
---@field conflicts sightline.RestoreConflict[] Differences the restore would leave unchanged.
---@field target? sightline.RestoreTarget The state that would be restored.
---@field taskId? string Task whose conversation would be restored as well, with `undo`.
---@field token string Token of this preview. A restore with this token makes exactly these changes, or none.
---@field undoId? string Id of the undo point, with `undo`.
---@field warnings? string[] What the user may not expect, as text: another branch is checked out now, the checkpoint is from another folder, another turn ran at the same time as this one and changed the same files, or this undoes an undo.

--- Token usage and time of a request to a model.
---@class sightline.PreviousRequest
---@field cacheReads? number Tokens read from the prompt cache.
---@field cacheWrites? number Tokens written to the prompt cache.
---@field tokensIn? number Input tokens.
---@field tokensOut? number Output tokens.
---@field ts number Time the request was sent, in milliseconds since the Unix epoch. New edits are stored with this time.

--- Token of `$/progress` notifications: a string or an integer.
---@alias sightline.ProgressToken string|integer

--- Params of `sightline/pruneCheckpoints`. Without a limit, nothing is removed.
---@class sightline.PruneCheckpointsParams
---@field dryRun? boolean Report what would be removed without removing it. Default: `false`.
---@field ids? string[] Remove these checkpoints.
---@field keep? integer Number of newest checkpoints to keep per workspace folder. Undo points are not counted.
---@field labelled? boolean Also remove checkpoints with a label. Those in `ids` are removed in any case. Default: `false`.
---@field maxBytes? integer Remove the oldest checkpoints until each workspace folder uses at most this many bytes.
---@field olderThan? integer Remove checkpoints created before this time, in milliseconds since the Unix epoch.
---@field root? string Limits the operation to this workspace folder, given by path, URI or name.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Result of `sightline/pruneCheckpoints`.
---@class sightline.PruneCheckpointsResult
---@field checkpoints? string[] With `dryRun`, the ids of the checkpoints that would be removed, newest first.
---@field freedBytes integer Freed disk space, in bytes. With `dryRun`, an estimate.
---@field keptLabelled? integer Number of checkpoints that were kept only because of their label.
---@field removed integer Number of removed checkpoints. With `dryRun`, the number that would be removed.

--- A range of text, as in LSP.
---@class sightline.Range
---@field end sightline.Position End position, exclusive.
---@field start sightline.Position Start position.

--- Params of `sightline/readFile`.
---@class sightline.ReadFileParams
---@field endLine? integer Last line to return, inclusive.
---@field maxBytes? integer Maximum number of UTF-8 bytes to return, cut at a character boundary.
---@field path string File to read: a `file:` URI, an absolute path, or a path relative to a workspace root.
---@field startLine? integer First line to return, starting at 1.
---@field taskId? string Id of a task for which the read is recorded, as with `sightline/trackFile`.

--- Result of `sightline/readFile`.
---@class sightline.ReadFileResult
---@field changedOnDisk? boolean True if the file on disk has changed too since the editor read or saved it. `text` is that of the editor.
---@field encoding? string Encoding of the file on disk, if it is not UTF-8.
---@field isDirty boolean True if the editor has unsaved changes to this file.
---@field source sightline.TextSource Source of the text.
---@field text string The requested text, with its original line endings.
---@field tokens integer Estimated tokens of `text`.
---@field totalLines integer Number of lines in the whole file. A last line without a line ending counts.
---@field truncated boolean True if the text was cut at `maxBytes`.

--- Params of `sightline/recordEnvironment`.
---@class sightline.RecordEnvironmentParams
---@field now? integer Time to record, in milliseconds since the Unix epoch. Defaults to the clock of the server.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with `.`.

--- Params of `sightline/recordModel`.
---@class sightline.RecordModelParams
---@field mode sightline.Mode Mode of the agent.
---@field modelId string Id of the model.
---@field now? integer Time to record, in milliseconds since the Unix epoch. Defaults to the clock of the server.
---@field providerId string Id of the provider.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with `.`.

--- Whether an entry is the newest entry of its path.
---@alias sightline.RecordState
---| "active" # The newest entry.
---| "stale" # Replaced by a newer entry.

--- Result of `sightline/recordModel` and `sightline/recordEnvironment`.
---@class sightline.RecordedResult
---@field recorded boolean False if equal to the last record.

--- What reading a log found.
---@class sightline.Recovered
---@field dropped integer Number of invalid lines. They are skipped but stay in the file.
---@field lines integer Number of lines read.

--- Whether commands may read whole folders that contain denied files.
---@alias sightline.RecursiveReaders
---| "deny" # The command is refused, with one to run instead where there is one.
---| "allow" # The command runs, and reads denied files too.

--- Params of `sightline/redact`.
---@class sightline.RedactParams
---@field cwd? string Directory of the program, which names in diffs may be relative to.
---@field texts? string[] Texts for an agent, such as the output of a program. Default: `[]`.

--- Result of `sightline/redact`.
---@class sightline.RedactResult
---@field hidden sightline.HiddenFile[] The files whose contents were replaced.
---@field texts string[] The texts in the same order, with notices in place of the contents of denied files.

--- Action of a restore on a path.
---@alias sightline.RestoreAction
---| "write" # Write the saved content, mode or type.
---| "delete" # Delete the path.

--- A change a restore would make.
---@class sightline.RestoreChange
---@field action sightline.RestoreAction Action on the path.
---@field path string Path relative to a workspace folder.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.
---@field reason string Reason, as text for the user.
---@field uri string URI of the file.

--- Params of `sightline/restoreCheckpoint`.
---@class sightline.RestoreCheckpointParams
---@field allRoots? boolean Include the checkpoints of other workspace folders from the same group. Fails with `conflict` if one of those folders is not open. Default: `false`.
---@field force? boolean Also replace unsaved text in open documents. Default: `false`.
---@field hunks? sightline.FileHunks[] Restore only these hunks of files, and `paths` besides. Fails if one of them does not exist. If `id` is the name of a turn, they are reverted as with `only`.
---@field id string Checkpoint, named as in `sightline/diffCheckpoints`.
---@field mode? sightline.RestoreMode What to restore. Default: `"files"`.
---@field only? sightline.RestoreOnly Revert the turn, and keep later changes. `id` is the name of a turn, or one of its checkpoints.
---@field paths? string[] Limits the operation to these paths and everything below them.
---@field root? string Path, URI or name of the only workspace folder to search, unless the id is whole.
---@field taskId? string Id of the task. Defaults to the task of the checkpoint.
---@field token? string Token of a preview. If the preview is out of date, nothing is changed and the error is `conflict`.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`.
---@class sightline.RestoreCheckpointResult
---@field conflicts? sightline.RestoreConflict[] Differences that were left unchanged. Absent if there are none.
---@field outcomes sightline.RestoreOutcome[] Outcome of each planned change.
---@field task? sightline.RestoredTask The restored conversation, if any.
---@field undoId? string Id of the checkpoint created before the restore, for `sightline/undoRestore`. Absent if there was nothing to do; the last undo point then stays the same.

--- A difference that a restore leaves unchanged.
---@class sightline.RestoreConflict
---@field changedSince? boolean True if this is an undo and the path was changed after the restore. With `force`, the undo discards that change.
---@field path string Path relative to a workspace folder.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.
---@field reason string Reason, as text for the user.
---@field unsaved? boolean True if the path is open with unsaved text. With `force`, the text is replaced.
---@field uri string URI of the file.

--- What to restore.
---@alias sightline.RestoreMode
---| "files" # Files.
---| "task" # The conversation of the task, including one on a branch that was abandoned later. Fails with `conflict` if the log does not contain that state.
---| "filesAndTask" # Files and conversation.

--- Restricts a restore to a part of the differences.
---@alias sightline.RestoreOnly
---| "turn" # Reverts the turn, and keeps later changes. Lines are merged; a file that cannot be merged is a conflict and left unchanged.

--- Outcome of one change.
---@class sightline.RestoreOutcome
---@field action sightline.RestoreAction Planned action.
---@field error? string Reason for the failure.
---@field ok boolean True if the action succeeded.
---@field path string Path relative to a workspace folder.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.
---@field replacedUnsaved? boolean True if the path was open with unsaved text, which was replaced. The document is still unsaved, so undoing this needs `force`.
---@field uri string URI of the file.

--- The state that a restore leads to.
---@class sightline.RestoreTarget
---@field branch? string Branch of the user's repository.
---@field createdAt integer Creation time, in milliseconds since the Unix epoch.
---@field id string Id of the checkpoint.
---@field label? string Label of the checkpoint.
---@field name? string Name of the turn whose state before, or with a `+` after it this is.

--- A conversation that was restored.
---@class sightline.RestoredTask
---@field messages integer Number of messages in its conversation now.
---@field taskId string Id of the task.

--- Params of `sightline/resumeTask`.
---@class sightline.ResumeTaskParams
---@field now? integer Time of resumption, in milliseconds since the Unix epoch. Defaults to the clock of the server.
---@field taskId? string Id of the task. Defaults to the most recently updated task of this workspace.

--- Result of `sightline/resumeTask`.
---@class sightline.ResumeTaskResult
---@field interruptedTools string[] Ids of tool calls without a result in the log.
---@field messages sightline.Message[] Messages to continue with: the messages last sent to the model, with a result for every tool call. The client appends `resumption` and the text of the user.
---@field resumption string Text that tells the model about the interruption. It starts with `[TASK RESUMPTION]`.
---@field taskId string Id of the task.

--- Params of `sightline/rollbackHistory`.
---@class sightline.RollbackHistoryParams
---@field contextHistory? any[] The edits. Defaults to the stored edits of `taskId`.
---@field taskId? string Id of the task with the stored edits. The result is stored as well.
---@field timestamp number Discard edits newer than this time, in milliseconds since the Unix epoch.

--- Result of `sightline/rollbackHistory`.
---@class sightline.RollbackHistoryResult
---@field contextHistory any[] Remaining edits.

--- A rule file in force.
---@class sightline.RuleFile
---@field modifiedAt? integer Time of the last change, in milliseconds since the Unix epoch.
---@field problem? string Why it cannot be used.
---@field rules integer Number of its rules.
---@field source string Name of the file in the `rule` of a denial.
---@field state sightline.RuleFileState State of the file.
---@field uri string URI of the file.

--- State of a rule file.
---@alias sightline.RuleFileState
---| "inForce" # Its lines apply.
---| "held" # It is being saved: lines that were removed still apply, for half a second after the last change.
---| "unusable" # It cannot be used, so everything in its folder is denied.

--- Whether files that usually contain secrets may be read.
---@alias sightline.Secrets
---| "deny" # Hidden, except those that a line allows.
---| "allow" # Visible, except those that a line denies.

--- One section of the block.
---@class sightline.Section
---@field derived? boolean True if the client did not send this state and it was derived from open documents.
---@field heading string The heading, without `# `.
---@field id sightline.SectionId Id of the section.
---@field maxTokens? integer Maximum size of the body, in estimated tokens, if it is limited.
---@field omitted integer Number of entries left out because they are denied, outside the workspace or over the budget of the section.
---@field text string The body.
---@field tokens integer Estimated tokens of the heading and the body.

--- Sections of the block, in printed order.
---@alias sightline.SectionId
---| "workspaceRoots" # Workspace folders, if there are several.
---| "visibleFiles" # Files visible in an editor.
---| "openTabs" # Files open in a tab.
---| "runningTerminals" # Terminals with a running command.
---| "inactiveTerminals" # Idle terminals with unread output.
---| "recentlyModified" # Files that changed since the agent last saw them.
---| "currentTime" # Date, time and time zone.
---| "files" # The file list.
---| "workspaceConfiguration" # Roots, git remotes and commits, as JSON.
---| "cliTools" # Command line tools found on the search path.
---| "unsavedFiles" # Open files with unsaved changes.
---| "diagnostics" # Errors and warnings in visible and recently modified files. Only if it is requested in `sections` or enabled.
---| "contextWindow" # Usage of the context window.
---| "mode" # Mode of the agent: plan or act.

--- Options of a section of the block.
---@class sightline.SectionSettings
---@field enabled? boolean Whether to include the section.
---@field maxTokens? integer Maximum size of the section body, in estimated tokens. The body is cut at a line boundary. The heading and the closing line that counts omitted entries are not included in the limit.

--- A selection or a cursor.
---@class sightline.Selection
---@field range sightline.Range Where it is.
---@field text string The selected text, with unsaved changes. Empty for a cursor.

--- Params of `sightline/selection`.
---@class sightline.SelectionParams
---@field maxBytes? integer Maximum text to return, in UTF-8 bytes: at most 16384, the default.

--- Result of `sightline/selection`. Without a `path` if no file has the focus, or agents may not
--- see it.
---@class sightline.SelectionResult
---@field languageId? string LSP language id.
---@field path? string The active file: relative to the workspace root, with `/`.
---@field selections? sightline.Selection[] Selections and cursors, in the order of the editor. Empty if the client does not send them.
---@field truncated? boolean True if text was left out.

--- Params of `sightline/setMcpServerEnabled`.
---@class sightline.SetMcpServerEnabledParams
---@field enabled boolean Whether agents get it.
---@field name string Name of the server.
---@field root? string Workspace folder. Defaults to all.

--- Settings of Sightline, passed in `initializationOptions`, in the configuration
--- section `sightline` or in `workspace/didChangeConfiguration`.
---@class sightline.Settings
---@field access? sightline.AccessSettings File access of agents.
---@field agents? sightline.AgentSettings Coding agents.
---@field bridges? sightline.BridgeSettings IDE protocols of coding agents: what the user selects, as it happens.
---@field checkpoints? sightline.CheckpointSettings Workspace checkpoints.
---@field commands? sightline.CommandSettings Commands of `workspace/executeCommand`.
---@field conversation? sightline.ConversationSettings Truncation of conversations.
---@field diagnostics? sightline.DiagnosticSettings Diagnostics in open documents.
---@field environment? sightline.EnvironmentSettings Environment block.
---@field log? sightline.LogSettings Log of the server.
---@field notifications? boolean Send server notifications, such as `sightline/didChangeContext`, to the client. Default: `false`.
---@field storage? sightline.StorageSettings Data directory.
---@field tasks? sightline.TaskSettings Retention of stored tasks.

--- A path that is not in a checkpoint.
---@class sightline.SkippedPath
---@field path string Path relative to the workspace folder of the checkpoint, with `/`.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.
---@field reason string Reason, as text for the user.

--- Data directory.
---@class sightline.StorageSettings
---@field path? string Absolute path of the data directory. Defaults to the data directory of the platform.

--- Changes that `sightline/truncateHistory` may make.
---@alias sightline.Strategy
---| "auto" # If the context window is full, replace duplicate file reads; if that saves too little, leave out messages.
---| "apply" # Only apply the given range and edits.
---| "deduplicate" # Only replace duplicate file reads, even if the window is not full.

--- One tab.
---@class sightline.Tab
---@field group? integer Number of the tab group or window column.
---@field isActive? boolean True for the active tab of its group.
---@field isDirty? boolean True if the document has unsaved changes.
---@field isPinned? boolean True if the tab is pinned.
---@field isPreview? boolean True for a preview tab that is replaced by the next opened file.
---@field uri string URI of the document in the tab.

--- Params of `sightline/taskContext`.
---@class sightline.TaskContextParams
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with `.`.
---@field usage? boolean Also return how full the context window is, which counts the tokens of the stored conversation.

--- Result of `sightline/taskContext`: the records of a task, and the files that changed
--- since the agent saw them.
---@class sightline.TaskContextResult
---@field changed string[] Files whose content differs from what the agent last saw.
---@field deleted string[] Files the agent saw that no longer exist.
---@field environments sightline.EnvironmentEntry[] All environment records, oldest first.
---@field files sightline.FileMetadataEntry[] All file records, oldest first.
---@field models sightline.ModelUsageEntry[] All model records, oldest first.
---@field usage? sightline.WindowUsage How full the context window of the last recorded model is. Absent without a stored conversation or a model.

--- Metadata of a task.
---@class sightline.TaskMetadata
---@field compactions integer Number of compactions of the conversation.
---@field createdAt integer Time of the first message, in milliseconds since the Unix epoch.
---@field cwd? string Last recorded working directory of the agent.
---@field environments sightline.EnvironmentEntry[] Environment records.
---@field files sightline.FileMetadataEntry[] File records, as in Cline's `task_metadata.json`.
---@field gitBranch? string Last recorded branch of the working directory.
---@field models sightline.ModelUsageEntry[] Model records.
---@field title string Title: the start of the first text by the user.
---@field updatedAt integer Time of the last message, in milliseconds since the Unix epoch.

--- Retention of stored tasks. The most recently updated tasks are kept. Nothing is
--- deleted automatically if no limit is set.
---@class sightline.TaskSettings
---@field maxAgeDays? integer Delete tasks that were not updated for this many days.
---@field maxBytes? integer Maximum total size of tasks to keep, in bytes.
---@field maxCount? integer Maximum number of tasks to keep.

--- Summary of a task.
---@class sightline.TaskSummary
---@field createdAt integer Time of the first message, in milliseconds since the Unix epoch.
---@field cwd? string Last recorded working directory of the agent.
---@field messageCount integer Total number of messages of the conversation.
---@field taskId string Id of the task.
---@field title string Title: the start of the first text by the user.
---@field updatedAt integer Time of the last message, in milliseconds since the Unix epoch.

--- One terminal.
---@class sightline.Terminal
---@field alternateScreen? boolean True while a program uses the alternate screen. What it shows is not output.
---@field command? string The running command, or the last one.
---@field cwd? string Working directory.
---@field exitCode? integer Exit code of the last command.
---@field id string Id of the terminal, chosen by the client. A number is converted to its decimal form.
---@field isBusy boolean True while a command is running.
---@field name? string Title of the terminal.
---@field newOutput? string Output since the last notification. Appended to the unread output.
---@field pid? integer Process id of the first process, usually the shell. An agent does not get the output of the terminal in which it runs.

--- Source of the text of a `readFile` result.
---@alias sightline.TextSource
---| "buffer" # The buffer of the editor.
---| "disk" # The file on disk.

--- Token counts before and after.
---@class sightline.TokenChange
---@field after integer Tokens that will be sent now.
---@field before integer Tokens that would have been sent without this call.

--- Params of `sightline/trackFile`.
---@class sightline.TrackFileParams
---@field contentHash? string With `cline_edited`, the SHA-256 (hex) of the content written by the agent.
---@field now? integer Time to record, in milliseconds since the Unix epoch. Defaults to the clock of the server.
---@field operation sightline.FileOperation Operation on the file.
---@field path string The file: a `file:` URI, an absolute path, or a path relative to a workspace root.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with `.`.

--- Result of `sightline/trackFile`.
---@class sightline.TrackFileResult
---@field entry sightline.FileMetadataEntry The new entry.

--- Params of `sightline/truncateHistory`.
---@class sightline.TruncateHistoryParams
---@field contextHistory? any[] Edits made so far: `contextHistory` of the last result, or the content of Cline's `context_history.json`.
---@field countTokens? boolean Also count tokens before and after. Default: `false`.
---@field deletedRange? integer[] Messages left out so far: first and last index, inclusive. `[2, 1]` is the empty range.
---@field keep? sightline.Keep Truncate by this amount immediately, regardless of usage and `strategy`.
---@field messages? sightline.Message[] The whole conversation. Defaults to the stored conversation of `taskId`.
---@field model sightline.ModelRef Model that receives the next request.
---@field previousRequest? sightline.PreviousRequest Token usage and time of the last request. If absent, the conversation fits.
---@field reply? sightline.TruncateReply Form of the result. Default: `"messages"`.
---@field strategy? sightline.Strategy Which changes are allowed. Default: `"auto"`.
---@field taskId? string Id of the task with the stored conversation. The result is stored as well.
---@field thresholdPercentage? number Fraction of the context window at which to act, capped by the usable size of the window.

--- Result of `sightline/truncateHistory`.
---@class sightline.TruncateHistoryResult
---@field charactersSaved number Fraction of characters saved by replacing duplicate file reads in this call. Negative if the notices are longer than the files.
---@field contextHistory any[] Edits made so far. Pass them to the next call.
---@field contextHistoryChanged boolean True if this call made edits.
---@field decision sightline.DecisionOfTruncation The decision.
---@field deletedRange? integer[] Messages to leave out: first and last index, inclusive.
---@field edits? sightline.MessageEdit[] With `reply: "edits"`, the texts to replace in messages that are kept.
---@field messages? sightline.Message[] The messages to send.
---@field needToTruncate? boolean With `strategy: "deduplicate"`, true if too little was saved.
---@field repairs? sightline.MessageRepair[] With `reply: "edits"`, messages to replace entirely, because tool results had to be matched to tool calls.
---@field tokens? sightline.TokenChange With `countTokens`, the tokens before and after.
---@field updatedDeletedRange boolean True if this call changed the range.

--- Form of the result of `sightline/truncateHistory`.
---@alias sightline.TruncateReply
---| "messages" # The messages to send.
---| "edits" # Edits to apply to the caller's copy of the conversation.

--- A file that a turn changed.
---@class sightline.TurnFile
---@field additions integer Number of added lines; 0 if the contents were not compared.
---@field deletions integer Number of deleted lines; 0 if the contents were not compared.
---@field path string Path relative to the workspace folder.
---@field pathEncoded? boolean True if the name is not UTF-8 and `path` is percent-encoded.
---@field sharedWith? string[] Names of turns that ran at the same time and also have the file. What changed while both ran is listed for both.
---@field status sightline.DifferenceStatus Kind of change.

--- What is stored of a prompt.
---@alias sightline.TurnNames
---| "prompt" # The first 60 characters.
---| "none" # Nothing.

--- Params of `sightline/undoRestore`.
---@class sightline.UndoRestoreParams
---@field force? boolean Also revert paths that were changed after the restore, and replace unsaved text in open documents. Default: `false`.
---@field paths? string[] Limits the undo to these paths and everything below them.
---@field root? string Path, URI or name of the only workspace folder to search, unless the id is whole.
---@field token? string Token of a preview of the undo. If the preview is out of date, nothing is changed and the error is `conflict`.
---@field undoId? string `undoId` of the restore to undo, or at least 4 digits of it. Defaults to `last`.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Params of `sightline/unsavedFiles`.
---@class sightline.UnsavedFilesParams
---@field folder? string Only files below this folder: a `file:` URI, an absolute path, or a path relative to a workspace root.

--- Result of `sightline/unsavedFiles`.
---@class sightline.UnsavedFilesResult
---@field changedAt? integer Time of the last change that the editor reported, in milliseconds since the epoch.
---@field editor? string Name of the editor.
---@field uris string[] Their `file:` URIs, without those of files that agents may not see.

--- Token usage of a request to a model, as reported by the provider.
---@class sightline.Usage
---@field cacheReads? number Tokens read from the prompt cache.
---@field cacheWrites? number Tokens written to the prompt cache.
---@field tokensIn? number Input tokens.
---@field tokensOut? number Output tokens.

--- Params of `sightline/verifyCheckpoints`.
---@class sightline.VerifyCheckpointsParams
---@field root? string Limits the operation to this workspace folder, given by path, URI or name.
---@field workDoneToken? sightline.ProgressToken Token for `$/progress` notifications, as in LSP.

--- Result of `sightline/verifyCheckpoints`.
---@class sightline.VerifyCheckpointsResult
---@field ok boolean True if every checkpoint is intact.
---@field problems string[] Problems, as text for the user.

--- One visible editor.
---@class sightline.VisibleEditor
---@field isActive? boolean True for the focused editor.
---@field selections? sightline.Range[] Selections. An empty range is a cursor.
---@field uri string URI of the document.
---@field visibleRanges? sightline.Range[] Visible lines. Folded code splits them into several ranges.

--- Usage of a context window.
---@class sightline.WindowUsage
---@field contextWindow integer Size of the context window, in tokens.
---@field modelId string Id of the model.
---@field tokens integer Estimated tokens of the conversation since its last compaction.

local M = {}

--- Protocol version of these types.
M.PROTOCOL_VERSION = 1

--- Client requests.
M.methods = {
  --- Returns the current `<environment_details>` block. Takes `sightline.EnvironmentDetailsParams`, answers `sightline.EnvironmentDetailsResult`.
  environmentDetails = "sightline/environmentDetails",
  --- Checks paths and a command line against the access rules. Takes `sightline.CheckAccessParams`, answers `sightline.CheckAccessResult`.
  checkAccess = "sightline/checkAccess",
  --- Lists the rule files in force, and what they deny. For the user: agents see neither. Takes `sightline.ListRulesParams`, answers `sightline.ListRulesResult`.
  listRules = "sightline/listRules",
  --- Lists the denied files and folders that git does not track, for `sightline exec`. Agents do not see it. Takes `sightline.HiddenPathsParams`, answers `sightline.HiddenPathsResult`.
  hiddenPaths = "sightline/hiddenPaths",
  --- Replaces the contents of denied files in texts. Takes `sightline.RedactParams`, answers `sightline.RedactResult`.
  redact = "sightline/redact",
  --- Lists what agents were refused and what was hidden from them, newest first. Takes `sightline.ListDecisionsParams`, answers `sightline.ListDecisionsResult`.
  listDecisions = "sightline/listDecisions",
  --- Lists files in breadth-first order, without denied entries. Takes `sightline.ListFilesParams`, answers `sightline.ListFilesResult`.
  listFiles = "sightline/listFiles",
  --- Reads a file that the access rules allow. Unsaved editor text takes precedence over the disk. Takes `sightline.ReadFileParams`, answers `sightline.ReadFileResult`.
  readFile = "sightline/readFile",
  --- Returns what the language servers of the editor report about files. Takes `sightline.DiagnosticsParams`, answers `sightline.DiagnosticsResult`.
  diagnostics = "sightline/diagnostics",
  --- Returns the active file, and the text that the user selected in it. Takes `sightline.SelectionParams`, answers `sightline.SelectionResult`.
  selection = "sightline/selection",
  --- Returns the files with unsaved changes. Takes `sightline.UnsavedFilesParams`, answers `sightline.UnsavedFilesResult`.
  unsavedFiles = "sightline/unsavedFiles",
  --- Returns the agents that are connected to the editor by their IDE protocol. Takes `sightline.ConnectedAgentsParams`, answers `sightline.DidChangeBridgesParams`.
  connectedAgents = "sightline/connectedAgents",
  --- Shows a file in the editor, with `window/showDocument`. Takes `sightline.OpenFileParams`, answers `sightline.OpenFileResult`.
  openFile = "sightline/openFile",
  --- Records that a task read, edited or mentioned a file. Takes `sightline.TrackFileParams`, answers `sightline.TrackFileResult`.
  trackFile = "sightline/trackFile",
  --- Records the model used by a task. Takes `sightline.RecordModelParams`, answers `sightline.RecordedResult`.
  recordModel = "sightline/recordModel",
  --- Records the operating system and editor of a task. Takes `sightline.RecordEnvironmentParams`, answers `sightline.RecordedResult`.
  recordEnvironment = "sightline/recordEnvironment",
  --- Returns the records of a task, and the files that changed since the agent saw them. Takes `sightline.TaskContextParams`, answers `sightline.TaskContextResult`.
  taskContext = "sightline/taskContext",
  --- Counts the tokens of texts and messages. Takes `sightline.CountTokensParams`, answers `sightline.CountTokensResult`.
  countTokens = "sightline/countTokens",
  --- Decides which messages of a conversation to send. Takes `sightline.TruncateHistoryParams`, answers `sightline.TruncateHistoryResult`.
  truncateHistory = "sightline/truncateHistory",
  --- Discards truncation decisions made after a point in time. Takes `sightline.RollbackHistoryParams`, answers `sightline.RollbackHistoryResult`.
  rollbackHistory = "sightline/rollbackHistory",
  --- Classifies an error of a provider. Takes `sightline.ClassifyErrorParams`, answers `sightline.ClassifyErrorResult`.
  classifyError = "sightline/classifyError",
  --- Appends messages to a stored conversation. They are durable when the request returns. Takes `sightline.AppendMessagesParams`, answers `sightline.AppendMessagesResult`.
  appendMessages = "sightline/appendMessages",
  --- Loads the stored conversation of a task. Takes `sightline.LoadTaskParams`, answers `sightline.LoadTaskResult`.
  loadTask = "sightline/loadTask",
  --- Lists stored tasks, most recently updated first. Takes `sightline.ListTasksParams`, answers `sightline.ListTasksResult`.
  listTasks = "sightline/listTasks",
  --- Resumes an interrupted task. Takes `sightline.ResumeTaskParams`, answers `sightline.ResumeTaskResult`.
  resumeTask = "sightline/resumeTask",
  --- Deletes a task and all its stored data. Takes `sightline.DeleteTaskParams`, answers `sightline.DeleteTaskResult`.
  deleteTask = "sightline/deleteTask",
  --- Plans a compaction and returns a prompt for the summary. Takes `sightline.PlanCompactionParams`, answers `sightline.PlanCompactionResult`.
  planCompaction = "sightline/planCompaction",
  --- Replaces the older part of a conversation with a summary. Takes `sightline.ApplyCompactionParams`, answers `sightline.ApplyCompactionResult`.
  applyCompaction = "sightline/applyCompaction",
  --- Creates a checkpoint of the workspace. Takes `sightline.CreateCheckpointParams`, answers `sightline.Checkpoint`.
  createCheckpoint = "sightline/createCheckpoint",
  --- Lists checkpoints, newest first. Takes `sightline.ListCheckpointsParams`, answers `sightline.ListCheckpointsResult`.
  listCheckpoints = "sightline/listCheckpoints",
  --- Lists the turns of agents, and what changed in and between them, newest first. Takes `sightline.ListTurnsParams`, answers `sightline.ListTurnsResult`.
  listTurns = "sightline/listTurns",
  --- Compares two checkpoints, or a checkpoint with the current workspace. Takes `sightline.DiffCheckpointsParams`, answers `sightline.DiffCheckpointsResult`.
  diffCheckpoints = "sightline/diffCheckpoints",
  --- Previews a restore without changing anything. Takes `sightline.PreviewRestoreParams`, answers `sightline.PreviewRestoreResult`.
  previewRestore = "sightline/previewRestore",
  --- Restores files, a conversation or both from a checkpoint. Takes `sightline.RestoreCheckpointParams`, answers `sightline.RestoreCheckpointResult`.
  restoreCheckpoint = "sightline/restoreCheckpoint",
  --- Undoes a restore. Takes `sightline.UndoRestoreParams`, answers `sightline.RestoreCheckpointResult`.
  undoRestore = "sightline/undoRestore",
  --- Returns the number of checkpoints and their disk usage. Takes `sightline.CheckpointStatsParams`, answers `sightline.CheckpointStatsResult`.
  checkpointStats = "sightline/checkpointStats",
  --- Sets or removes the label of a checkpoint. Automatic checkpoints with a label are not counted by `checkpoints.keepAutomatic`. Takes `sightline.LabelCheckpointParams`, answers `sightline.Checkpoint`.
  labelCheckpoint = "sightline/labelCheckpoint",
  --- Returns the author of each line of a file: a turn, an agent or the user. Takes `sightline.BlameParams`, answers `sightline.BlameResult`.
  blame = "sightline/blame",
  --- Creates a commit of a checkpoint on a new branch of the user's repository. The work tree, the index and the current branch stay as they are. Takes `sightline.CommitCheckpointParams`, answers `sightline.CommitCheckpointResult`.
  commitCheckpoint = "sightline/commitCheckpoint",
  --- Removes old checkpoints. Takes `sightline.PruneCheckpointsParams`, answers `sightline.PruneCheckpointsResult`.
  pruneCheckpoints = "sightline/pruneCheckpoints",
  --- Checks the integrity of every checkpoint. Takes `sightline.VerifyCheckpointsParams`, answers `sightline.VerifyCheckpointsResult`.
  verifyCheckpoints = "sightline/verifyCheckpoints",
  --- Lists the MCP servers that agents get, with their states and tools. Takes `sightline.ListMcpServersParams`, answers `sightline.ListMcpServersResult`.
  listMcpServers = "sightline/listMcpServers",
  --- Offers an MCP server to agents, or no longer. Takes `sightline.SetMcpServerEnabledParams`, answers `sightline.McpServer`.
  setMcpServerEnabled = "sightline/setMcpServerEnabled",
  --- Restarts an MCP server in all sessions of agents, at its next call. Takes `sightline.McpServerParams`, answers `sightline.McpServer`.
  restartMcpServer = "sightline/restartMcpServer",
  --- Lets an MCP server of a project run until its command changes, and accepts the tools that it has now. Ask the user first. Takes `sightline.McpServerParams`, answers `sightline.McpServer`.
  trustMcpServer = "sightline/trustMcpServer",
  --- Returns what an MCP server printed. Takes `sightline.McpServerParams`, answers `sightline.McpServerLogResult`.
  mcpServerLog = "sightline/mcpServerLog",
}

--- Client notifications.
M.notifications = {
  --- Reports the tabs of the editor, in order. Takes `sightline.DidChangeTabsParams`.
  didChangeTabs = "sightline/didChangeTabs",
  --- Reports the visible editors. Takes `sightline.DidChangeVisibleEditorsParams`.
  didChangeVisibleEditors = "sightline/didChangeVisibleEditors",
  --- Reports the terminals and their output since the last notification. Takes `sightline.DidChangeTerminalsParams`.
  didChangeTerminals = "sightline/didChangeTerminals",
  --- Reports the diagnostics of one document. Takes `sightline.DidChangeDiagnosticsParams`.
  didChangeDiagnostics = "sightline/didChangeDiagnostics",
  --- Reports the focused editor. Takes `sightline.DidFocusParams`.
  didFocus = "textDocument/didFocus",
}

--- Server requests.
M.server_requests = {
  --- Shows a change that an agent proposes, for the user to accept or reject. Takes `sightline.OpenDiffParams`, answers `sightline.OpenDiffResult`.
  openDiff = "sightline/openDiff",
}

--- Server notifications. Those named `didChange...` and `didCreate...` are sent only if the setting `notifications` is true.
M.server_notifications = {
  --- Closes a diff that was opened with `sightline/openDiff`, because it needs no decision any more. Takes `sightline.CloseDiffParams`.
  closeDiff = "sightline/closeDiff",
  --- The editor state has a new revision. Takes `sightline.DidChangeContextParams`.
  didChangeContext = "sightline/didChangeContext",
  --- The access rules of a workspace folder changed. Takes `sightline.DidChangeAccessRulesParams`.
  didChangeAccessRules = "sightline/didChangeAccessRules",
  --- The agents connected to the editor changed, or are paused or resumed. Takes `sightline.DidChangeBridgesParams`.
  didChangeBridges = "sightline/didChangeBridges",
  --- Files of open documents changed on disk, for example by a restore from the command line. Takes `sightline.DidChangeFilesParams`.
  didChangeFiles = "sightline/didChangeFiles",
  --- An MCP server was started, stopped, called or changed. Sent after the first `sightline/listMcpServers`, at most once a second. Takes `sightline.DidChangeMcpServersParams`.
  didChangeMcpServers = "sightline/didChangeMcpServers",
  --- A checkpoint was created. Takes `sightline.DidCreateCheckpointParams`.
  didCreateCheckpoint = "sightline/didCreateCheckpoint",
}

return M
