// Generated from the types in server/protocol. Do not edit; change the types, then run
//   UPDATE_GENERATED=1 cargo test -p sightline-protocol --test drift --test documents

/** Version of the wire protocol these types describe. */
export const PROTOCOL_VERSION = 1;

/** Every request of a client: what it takes and what the server answers. */
export interface Methods {
  /** Builds the `<environment_details>` block of this moment. */
  "sightline/environmentDetails": { params: EnvironmentDetailsParams; result: EnvironmentDetailsResult };
  /** Judges paths and a command line against `.clineignore`. */
  "sightline/checkAccess": { params: CheckAccessParams; result: CheckAccessResult };
  /** Lists files, breadth first, without what may not be seen. */
  "sightline/listFiles": { params: ListFilesParams; result: ListFilesResult };
  /** Reads a file: unsaved editor text first, access enforced. */
  "sightline/readFile": { params: ReadFileParams; result: ReadFileResult };
  /** Records that a task read, changed or mentioned a file. */
  "sightline/trackFile": { params: TrackFileParams; result: TrackFileResult };
  /** Records the model a task uses. */
  "sightline/recordModel": { params: RecordModelParams; result: RecordedResult };
  /** Records system and editor a task runs on. */
  "sightline/recordEnvironment": { params: RecordEnvironmentParams; result: RecordedResult };
  /** Tells what a task knows of its files, and where that is out of date. */
  "sightline/taskContext": { params: TaskContextParams; result: TaskContextResult };
  /** Counts the tokens of texts and messages. */
  "sightline/countTokens": { params: CountTokensParams; result: CountTokensResult };
  /** Decides which messages of a conversation are sent. */
  "sightline/truncateHistory": { params: TruncateHistoryParams; result: TruncateHistoryResult };
  /** Takes decisions about a conversation back, to a point in time. */
  "sightline/rollbackHistory": { params: RollbackHistoryParams; result: RollbackHistoryResult };
  /** Tells what a provider's error means for the conversation. */
  "sightline/classifyError": { params: ClassifyErrorParams; result: ClassifyErrorResult };
  /** Stores messages of a task; they are durable when it returns. */
  "sightline/appendMessages": { params: AppendMessagesParams; result: AppendMessagesResult };
  /** Loads the stored conversation of a task. */
  "sightline/loadTask": { params: LoadTaskParams; result: LoadTaskResult };
  /** Lists the stored tasks, last updated first. */
  "sightline/listTasks": { params: ListTasksParams; result: ListTasksResult };
  /** Goes on with a task where it was interrupted. */
  "sightline/resumeTask": { params: ResumeTaskParams; result: ResumeTaskResult };
  /** Deletes a task with all that is stored of it. */
  "sightline/deleteTask": { params: DeleteTaskParams; result: DeleteTaskResult };
  /** Plans replacing the older part of a conversation by a summary. */
  "sightline/planCompaction": { params: PlanCompactionParams; result: PlanCompactionResult };
  /** Replaces the older part of a conversation by a summary. */
  "sightline/applyCompaction": { params: ApplyCompactionParams; result: ApplyCompactionResult };
  /** Takes a checkpoint of the workspace. */
  "sightline/createCheckpoint": { params: CreateCheckpointParams; result: Checkpoint };
  /** Lists checkpoints, the newest first. */
  "sightline/listCheckpoints": { params: ListCheckpointsParams; result: ListCheckpointsResult };
  /** Compares two checkpoints, or one and the workspace now. */
  "sightline/diffCheckpoints": { params: DiffCheckpointsParams; result: DiffCheckpointsResult };
  /** Tells what a restore would do. Changes nothing. */
  "sightline/previewRestore": { params: PreviewRestoreParams; result: PreviewRestoreResult };
  /** Puts files, conversation or both back to a checkpoint. */
  "sightline/restoreCheckpoint": { params: RestoreCheckpointParams; result: RestoreCheckpointResult };
  /** Takes a restore back. */
  "sightline/undoRestore": { params: UndoRestoreParams; result: RestoreCheckpointResult };
  /** Tells how many checkpoints there are and what they take. */
  "sightline/checkpointStats": { params: CheckpointStatsParams; result: CheckpointStatsResult };
  /** Removes old checkpoints. */
  "sightline/pruneCheckpoints": { params: PruneCheckpointsParams; result: PruneCheckpointsResult };
  /** Reads every checkpoint and tells whether all are whole. */
  "sightline/verifyCheckpoints": { params: VerifyCheckpointsParams; result: VerifyCheckpointsResult };
}

/** Every notification a client sends, with its params. */
export interface Notifications {
  /** The tabs of the editor, in order. */
  "sightline/didChangeTabs": DidChangeTabsParams;
  /** The editors on the screen. */
  "sightline/didChangeVisibleEditors": DidChangeVisibleEditorsParams;
  /** The terminals, with output since the last notification. */
  "sightline/didChangeTerminals": DidChangeTerminalsParams;
  /** The editor that has the focus. */
  "textDocument/didFocus": DidFocusParams;
}

/** Every notification the server sends when the setting `notifications` is on, with its params. */
export interface ServerNotifications {
  /** What the editor shows has a new revision. */
  "sightline/didChangeContext": DidChangeContextParams;
  /** The access rules of a root changed. */
  "sightline/didChangeAccessRules": DidChangeAccessRulesParams;
  /** A checkpoint was taken. */
  "sightline/didCreateCheckpoint": DidCreateCheckpointParams;
}

/** What an agent may do with a path. */
export type AccessKind =
  /** Inside a workspace root and not denied. */
  | "allowed"
  /** Denied by a rule, or because the question could not be decided. */
  | "denied"
  /** Outside every workspace root. */
  | "outside";

/** The line of a rule file that decided. */
export interface AccessRule {
  /** Line number, from 1; 0 for a built-in rule. */
  line: number;
  /** The pattern as written. */
  pattern: string;
  /**
   * The file the line stands in, relative to its root, or its whole path when it
   * stands above the root; `built-in` for the rule that hides the rule file itself.
   */
  source: string;
}

/** What an agent may see. */
export interface AccessSettings {
  /**
   * Reading files outside every workspace folder.
   * Default: `"deny"`.
   */
  outsideWorkspace?: OutsideWorkspace;
  /**
   * Commands that read whole folders, such as `grep -r` and `tar`, where a folder
   * holds denied files that the command does not exclude.
   * Default: `"deny"`.
   */
  recursiveReaders?: RecursiveReaders;
}

/** Params of `sightline/appendMessages`. */
export interface AppendMessagesParams {
  /** The messages that came since the last call, in order. */
  messages: Message[];
  /** What is recorded beside each of them. */
  meta?: MessageMeta;
  /** Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`. */
  taskId: string;
}

