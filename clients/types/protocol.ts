// Generated from the types in server/protocol. Do not edit. Change the types, then run
//   cargo xtask generate

/** Protocol version of these types. */
export const PROTOCOL_VERSION = 1;

/** Client requests, with their params and results. */
export interface Methods {
  /** Returns the current `<environment_details>` block. */
  "sightline/environmentDetails": { params: EnvironmentDetailsParams; result: EnvironmentDetailsResult };
  /** Checks paths and a command line against the access rules. */
  "sightline/checkAccess": { params: CheckAccessParams; result: CheckAccessResult };
  /** Lists the rule files in force, and what they deny. For the user: agents see neither. */
  "sightline/listRules": { params: ListRulesParams; result: ListRulesResult };
  /** Lists the denied files and folders that git does not track, for `sightline exec`. Agents do not see it. */
  "sightline/hiddenPaths": { params: HiddenPathsParams; result: HiddenPathsResult };
  /** Replaces the contents of denied files in texts. */
  "sightline/redact": { params: RedactParams; result: RedactResult };
  /** Lists what agents were refused and what was hidden from them, newest first. */
  "sightline/listDecisions": { params: ListDecisionsParams; result: ListDecisionsResult };
  /** Lists files in breadth-first order, without denied entries. */
  "sightline/listFiles": { params: ListFilesParams; result: ListFilesResult };
  /** Reads a file that the access rules allow. Unsaved editor text takes precedence over the disk. */
  "sightline/readFile": { params: ReadFileParams; result: ReadFileResult };
  /** Returns what the language servers of the editor report about files. */
  "sightline/diagnostics": { params: DiagnosticsParams; result: DiagnosticsResult };
  /** Returns the active file, and the text that the user selected in it. */
  "sightline/selection": { params: SelectionParams; result: SelectionResult };
  /** Returns the files with unsaved changes. */
  "sightline/unsavedFiles": { params: UnsavedFilesParams; result: UnsavedFilesResult };
  /** Returns the agents that are connected to the editor by their IDE protocol. */
  "sightline/connectedAgents": { params: ConnectedAgentsParams; result: DidChangeBridgesParams };
  /** Shows a file in the editor, with `window/showDocument`. */
  "sightline/openFile": { params: OpenFileParams; result: OpenFileResult };
  /** Records that a task read, edited or mentioned a file. */
  "sightline/trackFile": { params: TrackFileParams; result: TrackFileResult };
  /** Records the model used by a task. */
  "sightline/recordModel": { params: RecordModelParams; result: RecordedResult };
  /** Records the operating system and editor of a task. */
  "sightline/recordEnvironment": { params: RecordEnvironmentParams; result: RecordedResult };
  /** Returns the records of a task, and the files that changed since the agent saw them. */
  "sightline/taskContext": { params: TaskContextParams; result: TaskContextResult };
  /** Counts the tokens of texts and messages. */
  "sightline/countTokens": { params: CountTokensParams; result: CountTokensResult };
  /** Decides which messages of a conversation to send. */
  "sightline/truncateHistory": { params: TruncateHistoryParams; result: TruncateHistoryResult };
  /** Discards truncation decisions made after a point in time. */
  "sightline/rollbackHistory": { params: RollbackHistoryParams; result: RollbackHistoryResult };
  /** Classifies an error of a provider. */
  "sightline/classifyError": { params: ClassifyErrorParams; result: ClassifyErrorResult };
  /** Appends messages to a stored conversation. They are durable when the request returns. */
  "sightline/appendMessages": { params: AppendMessagesParams; result: AppendMessagesResult };
  /** Loads the stored conversation of a task. */
  "sightline/loadTask": { params: LoadTaskParams; result: LoadTaskResult };
  /** Lists stored tasks, most recently updated first. */
  "sightline/listTasks": { params: ListTasksParams; result: ListTasksResult };
  /** Resumes an interrupted task. */
  "sightline/resumeTask": { params: ResumeTaskParams; result: ResumeTaskResult };
  /** Deletes a task and all its stored data. */
  "sightline/deleteTask": { params: DeleteTaskParams; result: DeleteTaskResult };
  /** Plans a compaction and returns a prompt for the summary. */
  "sightline/planCompaction": { params: PlanCompactionParams; result: PlanCompactionResult };
  /** Replaces the older part of a conversation with a summary. */
  "sightline/applyCompaction": { params: ApplyCompactionParams; result: ApplyCompactionResult };
  /** Creates a checkpoint of the workspace. */
  "sightline/createCheckpoint": { params: CreateCheckpointParams; result: Checkpoint };
  /** Lists checkpoints, newest first. */
  "sightline/listCheckpoints": { params: ListCheckpointsParams; result: ListCheckpointsResult };
  /** Lists the turns of agents, and what changed in and between them, newest first. */
  "sightline/listTurns": { params: ListTurnsParams; result: ListTurnsResult };
  /** Compares two checkpoints, or a checkpoint with the current workspace. */
  "sightline/diffCheckpoints": { params: DiffCheckpointsParams; result: DiffCheckpointsResult };
  /** Previews a restore without changing anything. */
  "sightline/previewRestore": { params: PreviewRestoreParams; result: PreviewRestoreResult };
  /** Restores files, a conversation or both from a checkpoint. */
  "sightline/restoreCheckpoint": { params: RestoreCheckpointParams; result: RestoreCheckpointResult };
  /** Undoes a restore. */
  "sightline/undoRestore": { params: UndoRestoreParams; result: RestoreCheckpointResult };
  /** Returns the number of checkpoints and their disk usage. */
  "sightline/checkpointStats": { params: CheckpointStatsParams; result: CheckpointStatsResult };
  /** Sets or removes the label of a checkpoint. Automatic checkpoints with a label are not counted by `checkpoints.keepAutomatic`. */
  "sightline/labelCheckpoint": { params: LabelCheckpointParams; result: Checkpoint };
  /** Returns the author of each line of a file: a turn, an agent or the user. */
  "sightline/blame": { params: BlameParams; result: BlameResult };
  /** Creates a commit of a checkpoint on a new branch of the user's repository. The work tree, the index and the current branch stay as they are. */
  "sightline/commitCheckpoint": { params: CommitCheckpointParams; result: CommitCheckpointResult };
  /** Removes old checkpoints. */
  "sightline/pruneCheckpoints": { params: PruneCheckpointsParams; result: PruneCheckpointsResult };
  /** Checks the integrity of every checkpoint. */
  "sightline/verifyCheckpoints": { params: VerifyCheckpointsParams; result: VerifyCheckpointsResult };
  /** Lists the MCP servers that agents get, with their states and tools. */
  "sightline/listMcpServers": { params: ListMcpServersParams; result: ListMcpServersResult };
  /** Offers an MCP server to agents, or no longer. */
  "sightline/setMcpServerEnabled": { params: SetMcpServerEnabledParams; result: McpServer };
  /** Restarts an MCP server in all sessions of agents, at its next call. */
  "sightline/restartMcpServer": { params: McpServerParams; result: McpServer };
  /** Lets an MCP server of a project run until its command changes, and accepts the tools that it has now. Ask the user first. */
  "sightline/trustMcpServer": { params: McpServerParams; result: McpServer };
  /** Returns what an MCP server printed. */
  "sightline/mcpServerLog": { params: McpServerParams; result: McpServerLogResult };
}

/** Client notifications, with their params. */
export interface Notifications {
  /** Reports the tabs of the editor, in order. */
  "sightline/didChangeTabs": DidChangeTabsParams;
  /** Reports the visible editors. */
  "sightline/didChangeVisibleEditors": DidChangeVisibleEditorsParams;
  /** Reports the terminals and their output since the last notification. */
  "sightline/didChangeTerminals": DidChangeTerminalsParams;
  /** Reports the diagnostics of one document. */
  "sightline/didChangeDiagnostics": DidChangeDiagnosticsParams;
  /** Reports the focused editor. */
  "textDocument/didFocus": DidFocusParams;
}

/** Server requests, with their params and results. */
export interface ServerRequests {
  /** Shows a change that an agent proposes, for the user to accept or reject. */
  "sightline/openDiff": { params: OpenDiffParams; result: OpenDiffResult };
}

/** Server notifications, with their params. Those named `didChange...` and `didCreate...` are sent only if the setting `notifications` is true. */
export interface ServerNotifications {
  /** Closes a diff that was opened with `sightline/openDiff`, because it needs no decision any more. */
  "sightline/closeDiff": CloseDiffParams;
  /** The editor state has a new revision. */
  "sightline/didChangeContext": DidChangeContextParams;
  /** The access rules of a workspace folder changed. */
  "sightline/didChangeAccessRules": DidChangeAccessRulesParams;
  /** The agents connected to the editor changed, or are paused or resumed. */
  "sightline/didChangeBridges": DidChangeBridgesParams;
  /** Files of open documents changed on disk, for example by a restore from the command line. */
  "sightline/didChangeFiles": DidChangeFilesParams;
  /** An MCP server was started, stopped, called or changed. Sent after the first `sightline/listMcpServers`, at most once a second. */
  "sightline/didChangeMcpServers": DidChangeMcpServersParams;
  /** A checkpoint was created. */
  "sightline/didCreateCheckpoint": DidCreateCheckpointParams;
}

/** Access of an agent to a path. */
export type AccessKind =
  /** Inside a workspace root and not denied. */
  | "allowed"
  /** Denied by a rule, or because access could not be determined. */
  | "denied"
  /** Outside every workspace root. */
  | "outside";

/** A line of a rule file. */
export interface AccessRule {
  /** Line number, starting at 1; 0 for a built-in rule. */
  line: number;
  /** The pattern as written. */
  pattern: string;
  /**
   * Rule file, relative to its workspace root; an absolute path for a file above the
   * root; `built-in` for the rule that hides the rule file.
   */
  source: string;
}

/** File access of agents. */
export interface AccessSettings {
  /**
   * What enforces the rules for commands of agents: a check of their command lines, or also the
   * kernel, which hides denied files from commands (Linux, for agents that were connected with
   * `sightline agents install --only commands`). Only in the settings of the user, not of a project.
   * Default: `"check"`.
   */
  commands?: AgentCommands;
  /**
   * Whether a prompt may mention a denied file with `@`. Agents add the content of mentioned
   * files to the prompt themselves.
   * Default: `"deny"`.
   */
  mentions?: Mentions;
  /**
   * Whether agents may read files outside every workspace folder.
   * Default: `"deny"`.
   */
  outsideWorkspace?: OutsideWorkspace;
  /**
   * Whether agents may run commands that read whole folders, such as `grep -r` and
   * `tar`, on folders with denied files that the command does not exclude.
   * Default: `"deny"`.
   */
  recursiveReaders?: RecursiveReaders;
  /**
   * Whether agents may read files that usually contain secrets, such as `.env` and
   * private keys. A line in `.clineignore` allows single ones: `!.env`.
   * Default: `"deny"`.
   */
  secrets?: Secrets;
  /**
   * First words of commands that may use denied files, such as `npm run dev`: the check of commands lets
   * them pass, and `sightline exec` hides nothing from them. An entry holds only for a line with one simple
   * command, without quotes. Only in the settings of the user, not of a project.
   * Default: `[]`.
   */
  visibleTo?: string[];
}

/** What enforces the access rules for commands of agents. */
export type AgentCommands =
  /** Command lines are checked. */
  | "check"
  /** Also, denied files that git does not track are hidden. */
  | "hide";

