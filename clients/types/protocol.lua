-- Generated from the types in server/protocol. Do not edit; change the types, then run
--   UPDATE_GENERATED=1 cargo test -p sightline-protocol --test drift

--- What an agent may do with a path.
---@alias sightline.AccessKind
---| "allowed" # Inside a workspace root and not denied.
---| "denied" # Denied by a rule, or because the question could not be decided.
---| "outside" # Outside every workspace root.

--- The line of a rule file that decided.
---@class sightline.AccessRule
---@field line integer Line number, from 1; 0 for a built-in rule.
---@field pattern string The pattern as written.
---@field source string The file the line stands in, relative to its root; `built-in` for the rule that hides the rule file itself.

--- What an agent may see.
---@class sightline.AccessSettings
---@field outsideWorkspace? sightline.OutsideWorkspace Reading files outside every workspace folder. Default: `"deny"`.

--- Params of `sightline/checkAccess`.
---@class sightline.CheckAccessParams
---@field command? string A shell command line to judge. The answer is advice, not a sandbox.
---@field paths? string[] Paths to judge: `file:` URIs, absolute, or relative to a workspace root. Default: `[]`.

--- Result of `sightline/checkAccess`.
---@class sightline.CheckAccessResult
---@field command? sightline.CommandAccess The verdict on the command, when one was asked about.
---@field paths sightline.PathAccess[] One verdict for each asked path, in the order asked.

--- Checkpoints of the workspace.
---@class sightline.CheckpointSettings
---@field exclude? string[] Folders skipped besides the ignore rules. Default: `["node_modules",".venv","__pycache__"]`.
---@field maxFileSize? integer Files larger than this many bytes are skipped.
---@field maxFiles? integer Files above which the first checkpoint must be confirmed. Default: `500000`.
---@field maxTotalSize? integer Bytes above which the first checkpoint must be confirmed. Default: `10000000000`.

--- The verdict on a command line.
---@class sightline.CommandAccess
---@field allowed boolean False when any operand is denied.
---@field denied sightline.DeniedOperand[] Every denied operand found.

--- Commands run through `workspace/executeCommand`.
---@class sightline.CommandSettings
---@field showResults? boolean Also show the result of a command by message and document. For editors that drop command results; on by default only in Helix.

--- Which decisions about a conversation are made.
---@alias sightline.ConversationProfile
---| "default" # This server's.
---| "cline" # Exactly Cline's.

--- Conversations: truncation and its notices.
---@class sightline.ConversationSettings
---@field notices? sightline.NoticeSettings Texts put in place of what was taken out.
---@field profile? sightline.ConversationProfile Which decisions: this server's, or Cline's exactly. Default: `"default"`.

--- An operand of a command that names a denied file.
---@class sightline.DeniedOperand
---@field path string The operand, as the shell would see it after quotes are removed.
---@field reason string What the command would do with it, in words.
---@field rule? sightline.AccessRule The rule that decided, when a rule did.

--- Params of `sightline/didChangeAccessRules`, server to client.
---@class sightline.DidChangeAccessRulesParams
---@field root string URI of the workspace folder whose rules changed.

--- Params of `sightline/didChangeContext`, server to client.
---@class sightline.DidChangeContextParams
---@field revision integer The newest revision of what the editor shows.

--- Params of `sightline/didChangeTabs`.
---@class sightline.DidChangeTabsParams
---@field tabs sightline.Tab[] All tabs, in editor order.

--- Params of `sightline/didChangeTerminals`.
---@class sightline.DidChangeTerminalsParams
---@field terminals sightline.Terminal[] All terminals.

--- Params of `sightline/didChangeVisibleEditors`.
---@class sightline.DidChangeVisibleEditorsParams
---@field editors sightline.VisibleEditor[] All editors on the screen.

--- Params of `textDocument/didFocus`: the active editor.
---@class sightline.DidFocusParams
---@field textDocument? sightline.FocusedDocument The focused document; absent when no editor has the focus.