/** Result of `sightline/appendMessages`. */
export interface AppendMessagesResult {
  /**
   * Messages of the conversation in all, since its last compaction if there
   * was one: as many as `sightline/loadTask` gives.
   */
  count: number;
}

/** Params of `sightline/applyCompaction`. */
export interface ApplyCompactionParams {
  /** Why there is no summary. */
  error?: string;
  /** Files whose text is kept at hand at most; 5 when absent. */
  maxFiles?: number;
  /** Lines of each of them at most; 1000 when absent. */
  maxLinesPerFile?: number;
  /** The whole conversation. When absent, the stored one of `taskId`. */
  messages?: Message[];
  /** The model the conversation is for, to count its tokens. */
  model?: ModelRef;
  /**
   * Index of the first message that stays as it is, from the plan; decided
   * anew when absent.
   */
  retainFrom?: number;
  /** What the model answered. */
  summary?: string;
  /** Id of the task whose stored conversation is meant; it is then compacted. */
  taskId?: string;
  /**
   * Who wanted it.
   * Default: `"auto"`.
   */
  trigger?: CompactionTrigger;
}

/** Result of `sightline/applyCompaction`. */
export interface ApplyCompactionResult {
  /** Was there no summary, so that the newest part was kept instead? */
  fallback: boolean;
  /** Why there was none. */
  fallbackReason?: string;
  /** The files whose text goes with the summary. */
  filesIncluded: string[];
  /** The conversation from now on. */
  messages: Message[];
  /** Its tokens now. */
  postTokens: number;
  /** Its tokens before. */
  preTokens: number;
}

/** Params of `sightline/checkAccess`. */
export interface CheckAccessParams {
  /** A shell command line to judge. The answer is advice, not a sandbox. */
  command?: string;
  /**
   * Paths to judge: `file:` URIs, absolute, or relative to a workspace root.
   * Default: `[]`.
   */
  paths?: string[];
}

/** Result of `sightline/checkAccess`. */
export interface CheckAccessResult {
  /** The verdict on the command, when one was asked about. */
  command?: CommandAccess;
  /** One verdict for each asked path, in the order asked. */
  paths: PathAccess[];
}

/** The workspace as it was. */
export interface Checkpoint {
  /** Files that were not in the one before. */
  added: number;
  /** Their sizes, in bytes. */
  bytes: number;
  /** When it was taken, milliseconds since the Unix epoch. */
  createdAt: number;
  /** Files of the one before that are not in it. */
  deleted: number;
  /** How long it took, in milliseconds. */
  durationMs: number;
  /** Files it holds. */
  files: number;
  /**
   * The checkpoints that were taken together, one of each workspace folder;
   * absent when there is one folder.
   */
  group?: GroupMember[];
  /** Its id, that of a git commit: 40 hexadecimal digits. */
  id: string;
  /**
   * The id it had in the store it was imported from. Wherever the id of a
   * checkpoint is wanted, this one is understood too.
   */
  imported?: string;
  /** What people call it. */
  label?: string;
  /** How many messages the conversation of its task had. */
  messages?: number;
  /** Files that were in it with other content or mode. */
  modified: number;
  /** Why it was taken, when nobody asked for it. */
  purpose?: CheckpointPurpose;
  /** URI of the workspace folder it is of. */
  root: string;
  /**
   * What is in the workspace and not in the checkpoint. What the ignore
   * rules leave out is not named.
   */
  skipped: SkippedPath[];
  /** The task it belongs to. */
  taskId?: string;
}

/** Why a checkpoint was taken that nobody asked for. */
export type CheckpointPurpose =
  /** Before a restore, to be able to undo it. */
  | "undo"
  /** It came from another tool's store. */
  | "imported";

/** Checkpoints of the workspace. */
export interface CheckpointSettings {
  /**
   * Folders skipped besides the ignore rules.
   * Default: `["node_modules",".venv","__pycache__"]`.
   */
  exclude?: string[];
  /**
   * Files larger than this many bytes are skipped.
   * Default: `20971520`.
   */
  maxFileSize?: number;
  /**
   * Files above which the first checkpoint must be confirmed.
   * Default: `500000`.
   */
  maxFiles?: number;
  /**
   * Bytes above which the first checkpoint must be confirmed.
   * Default: `10737418240`.
   */
  maxTotalSize?: number;
}

/** Params of `sightline/checkpointStats`. */
export interface CheckpointStatsParams {
  /** Only this workspace folder: its path, URI or name. */
  root?: string;
}

/** Result of `sightline/checkpointStats`. */
export interface CheckpointStatsResult {
  /** What they take on disk, in bytes. */
  bytes: number;
  /** Checkpoints that are stored, undo points included. */
  count: number;
  /** When the newest was taken, milliseconds since the Unix epoch. */
  newest?: number;
  /** When the oldest was taken, milliseconds since the Unix epoch. */
  oldest?: number;
}

/** Params of `sightline/classifyError`. */
export interface ClassifyErrorParams {
  /** The error as the client has it: the body, or the error object with all its properties. */
  error?: unknown;
  /** The provider's id. */
  provider?: string;
}

/** Result of `sightline/classifyError`. */
export interface ClassifyErrorResult {
  /** The request was refused because it is too long for the model: truncate, then send. */
  contextWindowExceeded: boolean;
  /** The same request may succeed later: wait, then send. */
  retryable: boolean;
}

/** The verdict on a command line. */
export interface CommandAccess {
  /** False when any operand is denied. */
  allowed: boolean;
  /** Every denied operand found. */
  denied: DeniedOperand[];
}

/** Commands run through `workspace/executeCommand`. */
export interface CommandSettings {
  /**
   * Also show the result of a command by message and document. For editors
   * that drop command results; on by default only in Helix.
   */
  showResults?: boolean;
}

/** Who wanted a compaction. */
export type CompactionTrigger =
  /** The window was full. */
  | "auto"
  /** The user. */
  | "manual";

/** Which decisions about a conversation are made. */
export type ConversationProfile =
  /** This server's. */
  | "default"
  /** Exactly Cline's. */
  | "cline";

/** Conversations: truncation and its notices. */
export interface ConversationSettings {
  /**
   * Context windows of models, by id, for those that are not known or known
   * wrongly. What a request says of its model comes first.
   */
  models?: { [key in string]?: ModelSettings };
  /** Texts put in place of what was taken out. */
  notices?: NoticeSettings;
  /**
   * Which decisions: this server's, or Cline's exactly.
   * Default: `"default"`.
   */
  profile?: ConversationProfile;
}