/** Coding agents. */
export interface AgentSettings {
  /**
   * Agents that learn the focused file and the selection as they change. Turns on the settings
   * `bridges.*Ide` that they need.
   * Default: `[]`.
   */
  connect?: ConnectedAgent[];
}

/** One turn of an agent: a prompt and the edits that follow. */
export interface AgentTurn {
  /** Name of the agent. */
  agent: string;
  /** Session of the agent. */
  session: string;
  /** Turn of the session, as the agent calls it, or its name. */
  turn: string;
}

/** Params of `sightline/appendMessages`. */
export interface AppendMessagesParams {
  /** New messages since the last call, in order. */
  messages: Message[];
  /** Metadata stored with each message. */
  meta?: MessageMeta;
  /**
   * Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
   * `.`.
   */
  taskId: string;
}

/** Result of `sightline/appendMessages`. */
export interface AppendMessagesResult {
  /**
   * Total number of messages since the last compaction, as returned by
   * `sightline/loadTask`.
   */
  count: number;
}

/** Params of `sightline/applyCompaction`. */
export interface ApplyCompactionParams {
  /** Reason why there is no summary. */
  error?: string;
  /** Maximum number of files whose text is included. Defaults to 5. */
  maxFiles?: number;
  /** Maximum number of lines per included file. Defaults to 1000. */
  maxLinesPerFile?: number;
  /** The whole conversation. Defaults to the stored conversation of `taskId`. */
  messages?: Message[];
  /** Model used to count the tokens of the conversation. */
  model?: ModelRef;
  /** Index of the first message to keep unchanged, from the plan. Computed if absent. */
  retainFrom?: number;
  /** The answer of the model. */
  summary?: string;
  /** Id of the task whose stored conversation is compacted. */
  taskId?: string;
  /**
   * What triggered the compaction.
   * Default: `"auto"`.
   */
  trigger?: CompactionTrigger;
}

/** Result of `sightline/applyCompaction`. */
export interface ApplyCompactionResult {
  /** True if there was no summary and the newest part was kept instead. */
  fallback: boolean;
  /** Reason why there was no summary. */
  fallbackReason?: string;
  /** Files whose text is included with the summary. */
  filesIncluded: string[];
  /** The compacted conversation. */
  messages: Message[];
  /** Number of tokens after compaction. */
  postTokens: number;
  /** Number of tokens before compaction. */
  preTokens: number;
}

/** Author of a line. */
export type BlameAuthor =
  /** An agent: the line appeared in a turn. */
  | "agent"
  /** The user or another program: the line appeared outside every turn. */
  | "user"
  /** The line is older than the checkpoints, or a state around its change was not saved. */
  | "unknown";

/** Author of a line. */
export interface BlameLine {
  /** Name of the agent. Absent if several agents had a turn then. */
  agent?: string;
  /**
   * Time of the first checkpoint with the line, in milliseconds since the Unix epoch. Absent if no
   * checkpoint has it yet, and for `unknown`.
   */
  at?: number;
  /** Author. */
  by: BlameAuthor;
  /** Number of the line, from 1. */
  line: number;
  /** Name of the turn in which it was written. Absent if several turns ran then. */
  turn?: string;
  /** Names of the turns, if several ran when it was written. */
  turns?: string[];
}

/** Params of `sightline/blame`. */
export interface BlameParams {
  /** File. */
  path: string;
  /** Path, URI or name of the workspace folder, if several have the file. */
  root?: string;
}

/** Result of `sightline/blame`. */
export interface BlameResult {
  /** Each line of the file on disk, in order. */
  lines: BlameLine[];
}

/**
 * IDE protocols of coding agents. A bridge sends the focused file and the selection to every agent
 * that runs in a workspace folder. Files that agents may not see are never sent.
 */
export interface BridgeSettings {
  /**
   * Serve Claude Code and opencode: a WebSocket on loopback, and a lock file in `~/.claude/ide`.
   * Default: `false`.
   */
  claudeIde?: boolean;
  /**
   * Serve `/ide` of Codex: a local socket in the temporary folder.
   * Default: `false`.
   */
  codexIde?: boolean;
  /**
   * Serve Copilot CLI: a local socket, and a lock file in `~/.copilot/ide`.
   * Default: `false`.
   */
  copilotIde?: boolean;
  /**
   * Serve gemini-cli and Qwen Code: HTTP on loopback, and files in the temporary folder and in
   * `~/.qwen/ide`.
   * Default: `false`.
   */
  geminiIde?: boolean;
  /**
   * Show agents nothing of the editor. They stay connected. The command `sightline.pauseBridges` has the same effect until this setting changes.
   * Default: `false`.
   */
  pause?: boolean;
  /**
   * Send selected text, not only the file and the position.
   * Default: `true`.
   */
  selection?: boolean;
}

/** Params of `sightline/checkAccess`. */
export interface CheckAccessParams {
  /** Shell command line to check. The answer is advice, not a sandbox. */
  command?: string;
  /**
   * More command lines to check, independently of each other.
   * Default: `[]`.
   */
  commands?: string[];
  /**
   * The user mentions the paths in a prompt. Setting `access.mentions` can allow them.
   * Default: `false`.
   */
  mentioned?: boolean;
  /**
   * Paths to check: `file:` URIs, absolute paths, or paths relative to a workspace
   * root.
   * Default: `[]`.
   */
  paths?: string[];
}

/** Result of `sightline/checkAccess`. */
export interface CheckAccessResult {
  /** Result for the command, if the request has one. */
  command?: CommandAccess;
  /**
   * One result per command of `commands`, in the same order.
   * Default: `[]`.
   */
  commands?: CommandAccess[];
  /** One result per requested path, in the same order. */
  paths: PathAccess[];
}

/** A checkpoint: the saved state of a workspace folder. */
export interface Checkpoint {
  /** Files added since the previous checkpoint. */
  added: number;
  /** Total size of the files, in bytes. */
  bytes: number;
  /** Creation time, in milliseconds since the Unix epoch. */
  createdAt: number;
  /** Files deleted since the previous checkpoint. */
  deleted: number;
  /** Time taken to create the checkpoint, in milliseconds. */
  durationMs: number;
  /** Number of files in the checkpoint. */
  files: number;
  /** Checkpoints created together, one per workspace folder. Absent if there is one folder. */
  group?: GroupMember[];
  /**
   * Branch and commit of the user's repository. Absent without a commit, and for a checkpoint of an
   * older version.
   */
  head?: CheckpointHead;
  /** Id of the checkpoint: a git commit id of 40 hexadecimal digits. */
  id: string;
  /**
   * Id in the store the checkpoint was imported from. Accepted wherever a checkpoint
   * id is expected.
   */
  imported?: string;
  /**
   * Why the checkpoint was created.
   * Default: `"manual"`.
   */
  kind: CheckpointKind;
  /** Label chosen by the user. */
  label?: string;
  /** Number of messages in the conversation of the task when the checkpoint was created. */
  messages?: number;
  /** Files whose content or mode changed since the previous checkpoint. */
  modified: number;
  /** Purpose of a checkpoint that was not requested by a client. */
  purpose?: CheckpointPurpose;
  /** Id of the checkpoint that was about to be restored, for an undo point of files. */
  restoredId?: string;
  /** URI of the workspace folder. */
  root: string;
  /** Paths in the workspace that are not in the checkpoint. Ignored paths are not listed. */
  skipped: SkippedPath[];
  /** Task the checkpoint belongs to. */
  taskId?: string;
  /** Turn of an agent at whose first edit or end the checkpoint was created automatically. */
  turn?: CheckpointTurn;
  /** Id of the undo point of the undo, for an undo point whose restore was undone. */
  undoneBy?: string;
}

/** Branch and commit of the user's repository. */
export interface CheckpointHead {
  /** Name of the branch. Absent if a commit was checked out. */
  branch?: string;
  /** Id of the commit. */
  commit: string;
}

/** Why a checkpoint was created. */
export type CheckpointKind =
  /** Before the first edit of a turn of an agent. */
  | "turnStart"
  /** At the end of a turn of an agent. */
  | "turnEnd"
  /** On request. */
  | "manual"
  /** Before a restore. */
  | "undoPoint"
  /** Imported from the store of another tool. */
  | "imported"
  /** Automatically, outside a turn. */
  | "automatic";

/** Purpose of a checkpoint that was not requested by a client. */
export type CheckpointPurpose =
  /** Undo point, created before a restore. */
  | "undo"
  /** Imported from the store of another tool. */
  | "imported";

/** Workspace checkpoints. */
export interface CheckpointSettings {
  /**
   * Show the author of a line, a turn, an agent or the user, when the mouse rests on it. Read when the
   * editor starts.
   * Default: `false`.
   */
  blameHover?: boolean;
  /**
   * Names of folders to skip, in addition to ignored paths.
   * Default: `["node_modules",".venv","__pycache__"]`.
   */
  exclude?: string[];
  /**
   * Number of automatic checkpoints to keep per workspace folder. A few more are kept
   * until the oldest are removed together.
   * Default: `200`.
   */
  keepAutomatic?: number;
  /**
   * Maximum file size, in bytes. Larger files are skipped.
   * Default: `20971520`.
   */
  maxFileSize?: number;
  /**
   * Number of files above which the first checkpoint must be confirmed.
   * Default: `500000`.
   */
  maxFiles?: number;
  /**
   * Total size, in bytes, above which the first checkpoint must be confirmed.
   * Default: `10737418240`.
   */
  maxTotalSize?: number;
  /**
   * What is stored of the prompt of each turn of an agent, to find the turn again. It stays on this
   * machine. Hooks read this setting from the configuration files, not from an editor.
   * Default: `"prompt"`.
   */
  turnNames?: TurnNames;
}

/** Params of `sightline/checkpointStats`. */
export interface CheckpointStatsParams {
  /** Limits the operation to this workspace folder, given by path, URI or name. */
  root?: string;
}

/** Result of `sightline/checkpointStats`. */
export interface CheckpointStatsResult {
  /** Disk usage, in bytes. */
  bytes: number;
  /** Number of stored checkpoints, including undo points. */
  count: number;
  /** Creation time of the newest checkpoint, in milliseconds since the Unix epoch. */
  newest?: number;
  /** Creation time of the oldest checkpoint, in milliseconds since the Unix epoch. */
  oldest?: number;
  /** Time of the last verification, if it found no problem, in milliseconds since the Unix epoch. */
  verifiedAt?: number;
}

/** Turn of an agent that a checkpoint belongs to. */
export interface CheckpointTurn {
  /** Name of the agent. */
  agent: string;
  /** End of the turn, in milliseconds since the Unix epoch. */
  endedAt?: number;
  /**
   * Name of the turn, such as `claude-2.3`. Accepted wherever a checkpoint id is expected, for the state
   * before the turn; with a `+`, for the state after it.
   */
  name?: string;
  /**
   * Number of the prompt in the session, from 1. The fields from here on are absent if the turn was not
   * recorded here: by an older version, or on another machine.
   */
  number?: number;
  /** The first characters of the prompt, if the setting `checkpoints.turnNames` stores them. */
  prompt?: string;
  /** Session of the agent. */
  session: string;
  /** Time of the prompt, in milliseconds since the Unix epoch. */
  startedAt?: number;
  /**
   * The turn as stored with the checkpoint: its name or, by an older version or for a fetched
   * checkpoint, what the agent called it.
   */
  turn: string;
}

/** Params of `sightline/classifyError`. */
export interface ClassifyErrorParams {
  /**
   * The error as received: the response body, or the error object with all its
   * properties.
   */
  error?: unknown;
  /** Id of the provider. */
  provider?: string;
}