--- Params of `sightline/environmentDetails`.
---@class sightline.EnvironmentDetailsParams
---@field consume? boolean Mark terminal output and recently modified files as delivered; false is a pure peek. Default: `true`.
---@field includeFiles? boolean Add the file list, the workspace configuration and the command line tools. Default: `false`.
---@field maxFiles? integer Entries of the file list at most. Default: `200`.
---@field mode? sightline.Mode The agent's mode. Default: `"act"`.
---@field model? sightline.ModelRef The model, for the size of its context window.
---@field now? integer The time to print, milliseconds since the Unix epoch, for reproducible output; the server's clock when absent.
---@field sections? sightline.SectionId[] Only these sections; they come in protocol order, whatever order they have here.
---@field sinceRevision? integer Only sections that changed since this revision (from an earlier result), and the time.
---@field taskId? string Id of the task whose recently modified files are wanted.
---@field timeZone? string IANA name of the time zone to print, for reproducible output; the server's when absent.
---@field usage? sightline.Usage What the last request to the model used.

--- Result of `sightline/environmentDetails`.
---@class sightline.EnvironmentDetailsResult
---@field revision integer Revision of what was shown, for `sinceRevision`.
---@field sections sightline.Section[] Its sections, in order.
---@field text string The whole block, tags included.
---@field tokens integer Estimated tokens of `text`.