/** Params of `sightline/countTokens`. */
export interface CountTokensParams {
  /**
   * Count with this encoding whatever the model: `o200k_base`, `o200k_harmony`,
   * `cl100k_base`, `p50k_base`, `p50k_edit`, `r50k_base` or `gpt2`.
   */
  encoding?: string;
  /**
   * Messages to count with what frames them: `role` and `content`, a string or blocks.
   * Default: `[]`.
   */
  messages?: Message[];
  /**
   * The model that will read them. Without model and encoding the count is that of
   * `o200k_base`.
   */
  model?: ModelRef;
  /**
   * The task these messages belong to: usage reported for it is the base of the count.
   * Without texts and messages, what would be sent of its stored conversation is counted.
   */
  taskId?: string;
  /**
   * Texts to count as they are; the markers of special tokens count as ordinary text.
   * Default: `[]`.
   */
  texts?: string[];
  /**
   * What the provider reported for a request with just these texts and messages; the
   * later counts of the task start from it.
   */
  usage?: Usage;
}

/** Result of `sightline/countTokens`. */
export interface CountTokensResult {
  /** Tokens the provider reported for one counted here, when usage was reported. */
  calibration?: number;
  /** The encoding the figures were counted with or made from. */
  encoding: string;
  /** True when `tokens` is what the encoding gives, not an estimate. */
  exact: boolean;
  /** One figure for each text, then one for each message, in the order given. */
  items: number[];
  /** The least it is likely to be; absent when exact. */
  lower?: number;
  /** How the figure was made. */
  method: string;
  /** All of it. The sum of `items`, unless reported usage is the base. */
  tokens: number;
  /** The most it is likely to be; absent when exact. */
  upper?: number;
}