/** Result of `sightline/classifyError`. */
export interface ClassifyErrorResult {
  /** True if the request is too long for the model. Truncate it and send it again. */
  contextWindowExceeded: boolean;
  /** True if the same request may succeed later. Wait and send it again. */
  retryable: boolean;
}

/** Params of `sightline/closeDiff`, server to client. */
export interface CloseDiffParams {
  /** The diff. A later result of its `sightline/openDiff` is ignored. */
  diffId: string;
}

/** Access of a command line. */
export interface CommandAccess {
  /** False if any operand is denied. */
  allowed: boolean;
  /** Denied operands. */
  denied: DeniedOperand[];
  /** A command that does the same without the denied files, if there is one. */
  instead?: string;
  /**
   * Absolute paths that the command would write, create, move, link or remove, as far as its
   * words show them.
   * Default: `[]`.
   */
  written?: string[];
}

/** Commands of `workspace/executeCommand`. */
export interface CommandSettings {
  /**
   * Show command results as a message or document. For editors that discard command
   * results. Enabled by default only in Helix.
   */
  showResults?: boolean;
}

/** Params of `sightline/commitCheckpoint`. */
export interface CommitCheckpointParams {
  /** Name of the new branch. */
  branch: string;
  /**
   * Checkpoint, named as in `sightline/diffCheckpoints`: the name of a turn with a `+` is the state
   * after it.
   */
  id: string;
  /** Commit message. By default the label of the checkpoint, or the prompt of the turn that ends with it. */
  message?: string;
  /** Path, URI or name of the only workspace folder to search, unless the id is whole. */
  root?: string;
}

/** Result of `sightline/commitCheckpoint`. */
export interface CommitCheckpointResult {
  /** Name of the branch. */
  branch: string;
  /** Id of the commit. */
  commit: string;
}

/** Trigger of a compaction. */
export type CompactionTrigger =
  /** The context window was full. */
  | "auto"
  /** The user requested it. */
  | "manual";

/** An agent with an IDE protocol. */
export type ConnectedAgent =
  /** Claude Code. */
  | "claude"
  /** Codex. */
  | "codex"
  /** Copilot CLI. */
  | "copilot"
  /** gemini-cli. */
  | "gemini"
  /** opencode. */
  | "opencode"
  /** Qwen Code. */
  | "qwen";

/** Params of `sightline/connectedAgents`. */
export interface ConnectedAgentsParams {
  /** Pauses or resumes the IDE protocols of agents first, until the setting `bridges.pause` changes. */
  isPaused?: boolean;
}

/** Rules for truncating conversations. */
export type ConversationProfile =
  /** The rules of Sightline. */
  | "default"
  /** Exactly the rules of Cline 3.89. */
  | "cline";

/** Truncation of conversations. */
export interface ConversationSettings {
  /**
   * Context windows by model id, for unknown models or to correct the built-in
   * table. The context window in a request takes precedence.
   */
  models?: { [key in string]?: ModelSettings };
  /** Notices that replace removed text. */
  notices?: NoticeSettings;
  /**
   * Rules for truncating conversations.
   * Default: `"default"`.
   */
  profile?: ConversationProfile;
}

/** Params of `sightline/countTokens`. */
export interface CountTokensParams {
  /**
   * Encoding to use regardless of the model: `o200k_base`, `o200k_harmony`,
   * `cl100k_base`, `p50k_base`, `p50k_edit`, `r50k_base` or `gpt2`.
   */
  encoding?: string;
  /**
   * Messages to count, including per-message overhead. `content` is a string or a
   * list of blocks.
   * Default: `[]`.
   */
  messages?: Message[];
  /** Model to count for. Without `model` and `encoding`, `o200k_base` is used. */
  model?: ModelRef;
  /**
   * Id of the task of these messages. Usage reported for the task calibrates the
   * count. Without texts and messages, counts the part of the stored conversation
   * that would be sent.
   */
  taskId?: string;
  /**
   * Texts to count. Special token markers count as plain text.
   * Default: `[]`.
   */
  texts?: string[];
  /**
   * Usage reported by the provider for a request with exactly these texts and
   * messages. Later counts of the task start from it.
   */
  usage?: Usage;
}

/** Result of `sightline/countTokens`. */
export interface CountTokensResult {
  /**
   * Ratio of tokens reported by the provider to tokens counted here, if usage was
   * reported.
   */
  calibration?: number;
  /** Encoding used for the counts. */
  encoding: string;
  /** True if `tokens` is an exact count of the encoding, not an estimate. */
  exact: boolean;
  /** Number of tokens of each text, then of each message, in request order. */
  items: number[];
  /** Likely lower bound. Absent if the count is exact. */
  lower?: number;
  /** Method used for the count, as text. */
  method: string;
  /**
   * Total number of tokens: the sum of `items`, unless it is based on reported
   * usage.
   */
  tokens: number;
  /** Likely upper bound. Absent if the count is exact. */
  upper?: number;
}

/** What a command finds at a hidden path. */
export type Cover =
  /** A file that cannot be opened. */
  | "file"
  /** An empty folder. */
  | "folder"
  /**
   * The file itself, which cannot be written: a file with access rules or settings. Git would fail to add an
   * untracked file that it cannot read.
   */
  | "readOnly";

