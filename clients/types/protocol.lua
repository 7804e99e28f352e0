-- Generated from the types in server/protocol. Do not edit; change the types, then run
--   UPDATE_GENERATED=1 cargo test -p sightline-protocol --test drift --test documents

--- What an agent may do with a path.
---@alias sightline.AccessKind
---| "allowed" # Inside a workspace root and not denied.
---| "denied" # Denied by a rule, or because the question could not be decided.
---| "outside" # Outside every workspace root.

--- The line of a rule file that decided.
---@class sightline.AccessRule
---@field line integer Line number, from 1; 0 for a built-in rule.
---@field pattern string The pattern as written.
---@field source string The file the line stands in, relative to its root, or its whole path when it stands above the root; `built-in` for the rule that hides the rule file itself.

--- What an agent may see.
---@class sightline.AccessSettings
---@field outsideWorkspace? sightline.OutsideWorkspace Reading files outside every workspace folder. Default: `"deny"`.
---@field recursiveReaders? sightline.RecursiveReaders Commands that read whole folders, such as `grep -r` and `tar`, where a folder holds denied files that the command does not exclude. Default: `"deny"`.

--- Params of `sightline/appendMessages`.
---@class sightline.AppendMessagesParams
---@field messages sightline.Message[] The messages that came since the last call, in order.
---@field meta? sightline.MessageMeta What is recorded beside each of them.
---@field taskId string Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`.

--- Result of `sightline/appendMessages`.
---@class sightline.AppendMessagesResult
---@field count integer Messages of the conversation in all, since its last compaction if there was one: as many as `sightline/loadTask` gives.

--- Params of `sightline/applyCompaction`.
---@class sightline.ApplyCompactionParams
---@field error? string Why there is no summary.
---@field maxFiles? integer Files whose text is kept at hand at most; 5 when absent.
---@field maxLinesPerFile? integer Lines of each of them at most; 1000 when absent.
---@field messages? sightline.Message[] The whole conversation. When absent, the stored one of `taskId`.
---@field model? sightline.ModelRef The model the conversation is for, to count its tokens.
---@field retainFrom? integer Index of the first message that stays as it is, from the plan; decided anew when absent.
---@field summary? string What the model answered.
---@field taskId? string Id of the task whose stored conversation is meant; it is then compacted.
---@field trigger? sightline.CompactionTrigger Who wanted it. Default: `"auto"`.

--- Result of `sightline/applyCompaction`.
---@class sightline.ApplyCompactionResult
---@field fallback boolean Was there no summary, so that the newest part was kept instead?
---@field fallbackReason? string Why there was none.
---@field filesIncluded string[] The files whose text goes with the summary.
---@field messages sightline.Message[] The conversation from now on.
---@field postTokens integer Its tokens now.
---@field preTokens integer Its tokens before.

--- Params of `sightline/checkAccess`.
---@class sightline.CheckAccessParams
---@field command? string A shell command line to judge. The answer is advice, not a sandbox.
---@field paths? string[] Paths to judge: `file:` URIs, absolute, or relative to a workspace root. Default: `[]`.

--- Result of `sightline/checkAccess`.
---@class sightline.CheckAccessResult
---@field command? sightline.CommandAccess The verdict on the command, when one was asked about.
---@field paths sightline.PathAccess[] One verdict for each asked path, in the order asked.

--- The workspace as it was.
---@class sightline.Checkpoint
---@field added integer Files that were not in the one before.
---@field bytes integer Their sizes, in bytes.
---@field createdAt integer When it was taken, milliseconds since the Unix epoch.
---@field deleted integer Files of the one before that are not in it.
---@field durationMs integer How long it took, in milliseconds.
---@field files integer Files it holds.
---@field group? sightline.GroupMember[] The checkpoints that were taken together, one of each workspace folder; absent when there is one folder.
---@field id string Its id, that of a git commit: 40 hexadecimal digits.
---@field imported? string The id it had in the store it was imported from. Wherever the id of a checkpoint is wanted, this one is understood too.
---@field label? string What people call it.
---@field messages? integer How many messages the conversation of its task had.
---@field modified integer Files that were in it with other content or mode.
---@field purpose? sightline.CheckpointPurpose Why it was taken, when nobody asked for it.
---@field root string URI of the workspace folder it is of.
---@field skipped sightline.SkippedPath[] What is in the workspace and not in the checkpoint. What the ignore rules leave out is not named.
---@field taskId? string The task it belongs to.

--- Why a checkpoint was taken that nobody asked for.
---@alias sightline.CheckpointPurpose
---| "undo" # Before a restore, to be able to undo it.
---| "imported" # It came from another tool's store.

--- Checkpoints of the workspace.
---@class sightline.CheckpointSettings
---@field exclude? string[] Folders skipped besides the ignore rules. Default: `["node_modules",".venv","__pycache__"]`.
---@field maxFileSize? integer Files larger than this many bytes are skipped. Default: `20971520`.
---@field maxFiles? integer Files above which the first checkpoint must be confirmed. Default: `500000`.
---@field maxTotalSize? integer Bytes above which the first checkpoint must be confirmed. Default: `10737418240`.

--- Params of `sightline/checkpointStats`.
---@class sightline.CheckpointStatsParams
---@field root? string Only this workspace folder: its path, URI or name.

--- Result of `sightline/checkpointStats`.
---@class sightline.CheckpointStatsResult
---@field bytes integer What they take on disk, in bytes.
---@field count integer Checkpoints that are stored, undo points included.
---@field newest? integer When the newest was taken, milliseconds since the Unix epoch.
---@field oldest? integer When the oldest was taken, milliseconds since the Unix epoch.

--- Params of `sightline/classifyError`.
---@class sightline.ClassifyErrorParams
---@field error? any The error as the client has it: the body, or the error object with all its properties.
---@field provider? string The provider's id.

--- Result of `sightline/classifyError`.
---@class sightline.ClassifyErrorResult
---@field contextWindowExceeded boolean The request was refused because it is too long for the model: truncate, then send.
---@field retryable boolean The same request may succeed later: wait, then send.

--- The verdict on a command line.
---@class sightline.CommandAccess
---@field allowed boolean False when any operand is denied.
---@field denied sightline.DeniedOperand[] Every denied operand found.

--- Commands run through `workspace/executeCommand`.
---@class sightline.CommandSettings
---@field showResults? boolean Also show the result of a command by message and document. For editors that drop command results; on by default only in Helix.

--- Who wanted a compaction.
---@alias sightline.CompactionTrigger
---| "auto" # The window was full.
---| "manual" # The user.

--- Which decisions about a conversation are made.
---@alias sightline.ConversationProfile
---| "default" # This server's.
---| "cline" # Exactly Cline's.

--- Conversations: truncation and its notices.
---@class sightline.ConversationSettings
---@field models? table<string, sightline.ModelSettings> Context windows of models, by id, for those that are not known or known wrongly. What a request says of its model comes first.
---@field notices? sightline.NoticeSettings Texts put in place of what was taken out.
---@field profile? sightline.ConversationProfile Which decisions: this server's, or Cline's exactly. Default: `"default"`.

--- Params of `sightline/countTokens`.
---@class sightline.CountTokensParams
---@field encoding? string Count with this encoding whatever the model: `o200k_base`, `o200k_harmony`, `cl100k_base`, `p50k_base`, `p50k_edit`, `r50k_base` or `gpt2`.
---@field messages? sightline.Message[] Messages to count with what frames them: `role` and `content`, a string or blocks. Default: `[]`.
---@field model? sightline.ModelRef The model that will read them. Without model and encoding the count is that of `o200k_base`.
---@field taskId? string The task these messages belong to: usage reported for it is the base of the count. Without texts and messages, what would be sent of its stored conversation is counted.
---@field texts? string[] Texts to count as they are; the markers of special tokens count as ordinary text. Default: `[]`.
---@field usage? sightline.Usage What the provider reported for a request with just these texts and messages; the later counts of the task start from it.

--- Result of `sightline/countTokens`.
---@class sightline.CountTokensResult
---@field calibration? number Tokens the provider reported for one counted here, when usage was reported.
---@field encoding string The encoding the figures were counted with or made from.
---@field exact boolean True when `tokens` is what the encoding gives, not an estimate.
---@field items integer[] One figure for each text, then one for each message, in the order given.
---@field lower? integer The least it is likely to be; absent when exact.
---@field method string How the figure was made.
---@field tokens integer All of it. The sum of `items`, unless reported usage is the base.
---@field upper? integer The most it is likely to be; absent when exact.

--- Params of `sightline/createCheckpoint`.
---@class sightline.CreateCheckpointParams
---@field confirmLarge? boolean Go ahead however large the workspace is. Default: `false`.
---@field label? string What people call it.
---@field root? string A workspace folder: its path, URI or name. One checkpoint of each folder, as a group, when absent.
---@field taskId? string The task it belongs to.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- What `sightline/truncateHistory` did.
---@alias sightline.Decision
---| "fits" # Nothing had to be done.
---| "deduplicated" # Duplicate file reads were replaced, and that was enough.
---| "truncated" # Messages are left out.

--- Params of `sightline/deleteTask`.
---@class sightline.DeleteTaskParams
---@field taskId string Id of the task.

--- Result of `sightline/deleteTask`.
---@class sightline.DeleteTaskResult
---@field freedBytes integer Bytes its files took.

--- An operand of a command that names a denied file.
---@class sightline.DeniedOperand
---@field path string The operand, as the shell would see it after quotes are removed.
---@field reason string What the command would do with it, in words.
---@field rule? sightline.AccessRule The rule that decided, when a rule did.

--- What is marked in open documents.
---@class sightline.DiagnosticSettings
---@field changedFiles? boolean Mark open files that changed since the last checkpoint, by a hint on their first line. Default: `false`.
---@field rules? boolean Mark mistakes in `.clineignore`, and rules that decide on nothing. Default: `true`.

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

--- Params of `sightline/didCreateCheckpoint`.
---@class sightline.DidCreateCheckpointParams
---@field checkpoint sightline.Checkpoint The checkpoint.

--- Params of `textDocument/didFocus`: the active editor.
---@class sightline.DidFocusParams
---@field textDocument? sightline.FocusedDocument The focused document; absent when no editor has the focus.

--- Params of `sightline/diffCheckpoints`.
---@class sightline.DiffCheckpointsParams
---@field contents? boolean Also give the contents. Default: `false`.
---@field from string The older side: id of a checkpoint.
---@field patch? boolean Also give the differences as unified text, in `text`. Default: `false`.
---@field paths? string[] Only these paths and what is below them; all when absent.
---@field to? string The newer side; the workspace as it is now when absent.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Result of `sightline/diffCheckpoints`.
---@class sightline.DiffCheckpointsResult
---@field files sightline.FileDifference[] The files that differ, in order of path.
---@field text? string The differences as unified text, when that was wanted.

--- How a file differs.
---@alias sightline.DifferenceStatus
---| "added" # It is new.
---| "modified" # Its content, or whether it may be executed.
---| "deleted" # It is gone.
---| "renamed" # It is elsewhere, its content the same or similar.
---| "typeChanged" # A file became a link, or a link a file; or it became neither.

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
---@field sections? table<sightline.SectionId, sightline.SectionSettings> Switches and budgets, by the name of a section: `openTabs`, `files`, ...

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

--- A file that differs.
---@class sightline.FileDifference
---@field additions integer Lines that are new; 0 when binary.
---@field after? string The new text, when contents were wanted.
---@field before? string The old text, when contents were wanted.
---@field binary boolean One of the sides is no text.
---@field deletions integer Lines that are gone; 0 when binary.
---@field newMode? string git's mode after.
---@field oldMode? string git's mode before, as `100644`.
---@field oldPath? string Where it was, when it is elsewhere now.
---@field omitted? string Why contents that were wanted are not here; also without that, why the file was not compared.
---@field path string Where it is, or was when it is gone: relative to a workspace folder.
---@field pathEncoded? boolean True when a name is not UTF-8 and `path` and `oldPath` are percent-encoded.
---@field status sightline.DifferenceStatus How it differs.
---@field uri string The file, to be opened.

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
---@field cline_edit_date? integer When the agent last changed it, milliseconds since the Unix epoch.
---@field cline_read_date? integer When the agent last read it, milliseconds since the Unix epoch.
---@field path string Path relative to the workspace root.
---@field record_source sightline.FileOperation What made the record.
---@field record_state sightline.RecordState Whether this is the newest entry of its path, or a newer one replaced it.
---@field user_edit_date? integer When the user last changed it, milliseconds since the Unix epoch.

--- What happened to a file.
---@alias sightline.FileOperation
---| "read_tool" # The agent read it.
---| "user_edited" # The user changed it.
---| "cline_edited" # The agent changed it.
---| "file_mentioned" # The user mentioned it and its text was sent.

--- The document that has the focus.
---@class sightline.FocusedDocument
---@field uri string Its URI.

--- One of the checkpoints that were taken together.
---@class sightline.GroupMember
---@field id string Its checkpoint.
---@field root string URI of the workspace folder.

--- What to do with denied entries in file lists.
---@alias sightline.IgnoredFiles
---| "hide" # Leave them out; one closing line counts them.
---| "lock" # Show them with a lock mark.

--- How much of the conversation after its first two messages stays.
---@alias sightline.Keep
---| "none" # Nothing.
---| "lastTwo" # The last two messages.
---| "half" # About half.
---| "quarter" # About a quarter.

--- A file whose text goes with a summary.
---@class sightline.KeyFile
---@field lines integer Lines of it that are shown.
---@field path string The file, as results name it.
---@field reason sightline.KeyFileReason Why it was chosen.

--- Why a file goes with a summary, in order of weight.
---@alias sightline.KeyFileReason
---| "modified" # It was changed in the conversation.
---| "mentioned" # It is mentioned several times.
---| "recent" # It was read lately.

--- Params of `sightline/listCheckpoints`.
---@class sightline.ListCheckpointsParams
---@field limit? integer At most so many, the newest.
---@field root? string Only those of this workspace folder: its path, URI or name.
---@field taskId? string Only those of this task.

--- Result of `sightline/listCheckpoints`.
---@class sightline.ListCheckpointsResult
---@field checkpoints sightline.Checkpoint[] The checkpoints, the newest first.

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
---@field outside? integer Links left out because they lead outside the workspace folders.
---@field text string The list as the `files` section of the environment block prints it.
---@field truncated boolean True when the list stopped at the limit or at its time budget.

--- Params of `sightline/listTasks`.
---@class sightline.ListTasksParams
---@field limit? integer Tasks at most; all when absent.

--- Result of `sightline/listTasks`.
---@class sightline.ListTasksResult
---@field tasks sightline.TaskSummary[] The tasks, last updated first.

--- Params of `sightline/loadTask`.
---@class sightline.LoadTaskParams
---@field taskId string Id of the task.

--- Result of `sightline/loadTask`.
---@class sightline.LoadTaskResult
---@field contextHistory any[] The edits made to what is sent, in the form of Cline's `context_history.json`.
---@field deletedRange integer[] The messages left out of requests: first and last index, both included. `[2, 1]` is none.
---@field messages sightline.Message[] The whole conversation, since its last compaction if there was one.
---@field metadata sightline.TaskMetadata What is known of the task.
---@field recovered sightline.Recovered What reading the log found.

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

--- A message in the form of Anthropic's API. Other keys and kinds of blocks are allowed and come back untouched.
---@class sightline.Message
---@field content any A string, or a list of content blocks.
---@field role string `user` or `assistant`.
---@field [string] any

--- The new text of one block.
---@class sightline.MessageEdit
---@field block integer Index of the block in the message's content.
---@field message integer Index of the message in the whole conversation.
---@field text string Its text, or of a tool result the text of its first block.

--- Which messages are shown: the newest that meet all of these.
---@class sightline.MessageFilter
---@field maxAge? integer Not older than this many milliseconds; messages without a `ts` have no age.
---@field maxMessages? integer Messages at most.
---@field maxTokens? integer Tokens of all of them at most.

--- What is recorded beside a message.
---@class sightline.MessageMeta
---@field cwd? string The agent's working directory; the first workspace folder when absent.
---@field gitBranch? string The branch checked out there; looked up when absent.
---@field now? integer When the messages came, milliseconds since the Unix epoch; the server's clock when absent.
---@field sessionId? string The client's session; that of the server when absent.
---@field version? string The version of the client that writes; the one it named itself with, or that of the server, when absent.

--- A message that is sent in another form.
---@class sightline.MessageRepair
---@field message integer Index of the message in the whole conversation.
---@field replacement sightline.Message What to send in its place; its edits are in it.

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

--- The context window of a model.
---@class sightline.ModelSettings
---@field contextWindow? integer All of it, in tokens.
---@field usableTokens? integer What may be used before something is taken out, in tokens; decided from the window when absent.

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
---@field truncation? string In the text of an assistant message, once something was left out.

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

--- Params of `sightline/planCompaction`.
---@class sightline.PlanCompactionParams
---@field filter? sightline.MessageFilter Which messages the prompt shows, besides what fits the model.
---@field instructions? string What the summary should heed, in the user's words.
---@field maxFiles? integer Files whose text is kept at hand at most. Default: `5`.
---@field maxLinesPerFile? integer Lines of each of them at most. Default: `1000`.
---@field messages? sightline.Message[] The whole conversation. When absent, the stored one of `taskId`.
---@field model sightline.ModelRef The model the conversation is for, and the prompt.
---@field retainRatio? number The newest part that stays as it is: a fraction of the messages. Default: `0.2`.
---@field taskId? string Id of the task whose stored conversation is meant.

--- Result of `sightline/planCompaction`.
---@class sightline.PlanCompactionResult
---@field files sightline.KeyFile[] The files whose text goes with the summary.
---@field needed boolean Is the model's window so full that compacting is worth it, and is there anything to compact besides an earlier summary?
---@field prompt string What to send to a model, as the only message.
---@field retainFrom integer Index of the first message that stays as it is.
---@field tokens integer Tokens of what would be sent now.

--- A position in text, as in LSP.
---@class sightline.Position
---@field character integer Offset in the line, from 0, in the negotiated position encoding.
---@field line integer Line, from 0.

--- Params of `sightline/previewRestore`.
---@class sightline.PreviewRestoreParams
---@field allRoots? boolean Also the checkpoints of other workspace folders taken with it; a `conflict` when one of those folders is not open. Default: `false`.
---@field id string The checkpoint; the word `HEAD ` in front of it is passed over. With `undo` an undo point, or `last` for that of the last restore.
---@field paths? string[] Only these paths and what is below them; all when absent.
---@field undo? boolean Preview `sightline/undoRestore`: all that it would change, in every folder. Default: `false`.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Result of `sightline/previewRestore`.
---@class sightline.PreviewRestoreResult
---@field changes sightline.RestoreChange[] What would be changed.
---@field conflicts sightline.RestoreConflict[] What differs and would be left alone.
---@field taskId? string With `undo`: the task whose conversation would be put back as well.
---@field token string Names this preview: a restore with it does just this, or nothing.
---@field undoId? string With `undo`: the undo point.

--- What a request to a model used, and when it was sent.
---@class sightline.PreviousRequest
---@field cacheReads? number Tokens read from the prompt cache.
---@field cacheWrites? number Tokens written to the prompt cache.
---@field tokensIn? number Input tokens.
---@field tokensOut? number Output tokens.
---@field ts number When it was sent, milliseconds since the Unix epoch. Edits made now carry this time.

--- The token of `$/progress`: a string or a whole number.
---@alias sightline.ProgressToken string|integer

--- Params of `sightline/pruneCheckpoints`. Without any limit nothing is removed.
---@class sightline.PruneCheckpointsParams
---@field dryRun? boolean Only tell what would be removed. Default: `false`.
---@field keep? integer Keep the newest so many of each workspace folder; undo points are not counted.
---@field maxBytes? integer Remove the oldest until each workspace folder's take so many bytes.
---@field olderThan? integer Remove those taken before this time, milliseconds since the Unix epoch.
---@field root? string Only this workspace folder: its path, URI or name.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Result of `sightline/pruneCheckpoints`.
---@class sightline.PruneCheckpointsResult
---@field checkpoints? string[] With `dryRun`: the ids of those that would be removed, the newest first.
---@field freedBytes integer Bytes on disk given back; with `dryRun` an estimate.
---@field removed integer Checkpoints that were removed; with `dryRun` those that would be.

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

--- What reading a log found.
---@class sightline.Recovered
---@field dropped integer Lines that made no sense and are left out; they stay in the file.
---@field lines integer Lines that were read.

--- Whether commands may read whole folders that hold denied files.
---@alias sightline.RecursiveReaders
---| "deny" # Deny them.
---| "allow" # Allow them.

--- What a restore does to a path.
---@alias sightline.RestoreAction
---| "write" # It gets the content, mode or type it had.
---| "delete" # It goes.

--- Something a restore would change.
---@class sightline.RestoreChange
---@field action sightline.RestoreAction What would be done.
---@field changedSince? boolean True when this is an undo point and the path was changed after the restore: the undo takes that change away too.
---@field path string Path relative to a workspace folder.
---@field pathEncoded? boolean True when the name is not UTF-8 and `path` is percent-encoded.
---@field reason string Why, for people.
---@field uri string The file, to be opened.

--- Params of `sightline/restoreCheckpoint`.
---@class sightline.RestoreCheckpointParams
---@field allRoots? boolean Also the checkpoints of other workspace folders taken with it; a `conflict` when one of those folders is not open. Default: `false`.
---@field force? boolean Also replace unsaved text of open documents. Default: `false`.
---@field id string The checkpoint; the word `HEAD ` in front of it is passed over.
---@field mode? sightline.RestoreMode What is restored. Default: `"files"`.
---@field paths? string[] Only these paths and what is below them; all when absent.
---@field taskId? string The task; that of the checkpoint when absent.
---@field token? string The preview this must still be true of; else nothing is done, and the error is a `conflict`.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`.
---@class sightline.RestoreCheckpointResult
---@field conflicts? sightline.RestoreConflict[] What differs and was left alone; absent when nothing was.
---@field outcomes sightline.RestoreOutcome[] What became of each path that was to be changed.
---@field task? sightline.RestoredTask What became of the conversation, when that was restored.
---@field undoId? string The checkpoint taken just before: give it to `sightline/undoRestore`. Absent when there was nothing to do: the undo of the restore before stays the last one.

