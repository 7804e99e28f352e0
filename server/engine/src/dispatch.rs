//! The requests of the protocol: their params, their handlers, and where they run.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use sightline_checkpoint::Oid;
use sightline_protocol::{
    checkpoint::{RestoreCheckpointParams, RestoreMode},
    files::ProgressToken,
    method::{self, Request},
};

use crate::{
    error::Error,
    handlers::{
        check_access,
        checkpoint::{
            checkpoint_stats, create_checkpoint, diff_checkpoints, label_checkpoint,
            list_checkpoints, prune_checkpoints,
            restore::{preview_restore, restore_checkpoint, undo_restore},
            transfer, verify_checkpoints,
        },
        compaction::{apply_compaction, plan_compaction},
        conversation::{classify_error, count_tokens, rollback_history, truncate_history},
        decisions,
        editor::{connected_agents, diagnostics, open_file, selection, unsaved_files},
        environment_details, hidden_paths, list_files, list_rules, mcp_servers, read_file,
        tasks::{append_messages, delete_task, list_tasks, load_task, resume_task},
        tracking::{record_environment, record_model, task_context, track_file},
    },
    jobs::{Access, Key, Keys, all_task_keys, keys_of_roots, root_keys, task_keys},
    params_compat,
    request_context::{AnyResult, Outcome, ReadContext, RequestContext, Response, TaskContext},
    services::checkpoint_registry::CheckpointRegistry,
    session::{Snapshot, named_root},
};

/// Where a request runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the main loop: its work is bounded, and reads no file.
    Inline,
    /// In the thread pool.
    Pool,
    /// In the thread pool, after earlier requests with the same keys.
    Queue(Keys),
}

impl Place {
    /// Returns whether the request uses the checkpoints of a root.
    pub fn uses_root(&self) -> bool {
        let Self::Queue(keys) = self else {
            return false;
        };
        keys.iter().any(|(key, _)| matches!(key, Key::Root(_)))
    }
}

use Place::{Inline, Pool, Queue};

/// A request of the protocol and its handler.
pub trait Handler: Request {
    /// Runs the handler.
    ///
    /// # Errors
    /// The errors of the method.
    fn run(
        context: &RequestContext<'_>,
        params: Self::Params,
    ) -> Result<Response<Self::Result>, Error>;
}

/// The requests of the protocol: the method, its handler and what that gets, where it runs, and whether its
/// params have a `workDoneToken`.
macro_rules! requests {
    ($($method:ident, $run:path as $context:ident, $place:expr $(, $token:ident)?;)*) => {
        $(impl Handler for method::$method {
            fn run(
                context: &RequestContext<'_>,
                params: Self::Params,
            ) -> Result<Response<Self::Result>, Error> {
                let context: &$context<'_> = context;
                Ok($run(context, params)?.into())
            }
        })*

        /// The requests of the protocol.
        pub const REQUESTS: &[Route] = &[$(requests!(@route $method, $place $(, $token)?)),*];
    };
    (@route $method:ident, $place:expr $(, $token:ident)?) => {{
        type Params = <method::$method as Request>::Params;
        const NAME: &str = method::$method::NAME;
        fn typed(params: Params) -> Call {
            let token = requests!(@token params $($token)?);
            call(NAME, params, token, $place, <method::$method as Handler>::run)
        }
        Route {
            name: NAME,
            parse: |text| match params_compat::typed(NAME, text) {
                Ok(params) => typed(params),
                Err(error) => Call::invalid(NAME, error),
            },
            parse_message: |text| {
                let message: TypedMessage<Params> = serde_json::from_str(text).ok()?;
                Some((message.id, typed(message.params.0)))
            },
        }
    }};
    (@token $params:ident) => { None };
    (@token $params:ident with_token) => { $params.work_done_token.clone() };
}