--- One record of the environment tracker.
---@class sightline.EnvironmentEntry
---@field cline_version string Version of this server (the key is Cline's).
---@field host_name string The editor's name.
---@field host_version string The editor's version.
---@field os_arch string `x64`, `arm64`, ...
---@field os_name string `linux`, `darwin`, `win32`, ...
---@field os_version string The system's release.
---@field ts integer When, milliseconds since the Unix epoch.

--- The environment block.
---@class sightline.EnvironmentSettings
---@field ignoredFiles? sightline.IgnoredFiles Denied entries of file lists: left out and counted, or shown with a lock. Default: `"hide"`.
---@field outsideFiles? sightline.OutsideFiles Open files outside every workspace folder: left out, or shown. Default: `"hide"`.
---@field sections? table<sightline.SectionId, sightline.SectionSettings> Switches and budgets, by section.

--- The `data` of an error answer.
---@class sightline.ErrorData
---@field kind sightline.ErrorKind The stable kind.
---@field path? string The path in question, when there is one.
---@field rule? sightline.AccessRule The rule that denied, when one did.

--- What went wrong, for programs. The message of the error is for people.
---@alias sightline.ErrorKind
---| "invalidParams" # A parameter is missing, ill-typed or makes no sense.
---| "notFound" # The named thing does not exist.
---| "accessDenied" # The rules forbid it.
---| "conflict" # Something changed meanwhile.
---| "busy" # Another operation holds what is needed.
---| "cancelled" # The client cancelled the request.
---| "unsupported" # Understood, but not for this kind of thing.
---| "storage" # The server's own data could not be read or written.
---| "tooLarge" # Over a limit.
---| "notInitialized" # `initialize` has not been answered yet.
---| "internal" # A defect of the server.

--- One entry of a listing.
---@class sightline.FileEntry
---@field access sightline.AccessKind `denied` entries are present only with the setting `environment.ignoredFiles: "lock"`.
---@field kind sightline.FileKind What it is.
---@field path string Path relative to the workspace root, with `/`, without a trailing slash.
---@field pathEncoded? boolean True when the name is not UTF-8 and `path` is percent-encoded.

--- What an entry of a listing is.
---@alias sightline.FileKind
---| "file" # A regular file (or anything that is none of the other two).
---| "directory" # A directory.
---| "symlink" # A symbolic link; never followed.

--- One record of the file tracker, with Cline's field names.
---
--- Dates are milliseconds since the Unix epoch. On the wire an unknown date is
--- left out; in the stored file it is `null`, as Cline writes it.
---@class sightline.FileMetadataEntry
---@field cline_edit_date? integer When the agent last changed it.
---@field cline_read_date? integer When the agent last read it.
---@field path string Path relative to the workspace root.
---@field record_source sightline.FileOperation What made the record.
---@field record_state sightline.RecordState Whether this is the newest entry of its path, or a newer one replaced it.
---@field user_edit_date? integer When the user last changed it.

--- What happened to a file.
---@alias sightline.FileOperation
---| "read_tool" # The agent read it.
---| "user_edited" # The user changed it.
---| "cline_edited" # The agent changed it.
---| "file_mentioned" # The user mentioned it and its text was sent.

--- The document that has the focus.
---@class sightline.FocusedDocument
---@field uri string Its URI.

--- What to do with denied entries in file lists.
---@alias sightline.IgnoredFiles
---| "hide" # Leave them out; one closing line counts them.
---| "lock" # Show them with a lock mark.

--- Params of `sightline/listFiles`.
---@class sightline.ListFilesParams
---@field limit? integer Stop after this many entries. Default: `200`.
---@field path? string The directory to list: a `file:` URI, absolute, or relative to a workspace root. The first workspace root when absent.
---@field recursive? boolean Also list what is below its directories. Default: `true`.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Result of `sightline/listFiles`.
---@class sightline.ListFilesResult
---@field entries sightline.FileEntry[] The entries, breadth first, each directory in byte order.
---@field omitted integer Entries left out because `.clineignore` denies them.
---@field text string The list as the `files` section of the environment block prints it.
---@field truncated boolean True when the list stopped at the limit or at its time budget.

--- How much is written to the log.
---@alias sightline.LogLevel
---| "off" # Nothing.
---| "error" # Failures.
---| "warn" # Failures and what looks wrong.
---| "info" # Also what happens, in a few lines.
---| "debug" # Also every request.
---| "trace" # Everything.

--- What the server writes to its log.
---@class sightline.LogSettings
---@field file? string Write to this file instead of standard error. Read at start only.
---@field level? sightline.LogLevel How much is written. Default: `"warn"`.

--- The agent's mode.
---@alias sightline.Mode
---| "act" # The agent may change things.
---| "plan" # The agent only plans.

--- A model and what the client knows about it.
---@class sightline.ModelInfo
---@field contextWindow? number Size of the context window in tokens.
---@field id string The model's id.
---@field provider? string The provider's id; `openai` is any OpenAI-compatible endpoint.

--- A model: its id, or the id with what is known about it.
---@alias sightline.ModelRef string|sightline.ModelInfo

--- One record of the model tracker.
---@class sightline.ModelUsageEntry
---@field mode string `act` or `plan`.
---@field model_id string The model's id.
---@field model_provider_id string The provider's id.
---@field ts integer When, milliseconds since the Unix epoch.

--- Texts put in place of what was taken out of a conversation.
---@class sightline.NoticeSettings
---@field duplicateFileRead? string In place of an older read of a file that was read again.
---@field missingToolResult? string As the result of a tool call that has none.
---@field truncation? string In the first assistant message, once something was left out.

--- What to do with open files outside every workspace folder.
---@alias sightline.OutsideFiles
---| "hide" # Leave them out.
---| "show" # Show them.

--- Whether files outside every workspace folder may be read.
---@alias sightline.OutsideWorkspace
---| "deny" # They may not.
---| "allow" # They may.

--- The verdict on one path.
---@class sightline.PathAccess
---@field access sightline.AccessKind The verdict.
---@field path string The path as it was asked.
---@field reason? string Why, when no rule decided (a path that makes no sense, rules that cannot be read).
---@field rule? sightline.AccessRule The rule that decided, when a rule did.

--- A position in text, as in LSP.
---@class sightline.Position
---@field character integer Offset in the line, from 0, in the negotiated position encoding.
---@field line integer Line, from 0.

--- The token of `$/progress`: a string or a whole number.
---@alias sightline.ProgressToken string|integer

--- A range of text, as in LSP.
---@class sightline.Range
---@field end sightline.Position Position after the last.
---@field start sightline.Position First position.

--- Params of `sightline/readFile`.
---@class sightline.ReadFileParams
---@field endLine? integer Last line wanted, inclusive.
---@field maxBytes? integer Return at most this many bytes of UTF-8 text; cut at a character.
---@field path string The file: a `file:` URI, absolute, or relative to a workspace root.
---@field startLine? integer First line wanted, from 1.
---@field taskId? string Also record the read for the task of this id, as `sightline/trackFile` does.

--- Result of `sightline/readFile`.
---@class sightline.ReadFileResult
---@field encoding? string The encoding the bytes on disk were read as, when it is not UTF-8.
---@field isDirty boolean True when the editor holds unsaved changes of this file.
---@field source sightline.TextSource Where it came from.
---@field text string The text, or the lines asked for, line endings as they are.
---@field tokens integer Estimated tokens of `text`.
---@field totalLines integer Lines of the whole file; a last line without line ending counts.
---@field truncated boolean True when `maxBytes` cut the text.

--- Params of `sightline/recordEnvironment`.
---@class sightline.RecordEnvironmentParams
---@field now? integer The time to record, milliseconds since the Unix epoch; the server's clock when absent.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.

--- Params of `sightline/recordModel`.
---@class sightline.RecordModelParams
---@field mode sightline.Mode The agent's mode.
---@field modelId string The model's id.
---@field now? integer The time to record, milliseconds since the Unix epoch; the server's clock when absent.
---@field providerId string The provider's id.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.

--- Whether an entry is the newest of its path.
---@alias sightline.RecordState
---| "active" # The newest.
---| "stale" # Replaced by a newer entry.

--- Result of `sightline/recordModel` and `sightline/recordEnvironment`.
---@class sightline.RecordedResult
---@field recorded boolean False when equal to the last record.

--- One section of the block.
---@class sightline.Section
---@field derived? boolean True when the client did not send this and it was derived from open documents.
---@field heading string The heading, without `# `.
---@field id sightline.SectionId Which section this is.
---@field omitted integer Entries left out: denied, outside, or over the section's budget.
---@field text string The body.
---@field tokens integer Estimated tokens of heading and body.

--- The sections of the block, in the order they are printed.
---@alias sightline.SectionId
---| "workspaceRoots" # The workspace folders, when there are several.
---| "visibleFiles" # Files visible in an editor.
---| "openTabs" # Files open in a tab.
---| "runningTerminals" # Terminals with a running command.
---| "inactiveTerminals" # Idle terminals with unread output.
---| "recentlyModified" # Files changed since the agent last saw them.
---| "currentTime" # Date, time and zone.
---| "files" # The file list.
---| "workspaceConfiguration" # Roots, git remotes and commits, as JSON.
---| "cliTools" # Command line tools found on the search path.
---| "unsavedFiles" # Open files with unsaved changes.
---| "contextWindow" # How full the context window is.
---| "mode" # Plan or act.

--- One section of the block.
---@class sightline.SectionSettings
---@field enabled? boolean False leaves the section out.
---@field maxTokens? integer Cut the body of the section at this many estimated tokens, at whole lines. The heading, and a line that counts what was cut, come on top.

--- Settings of Sightline, as found in `initializationOptions`, in section
--- `sightline` of the editor's configuration and in `didChangeConfiguration`.
---@class sightline.Settings
---@field access? sightline.AccessSettings What an agent may see.
---@field checkpoints? sightline.CheckpointSettings Checkpoints of the workspace.
---@field commands? sightline.CommandSettings Commands run through `workspace/executeCommand`.
---@field conversation? sightline.ConversationSettings Conversations: truncation and its notices.
---@field environment? sightline.EnvironmentSettings The environment block.
---@field log? sightline.LogSettings What the server writes to its log.
---@field notifications? boolean Send the notifications of the server, such as `sightline/didChangeContext`. Default: `false`.
---@field storage? sightline.StorageSettings Where the server keeps its data.

--- Where the server keeps its data.
---@class sightline.StorageSettings
---@field path? string Absolute path of the data directory; the platform's place when absent.

--- One tab.
---@class sightline.Tab
---@field group? integer Number of the tab group or window column.
---@field isActive? boolean True for the tab in front of its group.
---@field isDirty? boolean True when it holds unsaved changes.
---@field isPinned? boolean True when the user pinned it.
---@field isPreview? boolean True for a preview that the next opened file replaces.
---@field uri string URI of the document in the tab.

--- Params of `sightline/taskContext`.
---@class sightline.TaskContextParams
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.

--- Result of `sightline/taskContext`: the agent's picture of the files, and
--- where it no longer holds.
---@class sightline.TaskContextResult
---@field changed string[] Files whose content differs from what the agent last saw.
---@field deleted string[] Files the agent saw and that are gone.
---@field environments sightline.EnvironmentEntry[] All environment records, oldest first.
---@field files sightline.FileMetadataEntry[] All file records, oldest first.
---@field models sightline.ModelUsageEntry[] All model records, oldest first.

--- One terminal.
---@class sightline.Terminal
---@field command? string The command that runs or ran last.
---@field cwd? string Its working directory.
---@field exitCode? integer Exit code of the last command.
---@field id string The client's id of the terminal; a number is taken as its decimal form.
---@field isBusy boolean True while a command is running.
---@field name? string Its title.
---@field newOutput? string Output since the last notification; appended to what is unread.

--- Where the text of a `readFile` answer came from.
---@alias sightline.TextSource
---| "buffer" # The editor's buffer.
---| "disk" # The file on disk.

--- Params of `sightline/trackFile`.
---@class sightline.TrackFileParams
---@field contentHash? string With `cline_edited`: SHA-256 (hex) of the content the agent wrote.
---@field now? integer The time to record, milliseconds since the Unix epoch; the server's clock when absent.
---@field operation sightline.FileOperation What happened to it.
---@field path string The file: a `file:` URI, absolute, or relative to a workspace root.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.

--- Result of `sightline/trackFile`.
---@class sightline.TrackFileResult
---@field entry sightline.FileMetadataEntry The entry just made.

--- Tokens of one request to a model, as the provider reported them.
---@class sightline.Usage
---@field cacheReads? number Tokens read from the prompt cache.
---@field cacheWrites? number Tokens written to the prompt cache.
---@field tokensIn? number Input tokens.
---@field tokensOut? number Output tokens.

--- One editor on the screen.
---@class sightline.VisibleEditor
---@field isActive? boolean True for the editor with the focus.
---@field selections? sightline.Range[] The selections; an empty range is a cursor.
---@field uri string URI of the document.
---@field visibleRanges? sightline.Range[] The lines scrolled into view; several ranges when folds hide some.

local M = {}

--- Version of the wire protocol these types describe.
M.PROTOCOL_VERSION = 1

--- Requests of a client.
M.methods = {
  --- Builds the `<environment_details>` block of this moment. Takes `sightline.EnvironmentDetailsParams`, answers `sightline.EnvironmentDetailsResult`.
  environmentDetails = "sightline/environmentDetails",
  --- Judges paths and a command line against `.clineignore`. Takes `sightline.CheckAccessParams`, answers `sightline.CheckAccessResult`.
  checkAccess = "sightline/checkAccess",
  --- Lists files, breadth first, without what may not be seen. Takes `sightline.ListFilesParams`, answers `sightline.ListFilesResult`.
  listFiles = "sightline/listFiles",
  --- Reads a file: unsaved editor text first, access enforced. Takes `sightline.ReadFileParams`, answers `sightline.ReadFileResult`.
  readFile = "sightline/readFile",
  --- Records that a task read, changed or mentioned a file. Takes `sightline.TrackFileParams`, answers `sightline.TrackFileResult`.
  trackFile = "sightline/trackFile",
  --- Records the model a task uses. Takes `sightline.RecordModelParams`, answers `sightline.RecordedResult`.
  recordModel = "sightline/recordModel",
  --- Records system and editor a task runs on. Takes `sightline.RecordEnvironmentParams`, answers `sightline.RecordedResult`.
  recordEnvironment = "sightline/recordEnvironment",
  --- Tells what a task knows of its files, and where that is out of date. Takes `sightline.TaskContextParams`, answers `sightline.TaskContextResult`.
  taskContext = "sightline/taskContext",
}

--- Notifications a client sends.
M.notifications = {
  --- The tabs of the editor, in order. Takes `sightline.DidChangeTabsParams`.
  didChangeTabs = "sightline/didChangeTabs",
  --- The editors on the screen. Takes `sightline.DidChangeVisibleEditorsParams`.
  didChangeVisibleEditors = "sightline/didChangeVisibleEditors",
  --- The terminals, with output since the last notification. Takes `sightline.DidChangeTerminalsParams`.
  didChangeTerminals = "sightline/didChangeTerminals",
  --- The editor that has the focus. Takes `sightline.DidFocusParams`.
  didFocus = "textDocument/didFocus",
}

--- Notifications the server sends when the setting `notifications` is on.
M.server_notifications = {
  --- What the editor shows has a new revision. Takes `sightline.DidChangeContextParams`.
  didChangeContext = "sightline/didChangeContext",
  --- The access rules of a root changed. Takes `sightline.DidChangeAccessRulesParams`.
  didChangeAccessRules = "sightline/didChangeAccessRules",
}

return M
