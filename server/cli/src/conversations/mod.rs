//! `sightline history`, `tokens`, `task` and `compact`: conversations without an editor.
//!
//! Commands that work on a conversation read the params of their request from stdin and
//! print its result. With `--task` they build the params for a stored conversation.

mod task_files;

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use clap::Subcommand;
use sightline_base::{escape::one_line, limits::MAX_IMPORT_BYTES, plural::plural};
use sightline_conversation::compaction::readable;
use sightline_engine::{error::Error, params_compat, render::timeline::Clock};
use sightline_protocol::{
    checkpoint::ListCheckpointsParams,
    compaction::{ApplyCompactionParams, CompactionTrigger, PlanCompactionParams},
    conversation::RollbackHistoryParams,
    environment::ModelRef,
    error::ErrorKind,
    files::ReadFileParams,
    method::{
        ApplyCompaction, CountTokens, DeleteTask, ListCheckpoints, ListTasks, LoadTask,
        PlanCompaction, ReadFile, Request, ResumeTask, RollbackHistory, TruncateHistory,
    },
    task::{
        DeleteTaskParams, DeleteTaskResult, ListTasksParams, ListTasksResult, LoadTaskParams,
        ResumeTaskParams, TaskSummary,
    },
    tokens::CountTokensParams,
};

use super::{
    DONE, NEGATIVE, Workspace,
    checkpoints::{ConfirmArgs, Proceed, ask, size},
    offline, print, print_as, print_json, print_message,
    requests::Requests,
};

#[derive(Subcommand)]
pub(super) enum History {
    /// Choose which part of a conversation to send. Reads params of
    /// sightline/truncateHistory from standard input and prints its result.
    Truncate {
        #[command(flatten)]
        workspace: Workspace,
    },
    /// Roll back truncation decisions. Reads params of sightline/rollbackHistory from
    /// standard input, unless --task is given.
    Rollback {
        #[command(flatten)]
        workspace: Workspace,
        /// Stored task.
        #[arg(long, value_name = "ID", requires = "to")]
        task: Option<String>,
        /// Roll back decisions made after this time, in milliseconds since the Unix
        /// epoch.
        #[arg(long, value_name = "TIME", requires = "task")]
        to: Option<i64>,
    },
}

#[derive(clap::Args)]
pub(super) struct Tokens {
    #[command(flatten)]
    workspace: Workspace,
    /// Model to count for.
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Tokenizer encoding, instead of the model's.
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
    /// Files that agents may see; standard input by default.
    #[arg(value_name = "FILE")]
    files: Vec<String>,
}