#[rustfmt::skip]
requests! {
    EnvironmentDetails, environment_details::run as TaskContext, |p, _| any_task(&p.task_id);
    CheckAccess, check_access::run as ReadContext, |_, _| Pool;
    ListRules, list_rules::run as ReadContext, |_, _| Pool;
    HiddenPaths, hidden_paths::run as ReadContext, |_, _| Pool;
    Redact, decisions::redact as ReadContext, |_, _| Pool;
    ListDecisions, decisions::list as ReadContext, |_, _| Pool;
    ListFiles, list_files::run as ReadContext, |_, _| Pool, with_token;
    ReadFile, read_file::run as TaskContext, |p, _| any_task(&p.task_id);
    Diagnostics, diagnostics::run as ReadContext, |_, _| Pool;
    Selection, selection::run as ReadContext, |_, _| Pool;
    UnsavedFiles, unsaved_files::run as ReadContext, |_, _| Pool;
    ConnectedAgents, connected_agents::run as RequestContext, |_, _| Pool;
    OpenFile, open_file::run as RequestContext, |_, _| Pool;
    TrackFile, track_file::run as TaskContext, |p, _| task(&p.task_id);
    RecordModel, record_model::run as TaskContext, |p, _| task(&p.task_id);
    RecordEnvironment, record_environment::run as TaskContext, |p, _| task(&p.task_id);
    TaskContext, task_context::run as TaskContext, |p, _| task(&p.task_id);
    CountTokens, count_tokens::run as TaskContext, |p, _| any_task(&p.task_id);
    TruncateHistory, truncate_history::run as TaskContext, |p, _| any_task(&p.task_id);
    RollbackHistory, rollback_history::run as TaskContext, |p, _| any_task(&p.task_id);
    ClassifyError, classify_error::run as ReadContext, |_, _| Pool;
    AppendMessages, append_messages::run as RequestContext, |p, _| task(&p.task_id);
    LoadTask, load_task::run as TaskContext, |p, _| task(&p.task_id);
    ListTasks, list_tasks::run as TaskContext, |_, _| Queue(all_task_keys());
    ResumeTask, resume_task::run as TaskContext, |p, _| one_or_all_tasks(&p.task_id);
    DeleteTask, delete_task::run as RequestContext, |p, scope| task_and_roots(&p.task_id, scope);
    PlanCompaction, plan_compaction::run as TaskContext, |p, _| any_task(&p.task_id);
    ApplyCompaction, apply_compaction::run as TaskContext, |p, _| any_task(&p.task_id);
    CreateCheckpoint, create_checkpoint::run as RequestContext, |p, scope| roots(&p.root, &p.task_id, scope), with_token;
    ListCheckpoints, list_checkpoints::run as RequestContext, |_, _| Pool;
    ListTurns, list_checkpoints::list_turns as RequestContext, |_, _| Pool;
    DiffCheckpoints, diff_checkpoints::run as RequestContext, |_, _| Pool, with_token;
    PreviewRestore, preview_restore::run as RequestContext, |_, _| Pool, with_token;
    RestoreCheckpoint, restore_checkpoint::run as RequestContext, restored_roots, with_token;
    UndoRestore, undo_restore::run as RequestContext, |_, scope| all_roots_and_tasks(scope), with_token;
    CheckpointStats, checkpoint_stats::run as RequestContext, |_, _| Pool;
    LabelCheckpoint, label_checkpoint::run as RequestContext, |p, scope| Queue(keys_of_checkpoint(&p.id, scope));
    Blame, list_checkpoints::blame::run as RequestContext, |_, _| Pool;
    CommitCheckpoint, transfer::commit_checkpoint::run as RequestContext, |_, _| Pool;
    PruneCheckpoints, prune_checkpoints::run as RequestContext, |p, scope| roots(&p.root, &None, scope), with_token;
    VerifyCheckpoints, verify_checkpoints::run as RequestContext, |_, _| Pool, with_token;
    ListMcpServers, mcp_servers::list as RequestContext, |_, _| Pool;
    SetMcpServerEnabled, mcp_servers::set_enabled as RequestContext, |_, _| Pool;
    RestartMcpServer, mcp_servers::restart as RequestContext, |_, _| Pool;
    TrustMcpServer, mcp_servers::trust as RequestContext, |_, _| Pool;
    McpServerLog, mcp_servers::log as RequestContext, |_, _| Pool;
}

/// Returns the request of the protocol with this name.
pub fn request(method: &str) -> Option<&'static Route> {
    REQUESTS.iter().find(|route| route.name == method)
}

/// What determines the keys of a request, besides its params.
pub struct Scope<'a> {
    /// The session when the request arrived.
    pub snapshot: &'a Snapshot,
    /// Knows the root of a checkpoint without reading the disk.
    pub checkpoints: &'a CheckpointRegistry,
}

fn task(task: &str) -> Place {
    Queue(task_keys(task))
}

fn any_task(named: &Option<String>) -> Place {
    named.as_deref().map_or(Pool, task)
}

fn one_or_all_tasks(named: &Option<String>) -> Place {
    named
        .as_deref()
        .map_or_else(|| Queue(all_task_keys()), task)
}

fn task_and_roots(task: &str, scope: &Scope<'_>) -> Place {
    let mut keys = task_keys(task);
    keys.extend(all_roots(scope));
    Queue(keys)
}

/// The named root or all, after earlier requests of the task.
fn roots(root: &Option<String>, task: &Option<String>, scope: &Scope<'_>) -> Place {
    let open = scope.snapshot.access.roots();
    let named = root.as_deref().and_then(|name| named_root(open, name).ok());
    let named = named.and_then(|index| open.get(index));
    let mut keys = match named {
        Some(root) => keys_of_roots([root]),
        None => all_roots(scope),
    };
    keys.extend(after_task(task));
    Queue(keys)
}