--- Something that differs and is left alone.
---@class sightline.RestoreConflict
---@field path string Path relative to a workspace folder.
---@field pathEncoded? boolean True when the name is not UTF-8 and `path` is percent-encoded.
---@field reason string Why, for people.
---@field uri string The file, to be opened.

--- What is restored.
---@alias sightline.RestoreMode
---| "files" # The files.
---| "task" # The conversation of the task, to what it was, also on a branch that was left since; a `conflict` when its log does not hold that.
---| "filesAndTask" # Both.

--- What became of a path.
---@class sightline.RestoreOutcome
---@field action sightline.RestoreAction What was to be done.
---@field error? string Why not.
---@field ok boolean Was it done?
---@field path string Path relative to a workspace folder.
---@field pathEncoded? boolean True when the name is not UTF-8 and `path` is percent-encoded.
---@field uri string The file, to be opened.

--- A conversation that was taken back, or forth again.
---@class sightline.RestoredTask
---@field messages integer Messages its conversation has now.
---@field taskId string The task.

--- Params of `sightline/resumeTask`.
---@class sightline.ResumeTaskParams
---@field now? integer The time it is resumed, milliseconds since the Unix epoch; the server's clock when absent.
---@field taskId? string Id of the task; the last updated one of this workspace when absent.