#[derive(Subcommand)]
pub(super) enum Task {
    /// List stored tasks, most recently updated first.
    List {
        #[command(flatten)]
        workspace: Workspace,
        /// Maximum number of tasks.
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Print a stored conversation as text, with long results shortened, or with --json as the
    /// complete result of sightline/loadTask.
    Show {
        #[command(flatten)]
        workspace: Workspace,
        /// Task id.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Export a stored task as JSON to a file or to standard output. It can be imported again.
    Export {
        #[command(flatten)]
        workspace: Workspace,
        /// Task id.
        #[arg(value_name = "ID")]
        id: String,
        /// Output file; it must not exist.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Include records of files that access rules deny.
        #[arg(long)]
        all: bool,
    },
    /// Import a task directory of Cline 3 or an exported file. The source is not changed,
    /// and existing tasks are not overwritten.
    Import {
        #[command(flatten)]
        workspace: Workspace,
        /// Directory or file to import.
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Id of the new task; by default, the id in the source.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Print the text that lets a model continue an interrupted task, or with --json the
    /// result of sightline/resumeTask.
    Resume {
        #[command(flatten)]
        workspace: Workspace,
        /// Task id; by default, the most recently updated task of this workspace.
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Delete stored tasks and their checkpoints. Shows them and asks first.
    Delete {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        confirm: ConfirmArgs,
        /// Task ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

#[derive(Subcommand)]
pub(super) enum Compact {
    /// Print the prompt that asks a model for a summary, or with --json the result of
    /// sightline/planCompaction. Reads its params from standard input, unless --task is
    /// given. Exits with 1 if compaction is not needed yet.
    Plan {
        #[command(flatten)]
        workspace: Workspace,
        /// Stored task.
        #[arg(long, value_name = "ID", requires = "model")]
        task: Option<String>,
        /// Model of the conversation.
        #[arg(long, value_name = "ID", requires = "task")]
        model: Option<String>,
        /// Instructions for the summary.
        #[arg(long, value_name = "TEXT", requires = "task")]
        instructions: Option<String>,
    },
    /// Replace older messages with a summary. Reads params of sightline/applyCompaction
    /// from standard input or, with --task, the summary. If the summary is empty, keeps
    /// the newest 30% of the conversation.
    Apply {
        #[command(flatten)]
        workspace: Workspace,
        /// Stored task.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Index of the first message to keep, from the plan.
        #[arg(long, value_name = "INDEX", requires = "task")]
        retain_from: Option<u64>,
        /// Reason for the missing summary; standard input is then not read.
        #[arg(long, value_name = "TEXT", requires = "task")]
        error: Option<String>,
    },
}

pub(super) fn history(command: History) -> Result<i32, Error> {
    match command {
        History::Truncate { workspace } => {
            let params = stdin_params::<TruncateHistory>()?;
            print_json(&Requests::offline(&workspace).call::<TruncateHistory>(params)?)?;
        }
        History::Rollback {
            workspace,
            task,
            to,
        } => {
            let params = match (task, to) {
                (Some(task), Some(timestamp)) => RollbackHistoryParams {
                    context_history: None,
                    task_id: Some(task),
                    timestamp: timestamp.into(),
                },
                _ => stdin_params::<RollbackHistory>()?,
            };
            print_json(&Requests::offline(&workspace).call::<RollbackHistory>(params)?)?;
        }
    }
    Ok(DONE)
}

pub(super) fn tokens(arguments: Tokens) -> Result<i32, Error> {
    let requests = Requests::offline(&arguments.workspace);
    let mut names = Vec::new();
    let mut texts = Vec::new();
    for file in &arguments.files {
        // Denied files are not opened, even though only a count is printed.
        let params = ReadFileParams {
            path: offline::absolute(file)?,
            max_bytes: Some(u32::MAX.into()),
            ..ReadFileParams::default()
        };
        let read = requests.call::<ReadFile>(params)?;
        if read.truncated {
            let message = format!("cannot count the tokens of {file}: it is too large");
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(file.clone()));
        }
        texts.push(read.text);
        names.push(file.as_str());
    }
    if arguments.files.is_empty() {
        texts.push(read_stdin()?);
        names.push("-");
    }
    let params = CountTokensParams {
        texts,
        model: arguments.model.map(ModelRef::Id),
        encoding: arguments.encoding,
        ..CountTokensParams::default()
    };
    let result = requests.call::<CountTokens>(params)?;
    print_as(&requests.workspace, &result, |result| {
        let lines = names.iter().zip(&result.items);
        let mut lines: String = lines
            .map(|(name, item)| format!("{item}\t{name}\n"))
            .collect();
        if names.len() > 1 {
            lines.push_str(&format!("{}\ttotal\n", result.tokens));
        }
        lines
    })?;
    if !result.exact && !requests.workspace.json {
        let (lower, upper) = (result.lower.unwrap_or(0), result.upper.unwrap_or(0));
        print_message(&format!(
            "estimated with {}; between {lower} and {upper} tokens",
            result.method
        ));
    }
    Ok(DONE)
}

pub(super) fn task(command: Task) -> Result<i32, Error> {
    match command {
        Task::List { workspace, limit } => list(&workspace, limit),
        Task::Show { workspace, id } => {
            let loaded =
                Requests::offline(&workspace).call::<LoadTask>(LoadTaskParams { task_id: id })?;
            if workspace.json {
                print_json(&loaded)?;
                return Ok(DONE);
            }
            let messages = loaded.messages.iter().filter_map(|raw| readable(&raw.0));
            let mut shown = format!("# {}\n", loaded.metadata.title);
            for (index, (role, text)) in messages.enumerate() {
                shown.push_str(&format!("\n## {}. {role}\n\n{text}\n", index + 1));
            }
            print(&shown)?;
            Ok(DONE)
        }
        Task::Export {
            workspace,
            id,
            output,
            all,
        } => {
            let text = task_files::export(&workspace, &id, all)?;
            match output {
                None => print(&text)?,
                Some(file) => write_new(&file, &text)?,
            }
            Ok(DONE)
        }
        Task::Import {
            workspace,
            path,
            id,
        } => {
            let imported = task_files::import(&workspace, &path, id.as_deref())?;
            print_as(&workspace, &imported, |imported| {
                let count = plural(imported.message_count, "message");
                format!("{}\t{count}\n", imported.task_id)
            })?;
            if !workspace.json {
                imported.problems.iter().for_each(|why| print_message(why));
            }
            Ok(DONE)
        }
        Task::Resume { workspace, id } => {
            let params = ResumeTaskParams {
                task_id: id,
                ..ResumeTaskParams::default()
            };
            let result = Requests::offline(&workspace).call::<ResumeTask>(params)?;
            if workspace.json {
                print_json(&result)?;
            } else {
                print(&format!("{}\n", result.resumption))?;
            }
            Ok(DONE)
        }
        Task::Delete {
            workspace,
            confirm,
            ids,
        } => {
            let requests = Requests::offline(&workspace);
            let tasks = find_tasks(&requests, &ids)?;
            match confirm.proceed()? {
                Proceed::Yes => {}
                Proceed::DryRun => return show_tasks(&workspace, tasks),
                Proceed::Ask => {
                    show_tasks(&workspace, tasks)?;
                    if !ask(
                        "These tasks and their checkpoints are deleted. This cannot be undone. ",
                    )? {
                        return Ok(NEGATIVE);
                    }
                }
            }
            let mut deleted = DeleteTaskResult::default();
            let (mut count, mut failed) = (0, None);
            for task_id in ids {
                let params = DeleteTaskParams { task_id };
                match requests.call::<DeleteTask>(params) {
                    Ok(result) => {
                        deleted.freed_bytes += result.freed_bytes;
                        count += 1;
                    }
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            // Also if one of them failed, since the others are gone.
            if count > 0 {
                print_as(&workspace, &deleted, |deleted| {
                    let (tasks, freed) = (plural(count, "task"), size(deleted.freed_bytes));
                    format!("{tasks} deleted, {freed} freed\n")
                })?;
            }
            failed.map_or(Ok(DONE), Err)
        }
    }
}

/// Returns the tasks with these ids. A task may have nothing but checkpoints left.
///
/// # Errors
/// `notFound` if one does not exist.
fn find_tasks(requests: &Requests, ids: &[String]) -> Result<Vec<TaskSummary>, Error> {
    let listed = requests
        .call::<ListTasks>(ListTasksParams::default())?
        .tasks;
    let find = |id: &String| {
        if let Some(task) = listed.iter().find(|task| task.task_id == *id) {
            return Ok(task.clone());
        }
        let params = ListCheckpointsParams {
            task_id: Some(id.clone()),
            ..ListCheckpointsParams::default()
        };
        let checkpoints = requests.call::<ListCheckpoints>(params)?.checkpoints;
        let newest = checkpoints.first().map(|newest| TaskSummary {
            task_id: id.clone(),
            updated_at: newest.created_at,
            title: "checkpoints only".to_owned(),
            ..TaskSummary::default()
        });
        newest.ok_or_else(|| {
            let id = one_line(id);
            let why =
                format!("task {id} has no stored conversation; list the tasks to see their ids");
            Error::new(ErrorKind::NotFound, why)
        })
    };
    ids.iter().map(find).collect()
}

fn show_tasks(workspace: &Workspace, tasks: Vec<TaskSummary>) -> Result<i32, Error> {
    print_as(workspace, &ListTasksResult { tasks }, |listed| {
        listed.tasks.iter().map(task_line).collect()
    })
}

/// Formats a task for a list.
fn task_line(task: &TaskSummary) -> String {
    format!(
        "{}\t{}\t{}\t{}\n",
        task.task_id,
        Clock::dated().time(task.updated_at),
        plural(task.message_count, "message"),
        task.title,
    )
}

fn list(workspace: &Workspace, limit: Option<u32>) -> Result<i32, Error> {
    let listed = Requests::offline(workspace).call::<ListTasks>(ListTasksParams { limit })?;
    if listed.tasks.is_empty() && !workspace.json {
        print_message("no stored tasks");
    }
    show_tasks(workspace, listed.tasks)
}

pub(super) fn compact(command: Compact) -> Result<i32, Error> {
    match command {
        Compact::Plan {
            workspace,
            task,
            model,
            instructions,
        } => {
            let params = match (task, model) {
                (Some(task), Some(model)) => PlanCompactionParams {
                    task_id: Some(task),
                    instructions,
                    ..PlanCompactionParams::new(ModelRef::Id(model))
                },
                _ => stdin_params::<PlanCompaction>()?,
            };
            let plan = Requests::offline(&workspace).call::<PlanCompaction>(params)?;
            if workspace.json {
                print_json(&plan)?;
            } else if plan.needed {
                print(&format!("{}\n", plan.prompt))?;
            } else {
                print_message("compaction is not needed yet");
            }
            Ok(if plan.needed { DONE } else { NEGATIVE })
        }
        Compact::Apply {
            workspace,
            task,
            retain_from,
            error,
        } => {
            let params = match task {
                None => stdin_params::<ApplyCompaction>()?,
                Some(task) => {
                    let summary = match error {
                        Some(_) => String::new(),
                        None => read_stdin()?,
                    };
                    ApplyCompactionParams {
                        task_id: Some(task),
                        summary: (!summary.trim().is_empty()).then_some(summary),
                        error,
                        retain_from,
                        trigger: CompactionTrigger::Manual,
                        ..ApplyCompactionParams::default()
                    }
                }
            };
            let result = Requests::offline(&workspace).call::<ApplyCompaction>(params)?;
            let done = print_as(&workspace, &result, |result| {
                let count = plural(result.messages.len(), "message");
                let (before, after) = (result.pre_tokens, result.post_tokens);
                format!("{count}, {before} -> {after} tokens\n")
            });
            if let Some(reason) = result.fallback_reason.filter(|_| !workspace.json) {
                print_message(&format!("no summary ({reason}); kept the newest messages"));
            }
            done
        }
    }
}

/// Reads the params of a request from standard input.
fn stdin_params<M: Request>() -> Result<M::Params, Error> {
    let text = read_stdin()?;
    if text.trim().is_empty() {
        let name = M::NAME.trim_start_matches("sightline/");
        return Err(Error::invalid(format!(
            "standard input is empty: write the params of the request to it as a JSON object, which \
             `sightline schema {name}` describes"
        )));
    }
    params_compat::typed(M::NAME, &text)
}

pub(super) fn read_stdin() -> Result<String, Error> {
    let mut text = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_IMPORT_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| Error::storage(format!("cannot read standard input: {error}")))?;
    if text.len() as u64 > MAX_IMPORT_BYTES {
        let message = format!("standard input is larger than {MAX_IMPORT_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let text = String::from_utf8(text);
    let text = text.map_err(|_| Error::invalid("standard input is not UTF-8"))?;
    // PowerShell adds a byte order mark.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// Writes a new file. Fails if it exists.
fn write_new(file: &Path, text: &str) -> Result<(), Error> {
    let mut options = sightline_base::storage::atomic_file::private_options();
    options.write(true).create_new(true);
    // Private, because conversations may contain secrets.
    options
        .open(file)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .map_err(|error| Error::storage(format!("cannot write {}: {error}", file.display())))
}