/** Params of `sightline/createCheckpoint`. */
export interface CreateCheckpointParams {
  /**
   * Go ahead however large the workspace is.
   * Default: `false`.
   */
  confirmLarge?: boolean;
  /** What people call it. */
  label?: string;
  /**
   * A workspace folder: its path, URI or name. One checkpoint of each folder,
   * as a group, when absent.
   */
  root?: string;
  /** The task it belongs to. */
  taskId?: string;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** What `sightline/truncateHistory` did. */
export type Decision =
  /** Nothing had to be done. */
  | "fits"
  /** Duplicate file reads were replaced, and that was enough. */
  | "deduplicated"
  /** Messages are left out. */
  | "truncated";

/** Params of `sightline/deleteTask`. */
export interface DeleteTaskParams {
  /** Id of the task. */
  taskId: string;
}

/** Result of `sightline/deleteTask`. */
export interface DeleteTaskResult {
  /** Bytes its files took. */
  freedBytes: number;
}

/** An operand of a command that names a denied file. */
export interface DeniedOperand {
  /** The operand, as the shell would see it after quotes are removed. */
  path: string;
  /** What the command would do with it, in words. */
  reason: string;
  /** The rule that decided, when a rule did. */
  rule?: AccessRule;
}

/** What is marked in open documents. */
export interface DiagnosticSettings {
  /**
   * Mark open files that changed since the last checkpoint, by a hint on
   * their first line.
   * Default: `false`.
   */
  changedFiles?: boolean;
  /**
   * Mark mistakes in `.clineignore`, and rules that decide on nothing.
   * Default: `true`.
   */
  rules?: boolean;
}

/** Params of `sightline/didChangeAccessRules`, server to client. */
export interface DidChangeAccessRulesParams {
  /** URI of the workspace folder whose rules changed. */
  root: string;
}

/** Params of `sightline/didChangeContext`, server to client. */
export interface DidChangeContextParams {
  /** The newest revision of what the editor shows. */
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
  /** All editors on the screen. */
  editors: VisibleEditor[];
}

/** Params of `sightline/didCreateCheckpoint`. */
export interface DidCreateCheckpointParams {
  /** The checkpoint. */
  checkpoint: Checkpoint;
}

/** Params of `textDocument/didFocus`: the active editor. */
export interface DidFocusParams {
  /** The focused document; absent when no editor has the focus. */
  textDocument?: FocusedDocument;
}

/** Params of `sightline/diffCheckpoints`. */
export interface DiffCheckpointsParams {
  /**
   * Also give the contents.
   * Default: `false`.
   */
  contents?: boolean;
  /** The older side: id of a checkpoint. */
  from: string;
  /**
   * Also give the differences as unified text, in `text`.
   * Default: `false`.
   */
  patch?: boolean;
  /** Only these paths and what is below them; all when absent. */
  paths?: string[];
  /** The newer side; the workspace as it is now when absent. */
  to?: string;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/diffCheckpoints`. */
export interface DiffCheckpointsResult {
  /** The files that differ, in order of path. */
  files: FileDifference[];
  /** The differences as unified text, when that was wanted. */
  text?: string;
}

/** How a file differs. */
export type DifferenceStatus =
  /** It is new. */
  | "added"
  /** Its content, or whether it may be executed. */
  | "modified"
  /** It is gone. */
  | "deleted"
  /** It is elsewhere, its content the same or similar. */
  | "renamed"
  /** A file became a link, or a link a file; or it became neither. */
  | "typeChanged";

/** Params of `sightline/environmentDetails`. */
export interface EnvironmentDetailsParams {
  /**
   * Mark terminal output and recently modified files as delivered; false is a pure peek.
   * Default: `true`.
   */
  consume?: boolean;
  /**
   * Add the file list, the workspace configuration and the command line tools.
   * Default: `false`.
   */
  includeFiles?: boolean;
  /**
   * Entries of the file list at most.
   * Default: `200`.
   */
  maxFiles?: number;
  /**
   * The agent's mode.
   * Default: `"act"`.
   */
  mode?: Mode;
  /** The model, for the size of its context window. */
  model?: ModelRef;
  /**
   * The time to print, milliseconds since the Unix epoch, for reproducible output; the
   * server's clock when absent.
   */
  now?: number;
  /** Only these sections; they come in protocol order, whatever order they have here. */
  sections?: SectionId[];
  /** Only sections that changed since this revision (from an earlier result), and the time. */
  sinceRevision?: number;
  /** Id of the task whose recently modified files are wanted. */
  taskId?: string;
  /** IANA name of the time zone to print, for reproducible output; the server's when absent. */
  timeZone?: string;
  /** What the last request to the model used. */
  usage?: Usage;
}

/** Result of `sightline/environmentDetails`. */
export interface EnvironmentDetailsResult {
  /** Revision of what was shown, for `sinceRevision`. */
  revision: number;
  /** Its sections, in order. */
  sections: Section[];
  /** The whole block, tags included. */
  text: string;
  /** Estimated tokens of `text`. */
  tokens: number;
}

/** One record of the environment tracker. */
export interface EnvironmentEntry {
  /** Version of this server (the key is Cline's). */
  cline_version: string;
  /** The editor's name. */
  host_name: string;
  /** The editor's version. */
  host_version: string;
  /** `x64`, `arm64`, ... */
  os_arch: string;
  /** `linux`, `darwin`, `win32`, ... */
  os_name: string;
  /** The system's release. */
  os_version: string;
  /** When, milliseconds since the Unix epoch. */
  ts: number;
}

/** The environment block. */
export interface EnvironmentSettings {
  /**
   * Denied entries of file lists: left out and counted, or shown with a lock.
   * Default: `"hide"`.
   */
  ignoredFiles?: IgnoredFiles;
  /**
   * Open files outside every workspace folder: left out, or shown.
   * Default: `"hide"`.
   */
  outsideFiles?: OutsideFiles;
  /** Switches and budgets, by the name of a section: `openTabs`, `files`, ... */
  sections?: { [key in SectionId]?: SectionSettings };
}

/** The `data` of an error answer. */
export interface ErrorData {
  /** The stable kind. */
  kind: ErrorKind;
  /** The path in question, when there is one. */
  path?: string;
  /** The rule that denied, when one did. */
  rule?: AccessRule;
}

/** What went wrong, for programs. The message of the error is for people. */
export type ErrorKind =
  /** A parameter is missing, ill-typed or makes no sense. */
  | "invalidParams"
  /** The named thing does not exist. */
  | "notFound"
  /** The rules forbid it. */
  | "accessDenied"
  /** Something changed meanwhile. */
  | "conflict"
  /** Another operation holds what is needed. */
  | "busy"
  /** The client cancelled the request. */
  | "cancelled"
  /** Understood, but not for this kind of thing. */
  | "unsupported"
  /** The server's own data could not be read or written. */
  | "storage"
  /** Over a limit. */
  | "tooLarge"
  /** `initialize` has not been answered yet. */
  | "notInitialized"
  /** A defect of the server. */
  | "internal";

/** A file that differs. */
export interface FileDifference {
  /** Lines that are new; 0 when binary. */
  additions: number;
  /** The new text, when contents were wanted. */
  after?: string;
  /** The old text, when contents were wanted. */
  before?: string;
  /** One of the sides is no text. */
  binary: boolean;
  /** Lines that are gone; 0 when binary. */
  deletions: number;
  /** git's mode after. */
  newMode?: string;
  /** git's mode before, as `100644`. */
  oldMode?: string;
  /** Where it was, when it is elsewhere now. */
  oldPath?: string;
  /**
   * Why contents that were wanted are not here; also without that, why the
   * file was not compared.
   */
  omitted?: string;
  /** Where it is, or was when it is gone: relative to a workspace folder. */
  path: string;
  /** True when a name is not UTF-8 and `path` and `oldPath` are percent-encoded. */
  pathEncoded?: boolean;
  /** How it differs. */
  status: DifferenceStatus;
  /** The file, to be opened. */
  uri: string;
}

/** One entry of a listing. */
export interface FileEntry {
  /**
   * `denied` entries are present only with the setting
   * `environment.ignoredFiles: "lock"`.
   */
  access: AccessKind;
  /** What it is. */
  kind: FileKind;
  /** Path relative to the workspace root, with `/`, without a trailing slash. */
  path: string;
  /** True when the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
}

/** What an entry of a listing is. */
export type FileKind =
  /** A regular file (or anything that is none of the other two). */
  | "file"
  /** A directory. */
  | "directory"
  /** A symbolic link; never followed. */
  | "symlink";

/**
 * One record of the file tracker, with Cline's field names.
 *
 * Dates are milliseconds since the Unix epoch. On the wire an unknown date is
 * left out; in the stored file it is `null`, as Cline writes it.
 */
export interface FileMetadataEntry {
  /** When the agent last changed it, milliseconds since the Unix epoch. */
  cline_edit_date?: number;
  /** When the agent last read it, milliseconds since the Unix epoch. */
  cline_read_date?: number;
  /** Path relative to the workspace root. */
  path: string;
  /** What made the record. */
  record_source: FileOperation;
  /** Whether this is the newest entry of its path, or a newer one replaced it. */
  record_state: RecordState;
  /** When the user last changed it, milliseconds since the Unix epoch. */
  user_edit_date?: number;
}

/** What happened to a file. */
export type FileOperation =
  /** The agent read it. */
  | "read_tool"
  /** The user changed it. */
  | "user_edited"
  /** The agent changed it. */
  | "cline_edited"
  /** The user mentioned it and its text was sent. */
  | "file_mentioned";

/** The document that has the focus. */
export interface FocusedDocument {
  /** Its URI. */
  uri: string;
}

/** One of the checkpoints that were taken together. */
export interface GroupMember {
  /** Its checkpoint. */
  id: string;
  /** URI of the workspace folder. */
  root: string;
}

/** What to do with denied entries in file lists. */
export type IgnoredFiles =
  /** Leave them out; one closing line counts them. */
  | "hide"
  /** Show them with a lock mark. */
  | "lock";

/** How much of the conversation after its first two messages stays. */
export type Keep =
  /** Nothing. */
  | "none"
  /** The last two messages. */
  | "lastTwo"
  /** About half. */
  | "half"
  /** About a quarter. */
  | "quarter";

/** A file whose text goes with a summary. */
export interface KeyFile {
  /** Lines of it that are shown. */
  lines: number;
  /** The file, as results name it. */
  path: string;
  /** Why it was chosen. */
  reason: KeyFileReason;
}

/** Why a file goes with a summary, in order of weight. */
export type KeyFileReason =
  /** It was changed in the conversation. */
  | "modified"
  /** It is mentioned several times. */
  | "mentioned"
  /** It was read lately. */
  | "recent";

/** Params of `sightline/listCheckpoints`. */
export interface ListCheckpointsParams {
  /** At most so many, the newest. */
  limit?: number;
  /** Only those of this workspace folder: its path, URI or name. */
  root?: string;
  /** Only those of this task. */
  taskId?: string;
}

/** Result of `sightline/listCheckpoints`. */
export interface ListCheckpointsResult {
  /** The checkpoints, the newest first. */
  checkpoints: Checkpoint[];
}

/** Params of `sightline/listFiles`. */
export interface ListFilesParams {
  /**
   * Stop after this many entries.
   * Default: `200`.
   */
  limit?: number;
  /**
   * The directory to list: a `file:` URI, absolute, or relative to a workspace root. The
   * first workspace root when absent.
   */
  path?: string;
  /**
   * Also list what is below its directories.
   * Default: `true`.
   */
  recursive?: boolean;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/listFiles`. */
export interface ListFilesResult {
  /** The entries, breadth first, each directory in byte order. */
  entries: FileEntry[];
  /** Entries left out because `.clineignore` denies them. */
  omitted: number;
  /** Links left out because they lead outside the workspace folders. */
  outside?: number;
  /** The list as the `files` section of the environment block prints it. */
  text: string;
  /** True when the list stopped at the limit or at its time budget. */
  truncated: boolean;
}

/** Params of `sightline/listTasks`. */
export interface ListTasksParams {
  /** Tasks at most; all when absent. */
  limit?: number;
}

/** Result of `sightline/listTasks`. */
export interface ListTasksResult {
  /** The tasks, last updated first. */
  tasks: TaskSummary[];
}

/** Params of `sightline/loadTask`. */
export interface LoadTaskParams {
  /** Id of the task. */
  taskId: string;
}

/** Result of `sightline/loadTask`. */
export interface LoadTaskResult {
  /** The edits made to what is sent, in the form of Cline's `context_history.json`. */
  contextHistory: unknown[];
  /**
   * The messages left out of requests: first and last index, both included.
   * `[2, 1]` is none.
   */
  deletedRange: number[];
  /** The whole conversation, since its last compaction if there was one. */
  messages: Message[];
  /** What is known of the task. */
  metadata: TaskMetadata;
  /** What reading the log found. */
  recovered: Recovered;
}

/** How much is written to the log. */
export type LogLevel =
  /** Nothing. */
  | "off"
  /** Failures. */
  | "error"
  /** Failures and what looks wrong. */
  | "warn"
  /** Also what happens, in a few lines. */
  | "info"
  /** Also every request. */
  | "debug"
  /** Everything. */
  | "trace";

/** What the server writes to its log. */
export interface LogSettings {
  /** Write to this file instead of standard error. Read at start only. */
  file?: string;
  /**
   * How much is written.
   * Default: `"warn"`.
   */
  level?: LogLevel;
}

/** A message in the form of Anthropic's API. Other keys and kinds of blocks are allowed and come back untouched. */
export interface Message {
  /** A string, or a list of content blocks. */
  content: unknown;
  /** `user` or `assistant`. */
  role: string;
  [key: string]: unknown;
}

/** The new text of one block. */
export interface MessageEdit {
  /** Index of the block in the message's content. */
  block: number;
  /** Index of the message in the whole conversation. */
  message: number;
  /** Its text, or of a tool result the text of its first block. */
  text: string;
}

/** Which messages are shown: the newest that meet all of these. */
export interface MessageFilter {
  /** Not older than this many milliseconds; messages without a `ts` have no age. */
  maxAge?: number;
  /** Messages at most. */
  maxMessages?: number;
  /** Tokens of all of them at most. */
  maxTokens?: number;
}

/** What is recorded beside a message. */
export interface MessageMeta {
  /** The agent's working directory; the first workspace folder when absent. */
  cwd?: string;
  /** The branch checked out there; looked up when absent. */
  gitBranch?: string;
  /**
   * When the messages came, milliseconds since the Unix epoch; the server's
   * clock when absent.
   */
  now?: number;
  /** The client's session; that of the server when absent. */
  sessionId?: string;
  /**
   * The version of the client that writes; the one it named itself with, or
   * that of the server, when absent.
   */
  version?: string;
}

/** A message that is sent in another form. */
export interface MessageRepair {
  /** Index of the message in the whole conversation. */
  message: number;
  /** What to send in its place; its edits are in it. */
  replacement: Message;
}

/** The agent's mode. */
export type Mode =
  /** The agent may change things. */
  | "act"
  /** The agent only plans. */
  | "plan";

/** A model and what the client knows about it. */
export interface ModelInfo {
  /** Size of the context window in tokens. */
  contextWindow?: number;
  /** The model's id. */
  id: string;
  /** The provider's id; `openai` is any OpenAI-compatible endpoint. */
  provider?: string;
}

/** A model: its id, or the id with what is known about it. */
export type ModelRef = string | ModelInfo;

/** The context window of a model. */
export interface ModelSettings {
  /** All of it, in tokens. */
  contextWindow?: number;
  /**
   * What may be used before something is taken out, in tokens; decided from
   * the window when absent.
   */
  usableTokens?: number;
}

/** One record of the model tracker. */
export interface ModelUsageEntry {
  /** `act` or `plan`. */
  mode: string;
  /** The model's id. */
  model_id: string;
  /** The provider's id. */
  model_provider_id: string;
  /** When, milliseconds since the Unix epoch. */
  ts: number;
}

/** Texts put in place of what was taken out of a conversation. */
export interface NoticeSettings {
  /** In place of an older read of a file that was read again. */
  duplicateFileRead?: string;
  /** As the result of a tool call that has none. */
  missingToolResult?: string;
  /** In the text of an assistant message, once something was left out. */
  truncation?: string;
}

/** What to do with open files outside every workspace folder. */
export type OutsideFiles =
  /** Leave them out. */
  | "hide"
  /** Show them. */
  | "show";

/** Whether files outside every workspace folder may be read. */
export type OutsideWorkspace =
  /** They may not. */
  | "deny"
  /** They may. */
  | "allow";

/** The verdict on one path. */
export interface PathAccess {
  /** The verdict. */
  access: AccessKind;
  /** The path as it was asked. */
  path: string;
  /** Why, when no rule decided (a path that makes no sense, rules that cannot be read). */
  reason?: string;
  /** The rule that decided, when a rule did. */
  rule?: AccessRule;
}

/** Params of `sightline/planCompaction`. */
export interface PlanCompactionParams {
  /** Which messages the prompt shows, besides what fits the model. */
  filter?: MessageFilter;
  /** What the summary should heed, in the user's words. */
  instructions?: string;
  /**
   * Files whose text is kept at hand at most.
   * Default: `5`.
   */
  maxFiles?: number;
  /**
   * Lines of each of them at most.
   * Default: `1000`.
   */
  maxLinesPerFile?: number;
  /** The whole conversation. When absent, the stored one of `taskId`. */
  messages?: Message[];
  /** The model the conversation is for, and the prompt. */
  model: ModelRef;
  /**
   * The newest part that stays as it is: a fraction of the messages.
   * Default: `0.2`.
   */
  retainRatio?: number;
  /** Id of the task whose stored conversation is meant. */
  taskId?: string;
}

/** Result of `sightline/planCompaction`. */
export interface PlanCompactionResult {
  /** The files whose text goes with the summary. */
  files: KeyFile[];
  /**
   * Is the model's window so full that compacting is worth it, and is there
   * anything to compact besides an earlier summary?
   */
  needed: boolean;
  /** What to send to a model, as the only message. */
  prompt: string;
  /** Index of the first message that stays as it is. */
  retainFrom: number;
  /** Tokens of what would be sent now. */
  tokens: number;
}

/** A position in text, as in LSP. */
export interface Position {
  /** Offset in the line, from 0, in the negotiated position encoding. */
  character: number;
  /** Line, from 0. */
  line: number;
}

/** Params of `sightline/previewRestore`. */
export interface PreviewRestoreParams {
  /**
   * Also the checkpoints of other workspace folders taken with it; a
   * `conflict` when one of those folders is not open.
   * Default: `false`.
   */
  allRoots?: boolean;
  /**
   * The checkpoint; the word `HEAD ` in front of it is passed over. With `undo` an
   * undo point, or `last` for that of the last restore.
   */
  id: string;
  /** Only these paths and what is below them; all when absent. */
  paths?: string[];
  /**
   * Preview `sightline/undoRestore`: all that it would change, in every folder.
   * Default: `false`.
   */
  undo?: boolean;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/previewRestore`. */
export interface PreviewRestoreResult {
  /** What would be changed. */
  changes: RestoreChange[];
  /** What differs and would be left alone. */
  conflicts: RestoreConflict[];
  /** With `undo`: the task whose conversation would be put back as well. */
  taskId?: string;
  /** Names this preview: a restore with it does just this, or nothing. */
  token: string;
  /** With `undo`: the undo point. */
  undoId?: string;
}

/** What a request to a model used, and when it was sent. */
export interface PreviousRequest {
  /** Tokens read from the prompt cache. */
  cacheReads?: number;
  /** Tokens written to the prompt cache. */
  cacheWrites?: number;
  /** Input tokens. */
  tokensIn?: number;
  /** Output tokens. */
  tokensOut?: number;
  /** When it was sent, milliseconds since the Unix epoch. Edits made now carry this time. */
  ts: number;
}

/** The token of `$/progress`: a string or a whole number. */
export type ProgressToken = string | number;

/** Params of `sightline/pruneCheckpoints`. Without any limit nothing is removed. */
export interface PruneCheckpointsParams {
  /**
   * Only tell what would be removed.
   * Default: `false`.
   */
  dryRun?: boolean;
  /** Keep the newest so many of each workspace folder; undo points are not counted. */
  keep?: number;
  /** Remove the oldest until each workspace folder's take so many bytes. */
  maxBytes?: number;
  /** Remove those taken before this time, milliseconds since the Unix epoch. */
  olderThan?: number;
  /** Only this workspace folder: its path, URI or name. */
  root?: string;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/pruneCheckpoints`. */
export interface PruneCheckpointsResult {
  /** With `dryRun`: the ids of those that would be removed, the newest first. */
  checkpoints?: string[];
  /** Bytes on disk given back; with `dryRun` an estimate. */
  freedBytes: number;
  /** Checkpoints that were removed; with `dryRun` those that would be. */
  removed: number;
}

/** A range of text, as in LSP. */
export interface Range {
  /** Position after the last. */
  end: Position;
  /** First position. */
  start: Position;
}

/** Params of `sightline/readFile`. */
export interface ReadFileParams {
  /** Last line wanted, inclusive. */
  endLine?: number;
  /** Return at most this many bytes of UTF-8 text; cut at a character. */
  maxBytes?: number;
  /** The file: a `file:` URI, absolute, or relative to a workspace root. */
  path: string;
  /** First line wanted, from 1. */
  startLine?: number;
  /** Also record the read for the task of this id, as `sightline/trackFile` does. */
  taskId?: string;
}

/** Result of `sightline/readFile`. */
export interface ReadFileResult {
  /** The encoding the bytes on disk were read as, when it is not UTF-8. */
  encoding?: string;
  /** True when the editor holds unsaved changes of this file. */
  isDirty: boolean;
  /** Where it came from. */
  source: TextSource;
  /** The text, or the lines asked for, line endings as they are. */
  text: string;
  /** Estimated tokens of `text`. */
  tokens: number;
  /** Lines of the whole file; a last line without line ending counts. */
  totalLines: number;
  /** True when `maxBytes` cut the text. */
  truncated: boolean;
}

/** Params of `sightline/recordEnvironment`. */
export interface RecordEnvironmentParams {
  /** The time to record, milliseconds since the Unix epoch; the server's clock when absent. */
  now?: number;
  /** Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`. */
  taskId: string;
}

/** Params of `sightline/recordModel`. */
export interface RecordModelParams {
  /** The agent's mode. */
  mode: Mode;
  /** The model's id. */
  modelId: string;
  /** The time to record, milliseconds since the Unix epoch; the server's clock when absent. */
  now?: number;
  /** The provider's id. */
  providerId: string;
  /** Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`. */
  taskId: string;
}

/** Whether an entry is the newest of its path. */
export type RecordState =
  /** The newest. */
  | "active"
  /** Replaced by a newer entry. */
  | "stale";

/** Result of `sightline/recordModel` and `sightline/recordEnvironment`. */
export interface RecordedResult {
  /** False when equal to the last record. */
  recorded: boolean;
}

/** What reading a log found. */
export interface Recovered {
  /** Lines that made no sense and are left out; they stay in the file. */
  dropped: number;
  /** Lines that were read. */
  lines: number;
}

/** Whether commands may read whole folders that hold denied files. */
export type RecursiveReaders =
  /** Deny them. */
  | "deny"
  /** Allow them. */
  | "allow";

/** What a restore does to a path. */
export type RestoreAction =
  /** It gets the content, mode or type it had. */
  | "write"
  /** It goes. */
  | "delete";

/** Something a restore would change. */
export interface RestoreChange {
  /** What would be done. */
  action: RestoreAction;
  /**
   * True when this is an undo point and the path was changed after the restore: the
   * undo takes that change away too.
   */
  changedSince?: boolean;
  /** Path relative to a workspace folder. */
  path: string;
  /** True when the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Why, for people. */
  reason: string;
  /** The file, to be opened. */
  uri: string;
}

/** Params of `sightline/restoreCheckpoint`. */
export interface RestoreCheckpointParams {
  /**
   * Also the checkpoints of other workspace folders taken with it; a
   * `conflict` when one of those folders is not open.
   * Default: `false`.
   */
  allRoots?: boolean;
  /**
   * Also replace unsaved text of open documents.
   * Default: `false`.
   */
  force?: boolean;
  /** The checkpoint; the word `HEAD ` in front of it is passed over. */
  id: string;
  /**
   * What is restored.
   * Default: `"files"`.
   */
  mode?: RestoreMode;
  /** Only these paths and what is below them; all when absent. */
  paths?: string[];
  /** The task; that of the checkpoint when absent. */
  taskId?: string;
  /**
   * The preview this must still be true of; else nothing is done, and the
   * error is a `conflict`.
   */
  token?: string;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/restoreCheckpoint` and `sightline/undoRestore`. */
export interface RestoreCheckpointResult {
  /** What differs and was left alone; absent when nothing was. */
  conflicts?: RestoreConflict[];
  /** What became of each path that was to be changed. */
  outcomes: RestoreOutcome[];
  /** What became of the conversation, when that was restored. */
  task?: RestoredTask;
  /**
   * The checkpoint taken just before: give it to `sightline/undoRestore`. Absent when
   * there was nothing to do: the undo of the restore before stays the last one.
   */
  undoId?: string;
}

/** Something that differs and is left alone. */
export interface RestoreConflict {
  /** Path relative to a workspace folder. */
  path: string;
  /** True when the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Why, for people. */
  reason: string;
  /** The file, to be opened. */
  uri: string;
}

/** What is restored. */
export type RestoreMode =
  /** The files. */
  | "files"
  /**
   * The conversation of the task, to what it was, also on a branch that was
   * left since; a `conflict` when its log does not hold that.
   */
  | "task"
  /** Both. */
  | "filesAndTask";

/** What became of a path. */
export interface RestoreOutcome {
  /** What was to be done. */
  action: RestoreAction;
  /** Why not. */
  error?: string;
  /** Was it done? */
  ok: boolean;
  /** Path relative to a workspace folder. */
  path: string;
  /** True when the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** The file, to be opened. */
  uri: string;
}

/** A conversation that was taken back, or forth again. */
export interface RestoredTask {
  /** Messages its conversation has now. */
  messages: number;
  /** The task. */
  taskId: string;
}

/** Params of `sightline/resumeTask`. */
export interface ResumeTaskParams {
  /** The time it is resumed, milliseconds since the Unix epoch; the server's clock when absent. */
  now?: number;
  /** Id of the task; the last updated one of this workspace when absent. */
  taskId?: string;
}

/** Result of `sightline/resumeTask`. */
export interface ResumeTaskResult {
  /** Tool calls that have no result in the log, by the id of their call. */
  interruptedTools: string[];
  /**
   * The messages to go on with: what the model was sent last, every tool
   * call answered. The client adds `resumption` and the user's words.
   */
  messages: Message[];
  /**
   * The text that tells the model that and how it was interrupted. It begins
   * with `[TASK RESUMPTION]`.
   */
  resumption: string;
  /** Id of the task. */
  taskId: string;
}

/** Params of `sightline/rollbackHistory`. */
export interface RollbackHistoryParams {
  /** The edits. When absent, the stored ones of `taskId`. */
  contextHistory?: unknown[];
  /** Id of the task whose stored edits are meant; the outcome is stored too. */
  taskId?: string;
  /** Edits newer than this go, milliseconds since the Unix epoch. */
  timestamp: number;
}

/** Result of `sightline/rollbackHistory`. */
export interface RollbackHistoryResult {
  /** The edits that are left. */
  contextHistory: unknown[];
}

/** One section of the block. */
export interface Section {
  /** True when the client did not send this and it was derived from open documents. */
  derived?: boolean;
  /** The heading, without `# `. */
  heading: string;
  /** Which section this is. */
  id: SectionId;
  /** Entries left out: denied, outside, or over the section's budget. */
  omitted: number;
  /** The body. */
  text: string;
  /** Estimated tokens of heading and body. */
  tokens: number;
}

/** The sections of the block, in the order they are printed. */
export type SectionId =
  /** The workspace folders, when there are several. */
  | "workspaceRoots"
  /** Files visible in an editor. */
  | "visibleFiles"
  /** Files open in a tab. */
  | "openTabs"
  /** Terminals with a running command. */
  | "runningTerminals"
  /** Idle terminals with unread output. */
  | "inactiveTerminals"
  /** Files changed since the agent last saw them. */
  | "recentlyModified"
  /** Date, time and zone. */
  | "currentTime"
  /** The file list. */
  | "files"
  /** Roots, git remotes and commits, as JSON. */
  | "workspaceConfiguration"
  /** Command line tools found on the search path. */
  | "cliTools"
  /** Open files with unsaved changes. */
  | "unsavedFiles"
  /** How full the context window is. */
  | "contextWindow"
  /** Plan or act. */
  | "mode";

/** One section of the block. */
export interface SectionSettings {
  /** False leaves the section out. */
  enabled?: boolean;
  /**
   * Cut the body of the section at this many estimated tokens, at whole lines.
   * The heading, and a line that counts what was cut, come on top.
   */
  maxTokens?: number;
}

/**
 * Settings of Sightline, as found in `initializationOptions`, in section
 * `sightline` of the editor's configuration and in `didChangeConfiguration`.
 */
export interface Settings {
  /** What an agent may see. */
  access?: AccessSettings;
  /** Checkpoints of the workspace. */
  checkpoints?: CheckpointSettings;
  /** Commands run through `workspace/executeCommand`. */
  commands?: CommandSettings;
  /** Conversations: truncation and its notices. */
  conversation?: ConversationSettings;
  /** What is marked in open documents. */
  diagnostics?: DiagnosticSettings;
  /** The environment block. */
  environment?: EnvironmentSettings;
  /** What the server writes to its log. */
  log?: LogSettings;
  /**
   * Send the notifications of the server, such as `sightline/didChangeContext`.
   * Default: `false`.
   */
  notifications?: boolean;
  /** Where the server keeps its data. */
  storage?: StorageSettings;
  /** Stored tasks: how many are kept. */
  tasks?: TaskSettings;
}

/** Something that is not in a checkpoint. */
export interface SkippedPath {
  /** Path below the workspace folder of the checkpoint, with `/`. */
  path: string;
  /** True when the name is not UTF-8 and `path` is percent-encoded. */
  pathEncoded?: boolean;
  /** Why, for people. */
  reason: string;
}

/** Where the server keeps its data. */
export interface StorageSettings {
  /** Absolute path of the data directory; the platform's place when absent. */
  path?: string;
}

/** What `sightline/truncateHistory` may do. */
export type Strategy =
  /**
   * When the window is full, replace duplicate file reads; when that saves
   * too little, leave messages out.
   */
  | "auto"
  /** Only apply the range and the edits as they are. */
  | "apply"
  /** Only replace duplicate file reads, full or not. */
  | "deduplicate";

/** One tab. */
export interface Tab {
  /** Number of the tab group or window column. */
  group?: number;
  /** True for the tab in front of its group. */
  isActive?: boolean;
  /** True when it holds unsaved changes. */
  isDirty?: boolean;
  /** True when the user pinned it. */
  isPinned?: boolean;
  /** True for a preview that the next opened file replaces. */
  isPreview?: boolean;
  /** URI of the document in the tab. */
  uri: string;
}

/** Params of `sightline/taskContext`. */
export interface TaskContextParams {
  /** Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`. */
  taskId: string;
}

/**
 * Result of `sightline/taskContext`: the agent's picture of the files, and
 * where it no longer holds.
 */
export interface TaskContextResult {
  /** Files whose content differs from what the agent last saw. */
  changed: string[];
  /** Files the agent saw and that are gone. */
  deleted: string[];
  /** All environment records, oldest first. */
  environments: EnvironmentEntry[];
  /** All file records, oldest first. */
  files: FileMetadataEntry[];
  /** All model records, oldest first. */
  models: ModelUsageEntry[];
}

/** What is known of a task beside its conversation. */
export interface TaskMetadata {
  /** How often the conversation was compacted. */
  compactions: number;
  /** When its first message came, milliseconds since the Unix epoch. */
  createdAt: number;
  /** The agent's working directory, as recorded last. */
  cwd?: string;
  /** The environments it ran in. */
  environments: EnvironmentEntry[];
  /** What the agent knows of files, as in Cline's `task_metadata.json`. */
  files: FileMetadataEntry[];
  /** The branch checked out there, as recorded last. */
  gitBranch?: string;
  /** The models used. */
  models: ModelUsageEntry[];
  /** Its title: the beginning of the first text the user wrote. */
  title: string;
  /** When its last one came, milliseconds since the Unix epoch. */
  updatedAt: number;
}

/**
 * Stored tasks: how many are kept. The last updated stay; nothing is deleted
 * by itself while all of these are absent.
 */
export interface TaskSettings {
  /** Delete tasks not updated for this many days. */
  maxAgeDays?: number;
  /** Keep tasks up to this many bytes in all. */
  maxBytes?: number;
  /** Keep this many tasks. */
  maxCount?: number;
}

/** One task of a list. */
export interface TaskSummary {
  /** When its first message came, milliseconds since the Unix epoch. */
  createdAt: number;
  /** The agent's working directory, as recorded last. */
  cwd?: string;
  /** Messages of the conversation in all. */
  messageCount: number;
  /** Its id. */
  taskId: string;
  /** Its title: the beginning of the first text the user wrote. */
  title: string;
  /** When its last one came, milliseconds since the Unix epoch. */
  updatedAt: number;
}

/** One terminal. */
export interface Terminal {
  /** The command that runs or ran last. */
  command?: string;
  /** Its working directory. */
  cwd?: string;
  /** Exit code of the last command. */
  exitCode?: number;
  /** The client's id of the terminal; a number is taken as its decimal form. */
  id: string;
  /** True while a command is running. */
  isBusy: boolean;
  /** Its title. */
  name?: string;
  /** Output since the last notification; appended to what is unread. */
  newOutput?: string;
}

/** Where the text of a `readFile` answer came from. */
export type TextSource =
  /** The editor's buffer. */
  | "buffer"
  /** The file on disk. */
  | "disk";

/** Tokens of the messages before and after. */
export interface TokenChange {
  /** Tokens of what is to be sent now. */
  after: number;
  /** Tokens of what would have been sent without this call. */
  before: number;
}

/** Params of `sightline/trackFile`. */
export interface TrackFileParams {
  /** With `cline_edited`: SHA-256 (hex) of the content the agent wrote. */
  contentHash?: string;
  /** The time to record, milliseconds since the Unix epoch; the server's clock when absent. */
  now?: number;
  /** What happened to it. */
  operation: FileOperation;
  /** The file: a `file:` URI, absolute, or relative to a workspace root. */
  path: string;
  /** Id of the task: 1 to 128 letters, digits, `.`, `_` or `-`, not beginning with `.`. */
  taskId: string;
}

/** Result of `sightline/trackFile`. */
export interface TrackFileResult {
  /** The entry just made. */
  entry: FileMetadataEntry;
}

/** Params of `sightline/truncateHistory`. */
export interface TruncateHistoryParams {
  /**
   * The edits made so far: the `contextHistory` of the last result, or the
   * content of Cline's `context_history.json`.
   */
  contextHistory?: unknown[];
  /**
   * Also count the tokens before and after.
   * Default: `false`.
   */
  countTokens?: boolean;
  /** The messages left out so far: first and last index, both included. `[2, 1]` is none. */
  deletedRange?: number[];
  /** Truncate by this amount at once, whatever was used and whatever `strategy` says. */
  keep?: Keep;
  /** The whole conversation. When absent, the stored one of `taskId`. */
  messages?: Message[];
  /** The model the next request goes to. */
  model: ModelRef;
  /** What the last request used, and when it was sent; without it nothing is full. */
  previousRequest?: PreviousRequest;
  /**
   * What comes back.
   * Default: `"messages"`.
   */
  reply?: TruncateReply;
  /**
   * What may be done.
   * Default: `"auto"`.
   */
  strategy?: Strategy;
  /** Id of the task whose stored conversation is meant; the outcome is stored too. */
  taskId?: string;
  /** Act when this fraction of the window is used, if that is less than its usable size. */
  thresholdPercentage?: number;
}

/** Result of `sightline/truncateHistory`. */
export interface TruncateHistoryResult {
  /**
   * The fraction of characters that replacing duplicate file reads saved in
   * this call; negative when the notices are longer than the files.
   */
  charactersSaved: number;
  /** The edits made so far, to be given back next time. */
  contextHistory: unknown[];
  /** Did this call make edits? */
  contextHistoryChanged: boolean;
  /** What was done. */
  decision: Decision;
  /** The messages to leave out: first and last index, both included. */
  deletedRange?: number[];
  /** With `reply: "edits"`: the texts to replace in messages that are not left out. */
  edits?: MessageEdit[];
  /** The messages to send. */
  messages?: Message[];
  /** With `strategy: "deduplicate"`: was too little saved? */
  needToTruncate?: boolean;
  /**
   * With `reply: "edits"`: messages to send in a form of their own, because
   * their tool results had to be made to fit the tool calls.
   */
  repairs?: MessageRepair[];
  /** With `countTokens`: tokens before and after. */
  tokens?: TokenChange;
  /** Was the range decided anew? */
  updatedDeletedRange: boolean;
}

/** What `sightline/truncateHistory` returns. */
export type TruncateReply =
  /** The messages to send. */
  | "messages"
  /** What to change in the caller's own copy before sending it. */
  | "edits";

/** Params of `sightline/undoRestore`. */
export interface UndoRestoreParams {
  /**
   * Also replace unsaved text of open documents.
   * Default: `false`.
   */
  force?: boolean;
  /**
   * The preview of the undo point this must still be true of; else nothing is done,
   * and the error is a `conflict`.
   */
  token?: string;
  /** What the restore returned; the last restore when absent. */
  undoId?: string;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Tokens of one request to a model, as the provider reported them. */
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
  /** Only this workspace folder: its path, URI or name. */
  root?: string;
  /** Report `$/progress` under this token, as in LSP. */
  workDoneToken?: ProgressToken;
}

/** Result of `sightline/verifyCheckpoints`. */
export interface VerifyCheckpointsResult {
  /** Is every checkpoint whole? */
  ok: boolean;
  /** What is wrong, for people. */
  problems: string[];
}

/** One editor on the screen. */
export interface VisibleEditor {
  /** True for the editor with the focus. */
  isActive?: boolean;
  /** The selections; an empty range is a cursor. */
  selections?: Range[];
  /** URI of the document. */
  uri: string;
  /** The lines scrolled into view; several ranges when folds hide some. */
  visibleRanges?: Range[];
}