--- Result of `sightline/resumeTask`.
---@class sightline.ResumeTaskResult
---@field interruptedTools string[] Tool calls that have no result in the log, by the id of their call.
---@field messages sightline.Message[] The messages to go on with: what the model was sent last, every tool call answered. The client adds `resumption` and the user's words.
---@field resumption string The text that tells the model that and how it was interrupted. It begins with `[TASK RESUMPTION]`.
---@field taskId string Id of the task.

--- Params of `sightline/rollbackHistory`.
---@class sightline.RollbackHistoryParams
---@field contextHistory? any[] The edits. When absent, the stored ones of `taskId`.
---@field taskId? string Id of the task whose stored edits are meant; the outcome is stored too.
---@field timestamp number Edits newer than this go, milliseconds since the Unix epoch.

--- Result of `sightline/rollbackHistory`.
---@class sightline.RollbackHistoryResult
---@field contextHistory any[] The edits that are left.

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
---@field diagnostics? sightline.DiagnosticSettings What is marked in open documents.
---@field environment? sightline.EnvironmentSettings The environment block.
---@field log? sightline.LogSettings What the server writes to its log.
---@field notifications? boolean Send the notifications of the server, such as `sightline/didChangeContext`. Default: `false`.
---@field storage? sightline.StorageSettings Where the server keeps its data.
---@field tasks? sightline.TaskSettings Stored tasks: how many are kept.