/// The root of the checkpoint, or all. A restore that rewinds a conversation uses all
/// tasks, because the checkpoint may name it.
fn restored_roots(params: &RestoreCheckpointParams, scope: &Scope<'_>) -> Place {
    let mut keys = if params.all_roots {
        all_roots(scope)
    } else {
        keys_of_checkpoint(&params.id, scope)
    };
    keys.extend(match params.mode {
        RestoreMode::Files => after_task(&params.task_id),
        RestoreMode::Task | RestoreMode::FilesAndTask => all_task_keys(),
    });
    Queue(keys)
}

/// The root of the checkpoint if it is known, else all.
fn keys_of_checkpoint(id: &str, scope: &Scope<'_>) -> Keys {
    let id = id.parse::<Oid>().ok();
    let known = id.and_then(|id| scope.checkpoints.known_root(&id));
    let open = scope.snapshot.access.roots().as_slice();
    let is_open = |path: &std::path::PathBuf| {
        let mut open = open.iter();
        open.any(|root| root.canonical.as_path() == path)
    };
    match known.filter(is_open) {
        Some(root) => root_keys([root]),
        None => all_roots(scope),
    }
}

/// The restore to undo may have rewound any conversation.
fn all_roots_and_tasks(scope: &Scope<'_>) -> Place {
    let mut keys = all_roots(scope);
    keys.extend(all_task_keys());
    Queue(keys)
}

/// Returns the keys of a request that uses all roots.
pub fn all_roots(scope: &Scope<'_>) -> Keys {
    keys_of_roots(scope.snapshot.roots())
}

fn after_task(task: &Option<String>) -> Keys {
    let task = task.as_ref();
    task.map(|task| (Key::Task(task.clone()), Access::After))
        .into_iter()
        .collect()
}

/// How the requests of one method are read and run.
pub struct Route {
    /// The method's name.
    pub name: &'static str,
    /// Parses params. Errors are returned when the call is run.
    pub parse: fn(&str) -> Call,
    /// Parses the id and the params of a whole message in one pass. Returns `None` if the
    /// message needs compatibility handling.
    pub parse_message: fn(&str) -> Option<(Value, Call)>,
}

/// A request with its params.
pub struct Call {
    /// The method's name.
    pub method: &'static str,
    /// Token for progress reports, by which the request can be cancelled.
    pub token: Option<ProgressToken>,
    /// The handler with its params, or the error in the params.
    typed: Result<Box<dyn AnyCall>, Error>,
}

impl Call {
    /// Creates a call whose params are invalid.
    pub fn invalid(method: &'static str, error: Error) -> Self {
        Self {
            method,
            token: None,
            typed: Err(error),
        }
    }

    /// Returns whether the params are valid.
    pub fn is_valid(&self) -> bool {
        self.typed.is_ok()
    }

    /// Returns where the request runs.
    pub fn place(&self, scope: &Scope<'_>) -> Place {
        self.typed
            .as_ref()
            .map_or(Inline, |typed| typed.place(scope))
    }

    /// Runs the handler.
    ///
    /// # Errors
    /// The errors of the method.
    pub fn run(self, context: &RequestContext<'_>) -> Outcome {
        context.services.inject_fault(self.method);
        let span = tracing::debug_span!("request", method = self.method);
        span.in_scope(|| self.typed?.run(context))
    }
}

trait AnyCall: Send {
    fn place(&self, scope: &Scope<'_>) -> Place;
    fn run(self: Box<Self>, context: &RequestContext<'_>) -> Outcome;
}

struct TypedCall<P, R> {
    params: P,
    place: fn(&P, &Scope<'_>) -> Place,
    run: fn(&RequestContext<'_>, P) -> Result<Response<R>, Error>,
}

impl<P: Send, R: AnyResult + 'static> AnyCall for TypedCall<P, R> {
    fn place(&self, scope: &Scope<'_>) -> Place {
        (self.place)(&self.params, scope)
    }

    fn run(self: Box<Self>, context: &RequestContext<'_>) -> Outcome {
        let Response {
            result,
            on_delivered,
            summary,
        } = (self.run)(context, self.params)?;
        Ok(Response {
            result: Box::new(result),
            on_delivered,
            summary,
        })
    }
}

/// Creates a call.
pub fn call<P: Send + 'static, R: AnyResult + 'static>(
    method: &'static str,
    params: P,
    token: Option<ProgressToken>,
    place: fn(&P, &Scope<'_>) -> Place,
    run: fn(&RequestContext<'_>, P) -> Result<Response<R>, Error>,
) -> Call {
    Call {
        method,
        token,
        typed: Ok(Box::new(TypedCall { params, place, run })),
    }
}

/// A message with typed params.
#[derive(Deserialize)]
struct TypedMessage<P> {
    id: Value,
    params: Object<P>,
}

/// A value read from an object. A struct alone could also be read from an array.
struct Object<P>(P);

impl<'de, P: Deserialize<'de>> Deserialize<'de> for Object<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<P>(std::marker::PhantomData<P>);
        impl<'de, P: Deserialize<'de>> de::Visitor<'de> for Visitor<P> {
            type Value = Object<P>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Object<P>, A::Error> {
                P::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Visitor(std::marker::PhantomData))
    }
}