/** Params of `sightline/createCheckpoint`. */
export interface CreateCheckpointParams {
  /**
   * Created without a request of the user, outside a turn.
   * Default: `false`.
   */
  automatic?: boolean;
  /**
   * Create the first checkpoint even if the workspace exceeds the size limits.
   * Default: `false`.
   */
  confirmLarge?: boolean;
  /**
   * Only the first checkpoint of the folder is created: if there is one, the newest is returned.
   * Default: `false`.
   */
  first?: boolean;
  /** Label chosen by the user. */
  label?: string;
  /**
   * Path, URI or name of a workspace folder. If absent, creates a group with one
   * checkpoint per folder.
   */
  root?: string;
  /** Task the checkpoint belongs to. */
  taskId?: string;
  /**
   * Turn of an agent that is about to edit. If it is not known yet, it begins and gets a name. The
   * checkpoint is automatic: it counts for the setting `checkpoints.keepAutomatic`, unless it has a label.
   */
  turn?: AgentTurn;
  /**
   * The turn ends. If nothing changed since the newest checkpoint, that one is returned, and none is
   * created.
   * Default: `false`.
   */
  turnEnd?: boolean;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Something that an agent was refused, that was hidden from it, or that it was allowed. */
export interface Decision {
  /** The agent, such as `claude`, or the client of the MCP server. */
  agent?: string;
  /** Time, in milliseconds since the Unix epoch. */
  at: number;
  /**
   * Where it was decided: `hook`, `block`, `mcp` (our tools), `hub` (tools of other
   * servers), `bridge`, `lsp`, `cli` or `gateway`.
   */
  door: string;
  /** The rule that decided. */
  rule?: AccessRule;
  /** The session, as the agent names it. */
  session?: string;
  /** The file, or the first word of a command and a hash of it. */
  subject: string;
  /** The tool, event or method. */
  tool?: string;
  /** The decision. */
  verdict: DecisionVerdict;
}

/** Decision of `sightline/truncateHistory`. */
export type DecisionOfTruncation =
  /** The conversation fits. */
  | "fits"
  /** Duplicate file reads were replaced, which saved enough. */
  | "deduplicated"
  /** Messages were left out. */
  | "truncated";

/** A decision. */
export type DecisionVerdict =
  /** Refused. */
  | "denied"
  /** Contents were replaced in a text. */
  | "redacted"
  /** Allowed. */
  | "allowed";

/** Params of `sightline/deleteTask`. */
export interface DeleteTaskParams {
  /** Id of the task. */
  taskId: string;
}

/** Result of `sightline/deleteTask`. */
export interface DeleteTaskResult {
  /** Freed disk space, in bytes. */
  freedBytes: number;
}

/** A denied file or folder. */
export interface DeniedEntry {
  /** Kind of the entry. */
  kind: FileKind;
  /** Path relative to its workspace folder. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Why it is denied, if no rule decides, such as a link that leads outside the workspace. */
  reason?: string;
  /** The rule that denies it, or what a link leads to. */
  rule?: AccessRule;
  /** URI of the entry. */
  uri: string;
}

/** A command operand that names a denied file. */
export interface DeniedOperand {
  /** The operand after shell quote removal. */
  path: string;
  /** What the command would do with the file, as text. */
  reason: string;
  /** The matching rule, if a rule decided. */
  rule?: AccessRule;
}

/** A diagnostic of a language server, as in LSP. Other fields are ignored. */
export interface Diagnostic {
  /** Code of the rule. */
  code?: DiagnosticCode;
  /** The message. */
  message: string;
  /** Where it is. */
  range: Range;
  /** 1 is an error, 2 a warning, 3 an information and 4 a hint. Defaults to an error. */
  severity?: number;
  /** Name of the tool. */
  source?: string;
}

/** Code of a diagnostic: a string or an integer. */
export type DiagnosticCode = string | number;

/** Diagnostics in open documents. */
export interface DiagnosticSettings {
  /**
   * Report open files that changed since the last checkpoint, as a hint on the first
   * line.
   * Default: `false`.
   */
  changedFiles?: boolean;
  /**
   * Report mistakes in `.clineignore` and rules that match no file.
   * Default: `true`.
   */
  rules?: boolean;
}

/** Params of `sightline/diagnostics`. */
export interface DiagnosticsParams {
  /** Only of these files: `file:` URIs, absolute paths, or paths relative to a workspace root. */
  paths?: string[];
}

/** Result of `sightline/diagnostics`. */
export interface DiagnosticsResult {
  /** Files with diagnostics, sorted by path. */
  files: FileDiagnostics[];
  /** Number of files left out because agents may not see them. */
  omitted: number;
  /**
   * The diagnostics as printed in the `diagnostics` section of the environment block, one line
   * each.
   */
  text: string;
}

/** Params of `sightline/didChangeAccessRules`, server to client. */
export interface DidChangeAccessRulesParams {
  /** URI of the workspace folder whose rules changed. */
  root: string;
}

/** Params of `sightline/didChangeBridges`, server to client, and result of `sightline/connectedAgents`. */
export interface DidChangeBridgesParams {
  /** Names of the agents that are connected by their IDE protocol, oldest connection first. */
  agents: string[];
  /** Environment variables for terminals of the editor, by which agents find this server without an option. */
  environment?: { [key in string]?: string };
  /** True if they get no editor state. */
  isPaused: boolean;
}

/** Params of `sightline/didChangeContext`, server to client. */
export interface DidChangeContextParams {
  /** Latest revision of the editor state. */
  revision: number;
}

/** Params of `sightline/didChangeDiagnostics`. */
export interface DidChangeDiagnosticsParams {
  /**
   * All diagnostics of the document, of all language servers. At most 200 are kept, the most
   * severe ones.
   */
  diagnostics: Diagnostic[];
  /** URI of the document. */
  uri: string;
}

/** Params of `sightline/didChangeFiles`, server to client. */
export interface DidChangeFilesParams {
  /** URIs of the open documents whose files changed. */
  uris: string[];
}

/** Params of `sightline/didChangeMcpServers`. */
export interface DidChangeMcpServersParams {
  /** Number of the change. */
  revision: number;
}

/** Params of `sightline/didChangeTabs`. */
export interface DidChangeTabsParams {
  /** All tabs, in editor order. */
  tabs: Tab[];
}

/** Params of `sightline/didChangeTerminals`. */
export interface DidChangeTerminalsParams {
  /** All terminals. */
  terminals: Terminal[];
}

/** Params of `sightline/didChangeVisibleEditors`. */
export interface DidChangeVisibleEditorsParams {
  /** All visible editors. */
  editors: VisibleEditor[];
}

/** Params of `sightline/didCreateCheckpoint`. */
export interface DidCreateCheckpointParams {
  /** The new checkpoint. */
  checkpoint: Checkpoint;
}

/** Params of `textDocument/didFocus`: the active editor. */
export interface DidFocusParams {
  /** The focused document. Absent if no editor has the focus. */
  textDocument?: FocusedDocument;
}

/** Params of `sightline/diffCheckpoints`. */
export interface DiffCheckpointsParams {
  /**
   * Include the file contents.
   * Default: `false`.
   */
  contents?: boolean;
  /**
   * Checkpoint on the old side: an id, at least 4 digits of one, `last` for the newest that
   * is not an undo point, or the name of a turn such as `claude-2.3`: the state before it, or with a
   * `+` the state after it. A leading `HEAD ` is ignored.
   */
  from: string;
  /**
   * Include a unified diff in `text`.
   * Default: `false`.
   */
  patch?: boolean;
  /** Limits the operation to these paths and everything below them. */
  paths?: string[];
  /** Path, URI or name of the only workspace folder to search, unless the id is whole. */
  root?: string;
  /**
   * Checkpoint on the new side, as in `from`; `NAME+` of a running turn is the current workspace. By
   * default the current workspace or, if `from` is the name of a turn, the state after that turn.
   */
  to?: string;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/diffCheckpoints`. */
export interface DiffCheckpointsResult {
  /** Changed files, sorted by path. */
  files: FileDifference[];
  /** Unified diff, if requested with `patch`. */
  text?: string;
}

/** Kind of difference. */
export type DifferenceStatus =
  /** The file is new. */
  | "added"
  /** The content or the executable bit changed. */
  | "modified"
  /** The file was deleted. */
  | "deleted"
  /** The file was moved, with the same content. */
  | "renamed"
  /** The file type changed, for example from a file to a symbolic link. */
  | "typeChanged";

/** Params of `sightline/environmentDetails`. */
export interface EnvironmentDetailsParams {
  /**
   * URIs of further files that changed since the agent last read or wrote them, for clients that
   * track files themselves.
   */
  changedFiles?: string[];
  /**
   * Mark terminal output and recently modified files as delivered. If false, the
   * request has no side effects.
   * Default: `true`.
   */
  consume?: boolean;
  /**
   * Include the file list, the workspace configuration and the command line tools.
   * Default: `false`.
   */
  includeFiles?: boolean;
  /**
   * Maximum number of entries in the file list.
   * Default: `200`.
   */
  maxFiles?: number;
  /**
   * Mode of the agent.
   * Default: `"act"`.
   */
  mode?: Mode;
  /** Model, for the size of its context window. */
  model?: ModelRef;
  /**
   * Time to print, in milliseconds since the Unix epoch, for reproducible output.
   * Defaults to the clock of the server.
   */
  now?: number;
  /**
   * Process ids of the program that asks and of its parents. The terminal in which it runs is left
   * out.
   */
  requesterPids?: number[];
  /** Return only these sections, in protocol order. */
  sections?: SectionId[];
  /**
   * Return only the current time and the sections that changed since this revision
   * of an earlier result.
   */
  sinceRevision?: number;
  /** Id of the task, for its recently modified files. */
  taskId?: string;
  /**
   * IANA name of the time zone to print, for reproducible output. Defaults to the
   * time zone of the server.
   */
  timeZone?: string;
  /** URIs of further files with unsaved changes, such as those of another editor. */
  unsavedFiles?: string[];
  /** Token usage of the last request to the model. */
  usage?: Usage;
}

/** Result of `sightline/environmentDetails`. */
export interface EnvironmentDetailsResult {
  /** Revision of the state shown, for `sinceRevision`. */
  revision: number;
  /** Sections of the block, in order. */
  sections: Section[];
  /** The whole block, including its tags. */
  text: string;
  /** Estimated tokens of `text`. */
  tokens: number;
}

/** Environment record. */
export interface EnvironmentEntry {
  /** Version of the server. The key is Cline's. */
  cline_version: string;
  /** Name of the editor. */
  host_name: string;
  /** Version of the editor. */
  host_version: string;
  /** Architecture: `x64`, `arm64`, ... */
  os_arch: string;
  /** Operating system: `linux`, `darwin`, `win32`, ... */
  os_name: string;
  /** Release of the operating system. */
  os_version: string;
  /** Time of the record, in milliseconds since the Unix epoch. */
  ts: number;
}

/** Environment block. */
export interface EnvironmentSettings {
  /**
   * Whether file lists show denied entries.
   * Default: `"hide"`.
   */
  ignoredFiles?: IgnoredFiles;
  /**
   * Whether the block shows open files outside every workspace folder.
   * Default: `"hide"`.
   */
  outsideFiles?: OutsideFiles;
  /** Options per section, by section name, as `sightline config` lists them: `openTabs`, `files`, ... */
  sections?: { [key in SectionId]?: SectionSettings };
}

/** The `data` of an error response. */
export interface ErrorData {
  /** Stable kind of the error. */
  kind: ErrorKind;
  /** Path that caused the error, if any. */
  path?: string;
  /** Rule that denied access, if any. */
  rule?: AccessRule;
}

/** Stable error kind, for programs. The error message is for the user. */
export type ErrorKind =
  /** A parameter is missing, has the wrong type or is invalid. */
  | "invalidParams"
  /** The file, task or checkpoint does not exist. */
  | "notFound"
  /** The access rules deny the file. */
  | "accessDenied"
  /** The state changed since it was read. */
  | "conflict"
  /** Another operation holds the lock. */
  | "busy"
  /** The client cancelled the request. */
  | "cancelled"
  /** The operation does not support this kind of file or folder. */
  | "unsupported"
  /** The data of the server cannot be read or written. */
  | "storage"
  /** A limit is exceeded. */
  | "tooLarge"
  /** The server has not answered `initialize` yet. */
  | "notInitialized"
  /** Internal error: a bug in the server. */
  | "internal";

/** The diagnostics of one file. */
export interface FileDiagnostics {
  /** The diagnostics, most severe first. */
  diagnostics: Diagnostic[];
  /** Path relative to the workspace root, with `/`. */
  path: string;
}

/** A changed file. */
export interface FileDifference {
  /** Number of added lines; 0 for a binary file. */
  additions: number;
  /** New text, if requested with `contents`. */
  after?: string;
  /** Old text, if requested with `contents`. */
  before?: string;
  /** True if either side is not text. */
  binary: boolean;
  /** Number of deleted lines; 0 for a binary file. */
  deletions: number;
  /**
   * Changed parts of a text file, as the unified diff shows them, with `contents`. Absent if there are
   * none, and without contents.
   */
  hunks?: Hunk[];
  /** New git file mode. */
  newMode?: string;
  /** Old git file mode, such as `100644`. */
  oldMode?: string;
  /** Old path of a renamed file. */
  oldPath?: string;
  /** Reason why requested contents are missing, or why the file was not compared. */
  omitted?: string;
  /** Path relative to a workspace folder. For a deleted file, its old path. */
  path: string;
  /** True if a name is not UTF-8 and `path` and `oldPath` are percent-encoded. */
  pathEncoded?: boolean;
  /** Kind of difference. */
  status: DifferenceStatus;
  /** URI of the file. */
  uri: string;
}

/** One list entry. */
export interface FileEntry {
  /**
   * Access to the entry. `denied` entries are listed only with the setting
   * `environment.ignoredFiles: "lock"`.
   */
  access: AccessKind;
  /** Kind of the entry. */
  kind: FileKind;
  /** Path relative to the workspace root, with `/`, without a trailing slash. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
}

/** Hunks of a file to restore. */
export interface FileHunks {
  /**
   * Numbers of the hunks, as `sightline/diffCheckpoints` with `contents` and the same `id` as `from`
   * lists them.
   */
  hunks: number[];
  /** Path of the file. */
  path: string;
}

/** Kind of a list entry. */
export type FileKind =
  /** A regular file, or anything other than a directory or a symbolic link. */
  | "file"
  /** A directory. */
  | "directory"
  /** A symbolic link. Links are never followed. */
  | "symlink";

/**
 * File record, with Cline's field names.
 *
 * Dates are in milliseconds since the Unix epoch. Unknown dates are absent on the wire
 * and `null` in the stored file, as in Cline.
 */
export interface FileMetadataEntry {
  /** Time the agent last edited the file, in milliseconds since the Unix epoch. */
  cline_edit_date?: number;
  /** Time the agent last read the file, in milliseconds since the Unix epoch. */
  cline_read_date?: number;
  /** Path relative to the workspace root. */
  path: string;
  /** Operation that created the record. */
  record_source: FileOperation;
  /** Whether this is the newest entry of its path. */
  record_state: RecordState;
  /** Time the user last edited the file, in milliseconds since the Unix epoch. */
  user_edit_date?: number;
}

/** Operation on a file. */
export type FileOperation =
  /** The agent read it. */
  | "read_tool"
  /** The user edited it. */
  | "user_edited"
  /** The agent edited it. */
  | "cline_edited"
  /** The user mentioned it, and its text was sent. */
  | "file_mentioned";

/** The focused document. */
export interface FocusedDocument {
  /** URI of the document. */
  uri: string;
}

/** One checkpoint of a group created together. */
export interface GroupMember {
  /** Id of its checkpoint. */
  id: string;
  /** URI of the workspace folder. */
  root: string;
}

/** A file whose contents were replaced. */
export interface HiddenFile {
  /** Number of values, lines and parts of diffs that were replaced. */
  count: number;
  /** The file. */
  path: string;
  /** The rule that denies it. */
  rule?: AccessRule;
}

/** A path that is hidden from commands. */
export interface HiddenPath {
  /** What a command finds there. */
  cover: Cover;
  /** The absolute path, without symbolic links below the workspace folder. */
  path: string;
}

/** Params of `sightline/hiddenPaths`. */
export interface HiddenPathsParams {
  /** The mount namespace that the server must be in, as `/proc/self/ns/mnt` names it. */
  mounts?: string;
  /**
   * The workspace folders that the server must have, and no others: `file:` URIs without symbolic links. Empty: any.
   * Default: `[]`.
   */
  roots?: string[];
}

/** Result of `sightline/hiddenPaths`. */
export interface HiddenPathsResult {
  /** What is hidden, sorted by path. */
  paths: HiddenPath[];
}

/** A changed part of a file, with the lines around it. */
export interface Hunk {
  /** The same on the new side. */
  after: number[];
  /**
   * First line, from 1, and number of lines on the old side. With 0 lines, the first one is the line
   * before.
   */
  before: number[];
  /** Number in the file, from 1. */
  number: number;
}

/** Display of denied entries in file lists. */
export type IgnoredFiles =
  /** Omit them. A closing line gives their number. */
  | "hide"
  /** Show them with a lock symbol. */
  | "lock";

/** Part of the conversation to keep after its first two messages. */
export type Keep =
  /** Nothing. */
  | "none"
  /** The last two messages. */
  | "lastTwo"
  /** About half. */
  | "half"
  /** About a quarter. */
  | "quarter";

/** A file whose text is included with a summary. */
export interface KeyFile {
  /** Number of included lines. */
  lines: number;
  /** Path of the file, as in other results. */
  path: string;
  /** Reason for including the file. */
  reason: KeyFileReason;
}

/** Reason for including a file, most important first. */
export type KeyFileReason =
  /** The file was changed in the conversation. */
  | "modified"
  /** The file is mentioned several times. */
  | "mentioned"
  /** The file was read recently. */
  | "recent";

/** Params of `sightline/labelCheckpoint`. */
export interface LabelCheckpointParams {
  /** Checkpoint, named as in `sightline/diffCheckpoints`. */
  id: string;
  /** The new label. If absent or empty, the label is removed. */
  label?: string;
  /** Path, URI or name of the only workspace folder to search, unless the id is whole. */
  root?: string;
}

/** Params of `sightline/listCheckpoints`. */
export interface ListCheckpointsParams {
  /** Return only this checkpoint, named as in `sightline/diffCheckpoints`. */
  id?: string;
  /** Maximum number of checkpoints to return, newest first. */
  limit?: number;
  /** Return only checkpoints in which this file differs from the checkpoint before. */
  path?: string;
  /** Return only checkpoints of this workspace folder, given by path, URI or name. */
  root?: string;
  /** Return only checkpoints of this task. */
  taskId?: string;
}

/** Result of `sightline/listCheckpoints`. */
export interface ListCheckpointsResult {
  /** Checkpoints, newest first. */
  checkpoints: Checkpoint[];
}

/** Params of `sightline/listDecisions`. */
export interface ListDecisionsParams {
  /** Only those about this agent. */
  agent?: string;
  /**
   * Also those that allowed something, if the setting `log.allowed` kept them.
   * Default: `false`.
   */
  all?: boolean;
  /** Maximum number of decisions. */
  limit?: number;
  /** Only those since this time, in milliseconds since the Unix epoch. */
  since?: number;
}

/** Result of `sightline/listDecisions`. */
export interface ListDecisionsResult {
  /** The decisions, newest first. */
  decisions: Decision[];
}

/** Params of `sightline/listFiles`. */
export interface ListFilesParams {
  /**
   * Maximum number of entries to return.
   * Default: `200`.
   */
  limit?: number;
  /**
   * Directory to list: a `file:` URI, an absolute path, or a path relative to a
   * workspace root. Defaults to the first workspace root.
   */
  path?: string;
  /**
   * List subdirectories recursively.
   * Default: `true`.
   */
  recursive?: boolean;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/listFiles`. */
export interface ListFilesResult {
  /** Entries in breadth-first order, each directory sorted by bytes. */
  entries: FileEntry[];
  /** Number of entries left out because `.clineignore` denies them. */
  omitted: number;
  /**
   * Number of symbolic links left out because they lead outside the workspace
   * folders.
   */
  outside?: number;
  /** The list as printed in the `files` section of the environment block. */
  text: string;
  /** True if the list was cut at the limit or the time budget. */
  truncated: boolean;
}

/** Params of `sightline/listMcpServers`. */
export interface ListMcpServersParams {
  /**
   * Lists the servers in the configuration of agents instead, which `sightline mcp adopt` moves.
   * Default: `false`.
   */
  found?: boolean;
  /** Workspace folder: its URI, path or name. Defaults to all. */
  root?: string;
}

/** Result of `sightline/listMcpServers`: the servers of the user and of the project. */
export type ListMcpServersResult = McpServer[];

/** Params of `sightline/listRules`. */
export interface ListRulesParams {
  /** Maximum number of entries to return; 1000 by default. */
  limit?: number;
  /** Return only the rules of this workspace folder, given by path, URI or name. */
  root?: string;
}

/** Result of `sightline/listRules`. */
export interface ListRulesResult {
  /** Denied entries of the workspace, without what is below a denied folder. */
  entries: DeniedEntry[];
  /** Rule files, sorted by path. The built-in rules for secrets are not in a file. */
  files: RuleFile[];
  /** Why the entries of a folder could not be listed. */
  problem?: string;
  /** True if there may be more entries. */
  truncated?: boolean;
}

/** Params of `sightline/listTasks`. */
export interface ListTasksParams {
  /** Maximum number of tasks to return. Defaults to all. */
  limit?: number;
}

/** Result of `sightline/listTasks`. */
export interface ListTasksResult {
  /** Tasks, most recently updated first. */
  tasks: TaskSummary[];
}

/** Params of `sightline/listTurns`. */
export interface ListTurnsParams {
  /** Return only turns that began before this one, to continue a list. */
  before?: string;
  /** Maximum number of turns to return, newest first; 100 by default, at most 1000. */
  limit?: number;
  /** Return only turns of this workspace folder, given by path, URI or name. */
  root?: string;
  /** Return only turns of this session: its name, such as `claude-2`, or what the agent calls it. */
  session?: string;
}

/** Result of `sightline/listTurns`. */
export interface ListTurnsResult {
  /** Turns, newest first. */
  turns: ListedTurn[];
}

/** A turn of an agent: a prompt, and what followed. */
export interface ListedTurn {
  /** Id of the checkpoint at the end. */
  after?: string;
  /** Name of the agent. */
  agent: string;
  /** Id of the checkpoint before the first edit. Absent if the turn edited nothing. */
  before?: string;
  /** End of the turn, in milliseconds since the Unix epoch. */
  endedAt?: number;
  /** Files that changed in the turn, sorted by path. At most 200. */
  files: TurnFile[];
  /** Branch and commit of the user's repository at the prompt. */
  head?: CheckpointHead;
  /** Number of changed files that are not listed. */
  moreFiles?: number;
  /** Name of the turn, such as `claude-2.3`. */
  name: string;
  /** Number of the prompt in the session, from 1. */
  number: number;
  /** What changed between the end of the turn before and the first edit. */
  outside?: OutsideChanges;
  /** The first characters of the prompt, if the setting `checkpoints.turnNames` stores them. */
  prompt?: string;
  /** URI of the workspace folder. */
  root: string;
  /** True if the turn has not ended. */
  running?: boolean;
  /** Session, as the agent calls it. */
  session: string;
  /** Time of the prompt, in milliseconds since the Unix epoch. */
  startedAt: number;
}

/** Params of `sightline/loadTask`. */
export interface LoadTaskParams {
  /** Id of the task. */
  taskId: string;
}

/** Result of `sightline/loadTask`. */
export interface LoadTaskResult {
  /** Edits to sent messages, in the format of Cline's `context_history.json`. */
  contextHistory: unknown[];
  /**
   * Messages left out of requests: first and last index, inclusive. `[2, 1]` is the
   * empty range.
   */
  deletedRange: number[];
  /** The conversation since its last compaction. */
  messages: Message[];
  /** Metadata of the task. */
  metadata: TaskMetadata;
  /** Result of reading the log. */
  recovered: Recovered;
}

/** Log level. */
export type LogLevel =
  /** No messages. */
  | "off"
  /** Errors. */
  | "error"
  /** Errors and warnings. */
  | "warn"
  /** Also major events. */
  | "info"
  /** Also every request. */
  | "debug"
  /** All messages. */
  | "trace";

/** Log of the server. */
export interface LogSettings {
  /**
   * Whether `sightline log` also keeps what agents were allowed. Only in the settings of the
   * user, not of a project.
   * Default: `false`.
   */
  allowed?: boolean;
  /**
   * What `sightline log` keeps of commands. Only in the settings of the user, not of a project.
   * Default: `"hash"`.
   */
  commands?: LoggedCommands;
  /** Log file. Defaults to standard error. Read only at startup. */
  file?: string;
  /**
   * Log level.
   * Default: `"warn"`.
   */
  level?: LogLevel;
}

/** What the log of decisions keeps of a command. */
export type LoggedCommands =
  /** Its first word, and a hash. */
  | "hash"
  /** The command. */
  | "full";

/** A configured MCP server. */
export interface McpServer {
  /** The agent in whose configuration it is, if that was asked for. */
  agent?: string;
  /**
   * Number of calls in this session.
   * Default: `0`.
   */
  calls: number;
  /**
   * Program and arguments as configured, or the address.
   * Default: `[]`.
   */
  command: string[];
  /**
   * Names of its variables.
   * Default: `[]`.
   */
  env: string[];
  /**
   * Number of calls that failed or were refused.
   * Default: `0`.
   */
  errors: number;
  /**
   * Members of its entry that have no effect.
   * Default: `[]`.
   */
  ignoredFields: string[];
  /** Its name. */
  name: string;
  /** Process id, if it is running. */
  pid?: number;
  /** Why it failed, or is not offered. */
  reason?: string;
  /** The workspace folder, if it is a server of a project. */
  root?: string;
  /** The file with its entry. */
  source: string;
  /** When it was started, in milliseconds since the Unix epoch. */
  startedAt?: number;
  /** What it does: in the session of an agent that uses it, or without one. */
  state: McpServerState;
  /**
   * Its tools, if they are known.
   * Default: `[]`.
   */
  tools: McpTool[];
}

/** Result of `sightline/mcpServerLog`. */
export interface McpServerLogResult {
  /** What the server printed, without the values of its variables. At most 256 KiB. */
  text: string;
}

/** Params of the other requests about one MCP server. */
export interface McpServerParams {
  /** Name of the server. */
  name: string;
  /** Workspace folder. Defaults to all. */
  root?: string;
}

/** What an MCP server does. */
export type McpServerState =
  /** Agents do not get it. */
  | "disabled"
  /** It is a server of the project that the user has not trusted. It is never started. */
  | "untrusted"
  /** It is started by the next call. */
  | "idle"
  /** It is starting. */
  | "starting"
  /** It is running. */
  | "ready"
  /** Its entry is invalid, or it cannot be started. */
  | "failed"
  /** The definition of a tool differs from the one that was first seen. */
  | "changed";

/** A tool of an MCP server. */
export interface McpTool {
  /** Whether its definition differs from the one that was first seen. */
  changed: boolean;
  /** Whether agents get it. */
  enabled: boolean;
  /** Its name for agents. */
  exposedAs: string;
  /** Its name. */
  name: string;
  /** Approximate number of tokens of its definition. */
  tokens: number;
}

/** Whether a prompt may mention a denied file. */
export type Mentions =
  /** The prompt is refused. */
  | "deny"
  /** The agent adds the content of the file. */
  | "allow";

/** A message in the format of the Anthropic API. Other fields and block types are allowed and returned unchanged. */
export interface Message {
  /** A string, or a list of content blocks. */
  content: unknown;
  /** `user` or `assistant`. */
  role: string;
  [key: string]: unknown;
}

/** New text of a content block. */
export interface MessageEdit {
  /** Index of the content block in the message. */
  block: number;
  /** Index of the message in the whole conversation. */
  message: number;
  /** New text of the block. For a tool result, the text of its first block. */
  text: string;
}

/** Message filter: selects the newest messages that satisfy every limit. */
export interface MessageFilter {
  /** Maximum age, in milliseconds. Messages without `ts` always match. */
  maxAge?: number;
  /** Maximum number of messages. */
  maxMessages?: number;
  /** Maximum total number of tokens. */
  maxTokens?: number;
}

/** Metadata of a message. */
export interface MessageMeta {
  /** Working directory of the agent. Defaults to the first workspace folder. */
  cwd?: string;
  /** Branch checked out in the working directory. Read from the repository if absent. */
  gitBranch?: string;
  /**
   * Time of the messages, in milliseconds since the Unix epoch. Defaults to the
   * clock of the server.
   */
  now?: number;
  /** Id of the client session. Defaults to the session of the server. */
  sessionId?: string;
  /**
   * Version of the client. Defaults to the version in `clientInfo`, else the version
   * of the server.
   */
  version?: string;
}

/** Replacement of a message. */
export interface MessageRepair {
  /** Index of the message in the whole conversation. */
  message: number;
  /** Message to send instead, with its edits applied. */
  replacement: Message;
}

/** Mode of the agent. */
export type Mode =
  /** The agent may make changes. */
  | "act"
  /** The agent only plans. */
  | "plan";

/** A model with its properties. */
export interface ModelInfo {
  /** Size of the context window, in tokens. */
  contextWindow?: number;
  /** Id of the model. */
  id: string;
  /** Id of the provider. `openai` is any OpenAI-compatible endpoint. */
  provider?: string;
}

/** A model: its id, or an object with more information. */
export type ModelRef = string | ModelInfo;

/** Context window of a model. */
export interface ModelSettings {
  /** Size of the context window, in tokens. */
  contextWindow?: number;
  /**
   * Number of tokens that may be used before truncation starts. Derived from the
   * context window if absent.
   */
  usableTokens?: number;
}

/** Model record. */
export interface ModelUsageEntry {
  /** `act` or `plan`. */
  mode: string;
  /** Id of the model. */
  model_id: string;
  /** Id of the provider. */
  model_provider_id: string;
  /** Time of the record, in milliseconds since the Unix epoch. */
  ts: number;
}

/** Notices that replace text removed from a conversation. */
export interface NoticeSettings {
  /** Notice that replaces an older read of a file that was read again. */
  duplicateFileRead?: string;
  /** Result inserted for a tool call that has none. */
  missingToolResult?: string;
  /** Notice inserted into an assistant message when messages are left out. */
  truncation?: string;
}

/** Params of `sightline/openDiff`, server to client. */
export interface OpenDiffParams {
  /** Proposed text of the whole file. */
  contents: string;
  /**
   * Identifies the diff in `sightline/closeDiff`. If an accepted change cannot be used, because no
   * checkpoint can be created or the file has changed, a message says so, and the request is sent
   * again with the same id and the text that the user accepted.
   */
  diffId: string;
  /** Path of the file, as results of requests name it. */
  path: string;
  /** Title for the user, on one line. */
  title: string;
  /** URI of the file. It may not exist yet. */
  uri: string;
}

/** Result of `sightline/openDiff`. */
export interface OpenDiffResult {
  /** True if the user accepted the change. The agent writes the file, not the editor. */
  accepted: boolean;
  /** The text that the user accepted, if it differs from the proposed one. */
  contents?: string;
}

/** Params of `sightline/openFile`. */
export interface OpenFileParams {
  /** Line to show, starting at 1. */
  line?: number;
  /** File to show: a `file:` URI, an absolute path, or a path relative to a workspace root. */
  path: string;
}

/** Result of `sightline/openFile`. */
export interface OpenFileResult {
  /** The file that the editor was asked to show: relative to the workspace root, with `/`. */
  path: string;
}

/** What changed between two turns: by the user, another program, or another agent. */
export interface OutsideChanges {
  /** Files, sorted by path. At most 200. Their contents are not compared. */
  files: TurnFile[];
  /** Branch and commit before, if they changed. */
  from?: CheckpointHead;
  /** Number of changed files that are not listed. */
  moreFiles?: number;
  /** Branch and commit after, if they changed. */
  to?: CheckpointHead;
  /** Names of other turns that ran then. */
  turns?: string[];
}

/** Display of open files outside every workspace folder. */
export type OutsideFiles =
  /** Omit them. */
  | "hide"
  /** Show them. */
  | "show";

/** Whether files outside every workspace folder may be read. */
export type OutsideWorkspace =
  /** Such files are refused. */
  | "deny"
  /** Such files are read, except those that a rule denies. */
  | "allow";

/** Access to one path. */
export interface PathAccess {
  /** Access to the path. */
  access: AccessKind;
  /** For an allowed path: the line of the user that lifts a built-in rule for secrets. */
  allowedBy?: AccessRule;
  /** The path as requested. */
  path: string;
  /**
   * Reason when no rule decided, such as an invalid path or rules that cannot be
   * read.
   */
  reason?: string;
  /** The path that it leads to, if symlinks decided that it is not the written one. */
  resolved?: string;
  /** The matching rule, if a rule decided. */
  rule?: AccessRule;
}

/** Params of `sightline/planCompaction`. */
export interface PlanCompactionParams {
  /**
   * Filter for the messages shown in the prompt, in addition to the limit of the
   * model.
   */
  filter?: MessageFilter;
  /** Instructions from the user for the summary. */
  instructions?: string;
  /**
   * Maximum number of files whose text is included.
   * Default: `5`.
   */
  maxFiles?: number;
  /**
   * Maximum number of lines per included file.
   * Default: `1000`.
   */
  maxLinesPerFile?: number;
  /** The whole conversation. Defaults to the stored conversation of `taskId`. */
  messages?: Message[];
  /** Model that receives the conversation and the prompt. */
  model: ModelRef;
  /**
   * Fraction of the messages to keep unchanged, counted from the newest.
   * Default: `0.2`.
   */
  retainRatio?: number;
  /** Id of the task with the stored conversation. */
  taskId?: string;
}

/** Result of `sightline/planCompaction`. */
export interface PlanCompactionResult {
  /** Files whose text is included with the summary. */
  files: KeyFile[];
  /**
   * True if the context window is full enough for compaction, and there is more to
   * compact than an earlier summary.
   */
  needed: boolean;
  /** Prompt to send to a model as the only message. */
  prompt: string;
  /** Index of the first message that is kept unchanged. */
  retainFrom: number;
  /** Number of tokens that would be sent now. */
  tokens: number;
}

/** A position in text, as in LSP. */
export interface Position {
  /** Offset in the line, starting at 0, in the negotiated position encoding. */
  character: number;
  /** Line, starting at 0. */
  line: number;
}

/** Params of `sightline/previewRestore`. */
export interface PreviewRestoreParams {
  /**
   * Include the checkpoints of other workspace folders from the same group. Fails
   * with `conflict` if one of those folders is not open.
   * Default: `false`.
   */
  allRoots?: boolean;
  /**
   * Restore only these hunks of files, and `paths` besides. Fails if one of them does not exist. If `id`
   * is the name of a turn, they are reverted as with `only`.
   */
  hunks?: FileHunks[];
  /**
   * Checkpoint, named as in `sightline/diffCheckpoints`. With `undo`, `last` is the undo
   * point of the last restore.
   */
  id: string;
  /**
   * Revert the turn, and keep later changes. `id` is the name of a turn, or one of its
   * checkpoints.
   */
  only?: RestoreOnly;
  /** Limits the operation to these paths and everything below them. */
  paths?: string[];
  /** Path, URI or name of the only workspace folder to search, unless the id is whole. */
  root?: string;
  /**
   * Preview `sightline/undoRestore`, with its changes in every folder, or a restore. By default,
   * an undo if `id` is the undo point of a restore of files and there are no `paths`.
   */
  undo?: boolean;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/previewRestore`. */
export interface PreviewRestoreResult {
  /** Changes the restore would make. */
  changes: RestoreChange[];
  /** Differences the restore would leave unchanged. */
  conflicts: RestoreConflict[];
  /** The state that would be restored. */
  target?: RestoreTarget;
  /** Task whose conversation would be restored as well, with `undo`. */
  taskId?: string;
  /** Token of this preview. A restore with this token makes exactly these changes, or none. */
  token: string;
  /** Id of the undo point, with `undo`. */
  undoId?: string;
  /**
   * What the user may not expect, as text: another branch is checked out now, the checkpoint is from
   * another folder, another turn ran at the same time as this one and changed the same files, or this
   * undoes an undo.
   */
  warnings?: string[];
}

/** Token usage and time of a request to a model. */
export interface PreviousRequest {
  /** Tokens read from the prompt cache. */
  cacheReads?: number;
  /** Tokens written to the prompt cache. */
  cacheWrites?: number;
  /** Input tokens. */
  tokensIn?: number;
  /** Output tokens. */
  tokensOut?: number;
  /**
   * Time the request was sent, in milliseconds since the Unix epoch. New edits are
   * stored with this time.
   */
  ts: number;
}

/** Token of `$/progress` notifications: a string or an integer. */
export type ProgressToken = string | number;

/** Params of `sightline/pruneCheckpoints`. Without a limit, nothing is removed. */
export interface PruneCheckpointsParams {
  /**
   * Report what would be removed without removing it.
   * Default: `false`.
   */
  dryRun?: boolean;
  /** Remove these checkpoints. */
  ids?: string[];
  /** Number of newest checkpoints to keep per workspace folder. Undo points are not counted. */
  keep?: number;
  /**
   * Also remove checkpoints with a label. Those in `ids` are removed in any case.
   * Default: `false`.
   */
  labelled?: boolean;
  /** Remove the oldest checkpoints until each workspace folder uses at most this many bytes. */
  maxBytes?: number;
  /** Remove checkpoints created before this time, in milliseconds since the Unix epoch. */
  olderThan?: number;
  /** Limits the operation to this workspace folder, given by path, URI or name. */
  root?: string;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/pruneCheckpoints`. */
export interface PruneCheckpointsResult {
  /** With `dryRun`, the ids of the checkpoints that would be removed, newest first. */
  checkpoints?: string[];
  /** Freed disk space, in bytes. With `dryRun`, an estimate. */
  freedBytes: number;
  /** Number of checkpoints that were kept only because of their label. */
  keptLabelled?: number;
  /** Number of removed checkpoints. With `dryRun`, the number that would be removed. */
  removed: number;
}

/** A range of text, as in LSP. */
export interface Range {
  /** End position, exclusive. */
  end: Position;
  /** Start position. */
  start: Position;
}

/** Params of `sightline/readFile`. */
export interface ReadFileParams {
  /** Last line to return, inclusive. */
  endLine?: number;
  /** Maximum number of UTF-8 bytes to return, cut at a character boundary. */
  maxBytes?: number;
  /**
   * File to read: a `file:` URI, an absolute path, or a path relative to a workspace
   * root.
   */
  path: string;
  /** First line to return, starting at 1. */
  startLine?: number;
  /** Id of a task for which the read is recorded, as with `sightline/trackFile`. */
  taskId?: string;
}

/** Result of `sightline/readFile`. */
export interface ReadFileResult {
  /**
   * True if the file on disk has changed too since the editor read or saved it. `text` is that of the
   * editor.
   */
  changedOnDisk?: boolean;
  /** Encoding of the file on disk, if it is not UTF-8. */
  encoding?: string;
  /** True if the editor has unsaved changes to this file. */
  isDirty: boolean;
  /** Source of the text. */
  source: TextSource;
  /** The requested text, with its original line endings. */
  text: string;
  /** Estimated tokens of `text`. */
  tokens: number;
  /** Number of lines in the whole file. A last line without a line ending counts. */
  totalLines: number;
  /** True if the text was cut at `maxBytes`. */
  truncated: boolean;
}

/** Params of `sightline/recordEnvironment`. */
export interface RecordEnvironmentParams {
  /**
   * Time to record, in milliseconds since the Unix epoch. Defaults to the clock of
   * the server.
   */
  now?: number;
  /**
   * Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
   * `.`.
   */
  taskId: string;
}

/** Params of `sightline/recordModel`. */
export interface RecordModelParams {
  /** Mode of the agent. */
  mode: Mode;
  /** Id of the model. */
  modelId: string;
  /**
   * Time to record, in milliseconds since the Unix epoch. Defaults to the clock of
   * the server.
   */
  now?: number;
  /** Id of the provider. */
  providerId: string;
  /**
   * Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
   * `.`.
   */
  taskId: string;
}

/** Whether an entry is the newest entry of its path. */
export type RecordState =
  /** The newest entry. */
  | "active"
  /** Replaced by a newer entry. */
  | "stale";

/** Result of `sightline/recordModel` and `sightline/recordEnvironment`. */
export interface RecordedResult {
  /** False if equal to the last record. */
  recorded: boolean;
}

/** What reading a log found. */
export interface Recovered {
  /** Number of invalid lines. They are skipped but stay in the file. */
  dropped: number;
  /** Number of lines read. */
  lines: number;
}

/** Whether commands may read whole folders that contain denied files. */
export type RecursiveReaders =
  /** The command is refused, with one to run instead where there is one. */
  | "deny"
  /** The command runs, and reads denied files too. */
  | "allow";

/** Params of `sightline/redact`. */
export interface RedactParams {
  /** Directory of the program, which names in diffs may be relative to. */
  cwd?: string;
  /**
   * Texts for an agent, such as the output of a program.
   * Default: `[]`.
   */
  texts?: string[];
}

/** Result of `sightline/redact`. */
export interface RedactResult {
  /** The files whose contents were replaced. */
  hidden: HiddenFile[];
  /** The texts in the same order, with notices in place of the contents of denied files. */
  texts: string[];
}

/** Action of a restore on a path. */
export type RestoreAction =
  /** Write the saved content, mode or type. */
  | "write"
  /** Delete the path. */
  | "delete";

/** A change a restore would make. */
export interface RestoreChange {
  /** Action on the path. */
  action: RestoreAction;
  /** Path relative to a workspace folder. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Reason, as text for the user. */
  reason: string;
  /** URI of the file. */
  uri: string;
}

/** Params of `sightline/restoreCheckpoint`. */
export interface RestoreCheckpointParams {
  /**
   * Include the checkpoints of other workspace folders from the same group. Fails
   * with `conflict` if one of those folders is not open.
   * Default: `false`.
   */
  allRoots?: boolean;
  /**
   * Also replace unsaved text in open documents.
   * Default: `false`.
   */
  force?: boolean;
  /**
   * Restore only these hunks of files, and `paths` besides. Fails if one of them does not exist. If `id`
   * is the name of a turn, they are reverted as with `only`.
   */
  hunks?: FileHunks[];
  /** Checkpoint, named as in `sightline/diffCheckpoints`. */
  id: string;
  /**
   * What to restore.
   * Default: `"files"`.
   */
  mode?: RestoreMode;
  /**
   * Revert the turn, and keep later changes. `id` is the name of a turn, or one of its
   * checkpoints.
   */
  only?: RestoreOnly;
  /** Limits the operation to these paths and everything below them. */
  paths?: string[];
  /** Path, URI or name of the only workspace folder to search, unless the id is whole. */
  root?: string;
  /** Id of the task. Defaults to the task of the checkpoint. */
  taskId?: string;
  /**
   * Token of a preview. If the preview is out of date, nothing is changed and the
   * error is `conflict`.
   */
  token?: string;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`. */
export interface RestoreCheckpointResult {
  /** Differences that were left unchanged. Absent if there are none. */
  conflicts?: RestoreConflict[];
  /** Outcome of each planned change. */
  outcomes: RestoreOutcome[];
  /** The restored conversation, if any. */
  task?: RestoredTask;
  /**
   * Id of the checkpoint created before the restore, for `sightline/undoRestore`.
   * Absent if there was nothing to do; the last undo point then stays the same.
   */
  undoId?: string;
}

/** A difference that a restore leaves unchanged. */
export interface RestoreConflict {
  /**
   * True if this is an undo and the path was changed after the restore. With `force`,
   * the undo discards that change.
   */
  changedSince?: boolean;
  /** Path relative to a workspace folder. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Reason, as text for the user. */
  reason: string;
  /** True if the path is open with unsaved text. With `force`, the text is replaced. */
  unsaved?: boolean;
  /** URI of the file. */
  uri: string;
}

/** What to restore. */
export type RestoreMode =
  /** Files. */
  | "files"
  /**
   * The conversation of the task, including one on a branch that was abandoned
   * later. Fails with `conflict` if the log does not contain that state.
   */
  | "task"
  /** Files and conversation. */
  | "filesAndTask";

/** Restricts a restore to a part of the differences. */
export type RestoreOnly =
  /**
   * Reverts the turn, and keeps later changes. Lines are merged; a file that cannot be
   * merged is a conflict and left unchanged.
   */
  | "turn";

/** Outcome of one change. */
export interface RestoreOutcome {
  /** Planned action. */
  action: RestoreAction;
  /** Reason for the failure. */
  error?: string;
  /** True if the action succeeded. */
  ok: boolean;
  /** Path relative to a workspace folder. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /**
   * True if the path was open with unsaved text, which was replaced. The document is
   * still unsaved, so undoing this needs `force`.
   */
  replacedUnsaved?: boolean;
  /** URI of the file. */
  uri: string;
}

/** The state that a restore leads to. */
export interface RestoreTarget {
  /** Branch of the user's repository. */
  branch?: string;
  /** Creation time, in milliseconds since the Unix epoch. */
  createdAt: number;
  /** Id of the checkpoint. */
  id: string;
  /** Label of the checkpoint. */
  label?: string;
  /** Name of the turn whose state before, or with a `+` after it this is. */
  name?: string;
}

/** A conversation that was restored. */
export interface RestoredTask {
  /** Number of messages in its conversation now. */
  messages: number;
  /** Id of the task. */
  taskId: string;
}

/** Params of `sightline/resumeTask`. */
export interface ResumeTaskParams {
  /**
   * Time of resumption, in milliseconds since the Unix epoch. Defaults to the clock
   * of the server.
   */
  now?: number;
  /** Id of the task. Defaults to the most recently updated task of this workspace. */
  taskId?: string;
}

/** Result of `sightline/resumeTask`. */
export interface ResumeTaskResult {
  /** Ids of tool calls without a result in the log. */
  interruptedTools: string[];
  /**
   * Messages to continue with: the messages last sent to the model, with a result
   * for every tool call. The client appends `resumption` and the text of the user.
   */
  messages: Message[];
  /**
   * Text that tells the model about the interruption. It starts with `[TASK
   * RESUMPTION]`.
   */
  resumption: string;
  /** Id of the task. */
  taskId: string;
}

/** Params of `sightline/rollbackHistory`. */
export interface RollbackHistoryParams {
  /** The edits. Defaults to the stored edits of `taskId`. */
  contextHistory?: unknown[];
  /** Id of the task with the stored edits. The result is stored as well. */
  taskId?: string;
  /** Discard edits newer than this time, in milliseconds since the Unix epoch. */
  timestamp: number;
}

/** Result of `sightline/rollbackHistory`. */
export interface RollbackHistoryResult {
  /** Remaining edits. */
  contextHistory: unknown[];
}

/** A rule file in force. */
export interface RuleFile {
  /** Time of the last change, in milliseconds since the Unix epoch. */
  modifiedAt?: number;
  /** Why it cannot be used. */
  problem?: string;
  /** Number of its rules. */
  rules: number;
  /** Name of the file in the `rule` of a denial. */
  source: string;
  /** State of the file. */
  state: RuleFileState;
  /** URI of the file. */
  uri: string;
}

/** State of a rule file. */
export type RuleFileState =
  /** Its lines apply. */
  | "inForce"
  /** It is being saved: lines that were removed still apply, for half a second after the last change. */
  | "held"
  /** It cannot be used, so everything in its folder is denied. */
  | "unusable";

/** Whether files that usually contain secrets may be read. */
export type Secrets =
  /** Hidden, except those that a line allows. */
  | "deny"
  /** Visible, except those that a line denies. */
  | "allow";

/** One section of the block. */
export interface Section {
  /**
   * True if the client did not send this state and it was derived from open
   * documents.
   */
  derived?: boolean;
  /** The heading, without `# `. */
  heading: string;
  /** Id of the section. */
  id: SectionId;
  /** Maximum size of the body, in estimated tokens, if it is limited. */
  maxTokens?: number;
  /**
   * Number of entries left out because they are denied, outside the workspace or
   * over the budget of the section.
   */
  omitted: number;
  /** The body. */
  text: string;
  /** Estimated tokens of the heading and the body. */
  tokens: number;
}

/** Sections of the block, in printed order. */
export type SectionId =
  /** Workspace folders, if there are several. */
  | "workspaceRoots"
  /** Files visible in an editor. */
  | "visibleFiles"
  /** Files open in a tab. */
  | "openTabs"
  /** Terminals with a running command. */
  | "runningTerminals"
  /** Idle terminals with unread output. */
  | "inactiveTerminals"
  /** Files that changed since the agent last saw them. */
  | "recentlyModified"
  /** Date, time and time zone. */
  | "currentTime"
  /** The file list. */
  | "files"
  /** Roots, git remotes and commits, as JSON. */
  | "workspaceConfiguration"
  /** Command line tools found on the search path. */
  | "cliTools"
  /** Open files with unsaved changes. */
  | "unsavedFiles"
  /**
   * Errors and warnings in visible and recently modified files. Only if it is requested in
   * `sections` or enabled.
   */
  | "diagnostics"
  /** Usage of the context window. */
  | "contextWindow"
  /** Mode of the agent: plan or act. */
  | "mode";

/** Options of a section of the block. */
export interface SectionSettings {
  /** Whether to include the section. */
  enabled?: boolean;
  /**
   * Maximum size of the section body, in estimated tokens. The body is cut at a line
   * boundary. The heading and the closing line that counts omitted entries are not
   * included in the limit.
   */
  maxTokens?: number;
}

/** A selection or a cursor. */
export interface Selection {
  /** Where it is. */
  range: Range;
  /** The selected text, with unsaved changes. Empty for a cursor. */
  text: string;
}

/** Params of `sightline/selection`. */
export interface SelectionParams {
  /** Maximum text to return, in UTF-8 bytes: at most 16384, the default. */
  maxBytes?: number;
}

/**
 * Result of `sightline/selection`. Without a `path` if no file has the focus, or agents may not
 * see it.
 */
export interface SelectionResult {
  /** LSP language id. */
  languageId?: string;
  /** The active file: relative to the workspace root, with `/`. */
  path?: string;
  /** Selections and cursors, in the order of the editor. Empty if the client does not send them. */
  selections?: Selection[];
  /** True if text was left out. */
  truncated?: boolean;
}

/** Params of `sightline/setMcpServerEnabled`. */
export interface SetMcpServerEnabledParams {
  /** Whether agents get it. */
  enabled: boolean;
  /** Name of the server. */
  name: string;
  /** Workspace folder. Defaults to all. */
  root?: string;
}

/**
 * Settings of Sightline, passed in `initializationOptions`, in the configuration
 * section `sightline` or in `workspace/didChangeConfiguration`.
 */
export interface Settings {
  /** File access of agents. */
  access?: AccessSettings;
  /** Coding agents. */
  agents?: AgentSettings;
  /** IDE protocols of coding agents: what the user selects, as it happens. */
  bridges?: BridgeSettings;
  /** Workspace checkpoints. */
  checkpoints?: CheckpointSettings;
  /** Commands of `workspace/executeCommand`. */
  commands?: CommandSettings;
  /** Truncation of conversations. */
  conversation?: ConversationSettings;
  /** Diagnostics in open documents. */
  diagnostics?: DiagnosticSettings;
  /** Environment block. */
  environment?: EnvironmentSettings;
  /** Log of the server. */
  log?: LogSettings;
  /**
   * Send server notifications, such as `sightline/didChangeContext`, to the client.
   * Default: `false`.
   */
  notifications?: boolean;
  /** Data directory. */
  storage?: StorageSettings;
  /** Retention of stored tasks. */
  tasks?: TaskSettings;
}

/** A path that is not in a checkpoint. */
export interface SkippedPath {
  /** Path relative to the workspace folder of the checkpoint, with `/`. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Reason, as text for the user. */
  reason: string;
}

/** Data directory. */
export interface StorageSettings {
  /**
   * Absolute path of the data directory. Defaults to the data directory of the
   * platform.
   */
  path?: string;
}

/** Changes that `sightline/truncateHistory` may make. */
export type Strategy =
  /**
   * If the context window is full, replace duplicate file reads; if that saves too
   * little, leave out messages.
   */
  | "auto"
  /** Only apply the given range and edits. */
  | "apply"
  /** Only replace duplicate file reads, even if the window is not full. */
  | "deduplicate";

/** One tab. */
export interface Tab {
  /** Number of the tab group or window column. */
  group?: number;
  /** True for the active tab of its group. */
  isActive?: boolean;
  /** True if the document has unsaved changes. */
  isDirty?: boolean;
  /** True if the tab is pinned. */
  isPinned?: boolean;
  /** True for a preview tab that is replaced by the next opened file. */
  isPreview?: boolean;
  /** URI of the document in the tab. */
  uri: string;
}

/** Params of `sightline/taskContext`. */
export interface TaskContextParams {
  /**
   * Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
   * `.`.
   */
  taskId: string;
  /** Also return how full the context window is, which counts the tokens of the stored conversation. */
  usage?: boolean;
}

/**
 * Result of `sightline/taskContext`: the records of a task, and the files that changed
 * since the agent saw them.
 */
export interface TaskContextResult {
  /** Files whose content differs from what the agent last saw. */
  changed: string[];
  /** Files the agent saw that no longer exist. */
  deleted: string[];
  /** All environment records, oldest first. */
  environments: EnvironmentEntry[];
  /** All file records, oldest first. */
  files: FileMetadataEntry[];
  /** All model records, oldest first. */
  models: ModelUsageEntry[];
  /** How full the context window of the last recorded model is. Absent without a stored conversation or a model. */
  usage?: WindowUsage;
}

/** Metadata of a task. */
export interface TaskMetadata {
  /** Number of compactions of the conversation. */
  compactions: number;
  /** Time of the first message, in milliseconds since the Unix epoch. */
  createdAt: number;
  /** Last recorded working directory of the agent. */
  cwd?: string;
  /** Environment records. */
  environments: EnvironmentEntry[];
  /** File records, as in Cline's `task_metadata.json`. */
  files: FileMetadataEntry[];
  /** Last recorded branch of the working directory. */
  gitBranch?: string;
  /** Model records. */
  models: ModelUsageEntry[];
  /** Title: the start of the first text by the user. */
  title: string;
  /** Time of the last message, in milliseconds since the Unix epoch. */
  updatedAt: number;
}

/**
 * Retention of stored tasks. The most recently updated tasks are kept. Nothing is
 * deleted automatically if no limit is set.
 */
export interface TaskSettings {
  /** Delete tasks that were not updated for this many days. */
  maxAgeDays?: number;
  /** Maximum total size of tasks to keep, in bytes. */
  maxBytes?: number;
  /** Maximum number of tasks to keep. */
  maxCount?: number;
}

/** Summary of a task. */
export interface TaskSummary {
  /** Time of the first message, in milliseconds since the Unix epoch. */
  createdAt: number;
  /** Last recorded working directory of the agent. */
  cwd?: string;
  /** Total number of messages of the conversation. */
  messageCount: number;
  /** Id of the task. */
  taskId: string;
  /** Title: the start of the first text by the user. */
  title: string;
  /** Time of the last message, in milliseconds since the Unix epoch. */
  updatedAt: number;
}

/** One terminal. */
export interface Terminal {
  /** True while a program uses the alternate screen. What it shows is not output. */
  alternateScreen?: boolean;
  /** The running command, or the last one. */
  command?: string;
  /** Working directory. */
  cwd?: string;
  /** Exit code of the last command. */
  exitCode?: number;
  /**
   * Id of the terminal, chosen by the client. A number is converted to its decimal
   * form.
   */
  id: string;
  /** True while a command is running. */
  isBusy: boolean;
  /** Title of the terminal. */
  name?: string;
  /** Output since the last notification. Appended to the unread output. */
  newOutput?: string;
  /**
   * Process id of the first process, usually the shell. An agent does not get the output of the
   * terminal in which it runs.
   */
  pid?: number;
}

/** Source of the text of a `readFile` result. */
export type TextSource =
  /** The buffer of the editor. */
  | "buffer"
  /** The file on disk. */
  | "disk";

/** Token counts before and after. */
export interface TokenChange {
  /** Tokens that will be sent now. */
  after: number;
  /** Tokens that would have been sent without this call. */
  before: number;
}

/** Params of `sightline/trackFile`. */
export interface TrackFileParams {
  /** With `cline_edited`, the SHA-256 (hex) of the content written by the agent. */
  contentHash?: string;
  /**
   * Time to record, in milliseconds since the Unix epoch. Defaults to the clock of
   * the server.
   */
  now?: number;
  /** Operation on the file. */
  operation: FileOperation;
  /**
   * The file: a `file:` URI, an absolute path, or a path relative to a workspace
   * root.
   */
  path: string;
  /**
   * Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not starting with
   * `.`.
   */
  taskId: string;
}

/** Result of `sightline/trackFile`. */
export interface TrackFileResult {
  /** The new entry. */
  entry: FileMetadataEntry;
}

/** Params of `sightline/truncateHistory`. */
export interface TruncateHistoryParams {
  /**
   * Edits made so far: `contextHistory` of the last result, or the content of
   * Cline's `context_history.json`.
   */
  contextHistory?: unknown[];
  /**
   * Also count tokens before and after.
   * Default: `false`.
   */
  countTokens?: boolean;
  /**
   * Messages left out so far: first and last index, inclusive. `[2, 1]` is the empty
   * range.
   */
  deletedRange?: number[];
  /** Truncate by this amount immediately, regardless of usage and `strategy`. */
  keep?: Keep;
  /** The whole conversation. Defaults to the stored conversation of `taskId`. */
  messages?: Message[];
  /** Model that receives the next request. */
  model: ModelRef;
  /** Token usage and time of the last request. If absent, the conversation fits. */
  previousRequest?: PreviousRequest;
  /**
   * Form of the result.
   * Default: `"messages"`.
   */
  reply?: TruncateReply;
  /**
   * Which changes are allowed.
   * Default: `"auto"`.
   */
  strategy?: Strategy;
  /** Id of the task with the stored conversation. The result is stored as well. */
  taskId?: string;
  /**
   * Fraction of the context window at which to act, capped by the usable size of the
   * window.
   */
  thresholdPercentage?: number;
}

/** Result of `sightline/truncateHistory`. */
export interface TruncateHistoryResult {
  /**
   * Fraction of characters saved by replacing duplicate file reads in this call.
   * Negative if the notices are longer than the files.
   */
  charactersSaved: number;
  /** Edits made so far. Pass them to the next call. */
  contextHistory: unknown[];
  /** True if this call made edits. */
  contextHistoryChanged: boolean;
  /** The decision. */
  decision: DecisionOfTruncation;
  /** Messages to leave out: first and last index, inclusive. */
  deletedRange?: number[];
  /** With `reply: "edits"`, the texts to replace in messages that are kept. */
  edits?: MessageEdit[];
  /** The messages to send. */
  messages?: Message[];
  /** With `strategy: "deduplicate"`, true if too little was saved. */
  needToTruncate?: boolean;
  /**
   * With `reply: "edits"`, messages to replace entirely, because tool results had to
   * be matched to tool calls.
   */
  repairs?: MessageRepair[];
  /** With `countTokens`, the tokens before and after. */
  tokens?: TokenChange;
  /** True if this call changed the range. */
  updatedDeletedRange: boolean;
}

/** Form of the result of `sightline/truncateHistory`. */
export type TruncateReply =
  /** The messages to send. */
  | "messages"
  /** Edits to apply to the caller's copy of the conversation. */
  | "edits";

/** A file that a turn changed. */
export interface TurnFile {
  /** Number of added lines; 0 if the contents were not compared. */
  additions: number;
  /** Number of deleted lines; 0 if the contents were not compared. */
  deletions: number;
  /** Path relative to the workspace folder. */
  path: string;
  /** True if the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /**
   * Names of turns that ran at the same time and also have the file. What changed while both ran is
   * listed for both.
   */
  sharedWith?: string[];
  /** Kind of change. */
  status: DifferenceStatus;
}

/** What is stored of a prompt. */
export type TurnNames =
  /** The first 60 characters. */
  | "prompt"
  /** Nothing. */
  | "none";

/** Params of `sightline/undoRestore`. */
export interface UndoRestoreParams {
  /**
   * Also revert paths that were changed after the restore, and replace unsaved text in
   * open documents.
   * Default: `false`.
   */
  force?: boolean;
  /** Limits the undo to these paths and everything below them. */
  paths?: string[];
  /** Path, URI or name of the only workspace folder to search, unless the id is whole. */
  root?: string;
  /**
   * Token of a preview of the undo. If the preview is out of date, nothing is
   * changed and the error is `conflict`.
   */
  token?: string;
  /** `undoId` of the restore to undo, or at least 4 digits of it. Defaults to `last`. */
  undoId?: string;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Params of `sightline/unsavedFiles`. */
export interface UnsavedFilesParams {
  /**
   * Only files below this folder: a `file:` URI, an absolute path, or a path relative to a
   * workspace root.
   */
  folder?: string;
}

/** Result of `sightline/unsavedFiles`. */
export interface UnsavedFilesResult {
  /** Time of the last change that the editor reported, in milliseconds since the epoch. */
  changedAt?: number;
  /** Name of the editor. */
  editor?: string;
  /** Their `file:` URIs, without those of files that agents may not see. */
  uris: string[];
}

/** Token usage of a request to a model, as reported by the provider. */
export interface Usage {
  /** Tokens read from the prompt cache. */
  cacheReads?: number;
  /** Tokens written to the prompt cache. */
  cacheWrites?: number;
  /** Input tokens. */
  tokensIn?: number;
  /** Output tokens. */
  tokensOut?: number;
}

/** Params of `sightline/verifyCheckpoints`. */
export interface VerifyCheckpointsParams {
  /** Limits the operation to this workspace folder, given by path, URI or name. */
  root?: string;
  /** Token for `$/progress` notifications, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/verifyCheckpoints`. */
export interface VerifyCheckpointsResult {
  /** True if every checkpoint is intact. */
  ok: boolean;
  /** Problems, as text for the user. */
  problems: string[];
}

/** One visible editor. */
export interface VisibleEditor {
  /** True for the focused editor. */
  isActive?: boolean;
  /** Selections. An empty range is a cursor. */
  selections?: Range[];
  /** URI of the document. */
  uri: string;
  /** Visible lines. Folded code splits them into several ranges. */
  visibleRanges?: Range[];
}

/** Usage of a context window. */
export interface WindowUsage {
  /** Size of the context window, in tokens. */
  contextWindow: number;
  /** Id of the model. */
  modelId: string;
  /** Estimated tokens of the conversation since its last compaction. */
  tokens: number;
}