--- Something that is not in a checkpoint.
---@class sightline.SkippedPath
---@field path string Path below the workspace folder of the checkpoint, with `/`.
---@field pathEncoded? boolean True when the name is not UTF-8 and `path` is percent-encoded.
---@field reason string Why, for people.

--- Where the server keeps its data.
---@class sightline.StorageSettings
---@field path? string Absolute path of the data directory; the platform's place when absent.

--- What `sightline/truncateHistory` may do.
---@alias sightline.Strategy
---| "auto" # When the window is full, replace duplicate file reads; when that saves too little, leave messages out.
---| "apply" # Only apply the range and the edits as they are.
---| "deduplicate" # Only replace duplicate file reads, full or not.

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

--- What is known of a task beside its conversation.
---@class sightline.TaskMetadata
---@field compactions integer How often the conversation was compacted.
---@field createdAt integer When its first message came, milliseconds since the Unix epoch.
---@field cwd? string The agent's working directory, as recorded last.
---@field environments sightline.EnvironmentEntry[] The environments it ran in.
---@field files sightline.FileMetadataEntry[] What the agent knows of files, as in Cline's `task_metadata.json`.
---@field gitBranch? string The branch checked out there, as recorded last.
---@field models sightline.ModelUsageEntry[] The models used.
---@field title string Its title: the beginning of the first text the user wrote.
---@field updatedAt integer When its last one came, milliseconds since the Unix epoch.

--- Stored tasks: how many are kept. The last updated stay; nothing is deleted
--- by itself while all of these are absent.
---@class sightline.TaskSettings
---@field maxAgeDays? integer Delete tasks not updated for this many days.
---@field maxBytes? integer Keep tasks up to this many bytes in all.
---@field maxCount? integer Keep this many tasks.

--- One task of a list.
---@class sightline.TaskSummary
---@field createdAt integer When its first message came, milliseconds since the Unix epoch.
---@field cwd? string The agent's working directory, as recorded last.
---@field messageCount integer Messages of the conversation in all.
---@field taskId string Its id.
---@field title string Its title: the beginning of the first text the user wrote.
---@field updatedAt integer When its last one came, milliseconds since the Unix epoch.

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

--- Tokens of the messages before and after.
---@class sightline.TokenChange
---@field after integer Tokens of what is to be sent now.
---@field before integer Tokens of what would have been sent without this call.

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

--- Params of `sightline/truncateHistory`.
---@class sightline.TruncateHistoryParams
---@field contextHistory? any[] The edits made so far: the `contextHistory` of the last result, or the content of Cline's `context_history.json`.
---@field countTokens? boolean Also count the tokens before and after. Default: `false`.
---@field deletedRange? integer[] The messages left out so far: first and last index, both included. `[2, 1]` is none.
---@field keep? sightline.Keep Truncate by this amount at once, whatever was used and whatever `strategy` says.
---@field messages? sightline.Message[] The whole conversation. When absent, the stored one of `taskId`.
---@field model sightline.ModelRef The model the next request goes to.
---@field previousRequest? sightline.PreviousRequest What the last request used, and when it was sent; without it nothing is full.
---@field reply? sightline.TruncateReply What comes back. Default: `"messages"`.
---@field strategy? sightline.Strategy What may be done. Default: `"auto"`.
---@field taskId? string Id of the task whose stored conversation is meant; the outcome is stored too.
---@field thresholdPercentage? number Act when this fraction of the window is used, if that is less than its usable size.

--- Result of `sightline/truncateHistory`.
---@class sightline.TruncateHistoryResult
---@field charactersSaved number The fraction of characters that replacing duplicate file reads saved in this call; negative when the notices are longer than the files.
---@field contextHistory any[] The edits made so far, to be given back next time.
---@field contextHistoryChanged boolean Did this call make edits?
---@field decision sightline.Decision What was done.
---@field deletedRange? integer[] The messages to leave out: first and last index, both included.
---@field edits? sightline.MessageEdit[] With `reply: "edits"`: the texts to replace in messages that are not left out.
---@field messages? sightline.Message[] The messages to send.
---@field needToTruncate? boolean With `strategy: "deduplicate"`: was too little saved?
---@field repairs? sightline.MessageRepair[] With `reply: "edits"`: messages to send in a form of their own, because their tool results had to be made to fit the tool calls.
---@field tokens? sightline.TokenChange With `countTokens`: tokens before and after.
---@field updatedDeletedRange boolean Was the range decided anew?

--- What `sightline/truncateHistory` returns.
---@alias sightline.TruncateReply
---| "messages" # The messages to send.
---| "edits" # What to change in the caller's own copy before sending it.

--- Params of `sightline/undoRestore`.
---@class sightline.UndoRestoreParams
---@field force? boolean Also replace unsaved text of open documents. Default: `false`.
---@field token? string The preview of the undo point this must still be true of; else nothing is done, and the error is a `conflict`.
---@field undoId? string What the restore returned; the last restore when absent.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Tokens of one request to a model, as the provider reported them.
---@class sightline.Usage
---@field cacheReads? number Tokens read from the prompt cache.
---@field cacheWrites? number Tokens written to the prompt cache.
---@field tokensIn? number Input tokens.
---@field tokensOut? number Output tokens.

--- Params of `sightline/verifyCheckpoints`.
---@class sightline.VerifyCheckpointsParams
---@field root? string Only this workspace folder: its path, URI or name.
---@field workDoneToken? sightline.ProgressToken Report `$/progress` under this token, as in LSP.

--- Result of `sightline/verifyCheckpoints`.
---@class sightline.VerifyCheckpointsResult
---@field ok boolean Is every checkpoint whole?
---@field problems string[] What is wrong, for people.

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
  --- Counts the tokens of texts and messages. Takes `sightline.CountTokensParams`, answers `sightline.CountTokensResult`.
  countTokens = "sightline/countTokens",
  --- Decides which messages of a conversation are sent. Takes `sightline.TruncateHistoryParams`, answers `sightline.TruncateHistoryResult`.
  truncateHistory = "sightline/truncateHistory",
  --- Takes decisions about a conversation back, to a point in time. Takes `sightline.RollbackHistoryParams`, answers `sightline.RollbackHistoryResult`.
  rollbackHistory = "sightline/rollbackHistory",
  --- Tells what a provider's error means for the conversation. Takes `sightline.ClassifyErrorParams`, answers `sightline.ClassifyErrorResult`.
  classifyError = "sightline/classifyError",
  --- Stores messages of a task; they are durable when it returns. Takes `sightline.AppendMessagesParams`, answers `sightline.AppendMessagesResult`.
  appendMessages = "sightline/appendMessages",
  --- Loads the stored conversation of a task. Takes `sightline.LoadTaskParams`, answers `sightline.LoadTaskResult`.
  loadTask = "sightline/loadTask",
  --- Lists the stored tasks, last updated first. Takes `sightline.ListTasksParams`, answers `sightline.ListTasksResult`.
  listTasks = "sightline/listTasks",
  --- Goes on with a task where it was interrupted. Takes `sightline.ResumeTaskParams`, answers `sightline.ResumeTaskResult`.
  resumeTask = "sightline/resumeTask",
  --- Deletes a task with all that is stored of it. Takes `sightline.DeleteTaskParams`, answers `sightline.DeleteTaskResult`.
  deleteTask = "sightline/deleteTask",
  --- Plans replacing the older part of a conversation by a summary. Takes `sightline.PlanCompactionParams`, answers `sightline.PlanCompactionResult`.
  planCompaction = "sightline/planCompaction",
  --- Replaces the older part of a conversation by a summary. Takes `sightline.ApplyCompactionParams`, answers `sightline.ApplyCompactionResult`.
  applyCompaction = "sightline/applyCompaction",
  --- Takes a checkpoint of the workspace. Takes `sightline.CreateCheckpointParams`, answers `sightline.Checkpoint`.
  createCheckpoint = "sightline/createCheckpoint",
  --- Lists checkpoints, the newest first. Takes `sightline.ListCheckpointsParams`, answers `sightline.ListCheckpointsResult`.
  listCheckpoints = "sightline/listCheckpoints",
  --- Compares two checkpoints, or one and the workspace now. Takes `sightline.DiffCheckpointsParams`, answers `sightline.DiffCheckpointsResult`.
  diffCheckpoints = "sightline/diffCheckpoints",
  --- Tells what a restore would do. Changes nothing. Takes `sightline.PreviewRestoreParams`, answers `sightline.PreviewRestoreResult`.
  previewRestore = "sightline/previewRestore",
  --- Puts files, conversation or both back to a checkpoint. Takes `sightline.RestoreCheckpointParams`, answers `sightline.RestoreCheckpointResult`.
  restoreCheckpoint = "sightline/restoreCheckpoint",
  --- Takes a restore back. Takes `sightline.UndoRestoreParams`, answers `sightline.RestoreCheckpointResult`.
  undoRestore = "sightline/undoRestore",
  --- Tells how many checkpoints there are and what they take. Takes `sightline.CheckpointStatsParams`, answers `sightline.CheckpointStatsResult`.
  checkpointStats = "sightline/checkpointStats",
  --- Removes old checkpoints. Takes `sightline.PruneCheckpointsParams`, answers `sightline.PruneCheckpointsResult`.
  pruneCheckpoints = "sightline/pruneCheckpoints",
  --- Reads every checkpoint and tells whether all are whole. Takes `sightline.VerifyCheckpointsParams`, answers `sightline.VerifyCheckpointsResult`.
  verifyCheckpoints = "sightline/verifyCheckpoints",
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
  --- A checkpoint was taken. Takes `sightline.DidCreateCheckpointParams`.
  didCreateCheckpoint = "sightline/didCreateCheckpoint",
}

return M
