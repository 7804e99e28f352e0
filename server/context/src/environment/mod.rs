//! Builds the `<environment_details>` block.
//!
//! [`build`] drafts each requested section from its [`Inputs`], truncates it to its budget and
//! assembles the block. It changes no state: the [`Block`] lists what may be shown only once, and
//! the caller marks it as delivered if the client asked for that. [`Revisions`] then reduces the
//! block to what the client does not know yet.
//!
//! There is one file per kind of section. `render` defines the layout, [`sightline_base::escape`] escapes
//! untrusted strings. Every path is checked by [`sightline_access`].

mod cli_tools;
mod context_usage;
mod diagnostics;
mod editor_files;
mod file_list;
mod host_name;
mod mode;
mod remote_url;
mod render;
mod revisions;
mod terminals;
mod time;
mod workspace;

use std::sync::Arc;

use sightline_protocol::{
    decision::HiddenFile,
    environment::{EnvironmentDetailsParams, EnvironmentDetailsResult, SectionId},
    settings::EnvironmentSettings,
};

pub use cli_tools::CliTools;
pub use diagnostics::diagnostic_line;
pub use editor_files::ModifiedFile;
pub use file_list::FileList;
pub use host_name::display_name;
pub use revisions::Revisions;

use crate::editor::EditorState;
use render::{DeliveredItem, SectionDraft};
use revisions::SectionFingerprint;
use sightline_access::{AccessView, redact::HiddenContents};
use sightline_base::{cancel::Cancel, error::Error, escape};

/// Inputs of a block.
pub struct Inputs<'a> {
    /// Request of the client.
    pub params: &'a EnvironmentDetailsParams,
    /// Which sections are shown, and their budgets.
    pub settings: &'a EnvironmentSettings,
    /// Editor name from [`display_name`].
    pub host: &'a str,
    /// Editor state.
    pub editor: &'a EditorState,
    /// Access rules and workspace roots.
    pub access: &'a AccessView,
    /// Returns the contents of denied files. Called only if a terminal has output.
    pub hidden_contents: &'a dyn Fn() -> Arc<HiddenContents>,
    /// Changes by the user since the agent last read or wrote the files.
    pub recently_modified: &'a [ModifiedFile],
    /// Lists the primary root. Called only if the list is requested.
    pub files: &'a dyn Fn(&Cancel) -> Result<FileList, Error>,
    /// Command line tools of this machine.
    pub cli_tools: &'a CliTools,
}

/// A block, and what its delivery marks as shown.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Answer for the client, with revision 0.
    pub result: EnvironmentDetailsResult,
    /// Terminals whose unread output is consumed, and their received byte counts. Includes
    /// terminals that are hidden, so that their output never appears under a later command.
    pub delivered_terminals: Vec<(String, u64)>,
    /// [`ModifiedFile::path`] of the files shown as recently modified.
    pub delivered_files: Vec<String>,
    /// Files whose contents were left out.
    pub hidden: Vec<HiddenFile>,
    /// Fingerprints of the requested sections, for [`Revisions`].
    fingerprints: Vec<SectionFingerprint>,
}

/// Builds the block.
///
/// # Errors
/// `invalidParams` for an invalid time or time zone; `cancelled`.
pub fn build(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<Block, Error> {
    let mut block = Block::default();
    for id in SectionId::ALL {
        cancel.check()?;
        if !is_wanted(id, inputs) {
            continue;
        }
        let heading = heading(id, inputs);
        let draft = draft(id, inputs, cancel)?;
        let max_tokens = inputs.settings.max_tokens(id);
        let finished = render::render_section(id, &heading, &draft, max_tokens);
        let fingerprint = SectionFingerprint::new(id, heading, &draft, finished.section.as_ref());
        block.fingerprints.push(fingerprint);
        block.result.sections.extend(finished.section);
        block.hidden.extend(draft.hidden);
        for delivery in draft.delivered {
            if delivery.line.is_some_and(|line| line >= finished.lines) {
                continue;
            }
            match delivery.what {
                DeliveredItem::Terminal { id, received } => {
                    block.delivered_terminals.push((id, received));
                }
                DeliveredItem::File(path) => block.delivered_files.push(path),
            }
        }
    }
    render::assemble(&mut block.result);
    Ok(block)
}

/// Returns whether a section is enabled, requested and available with these params.
fn is_wanted(id: SectionId, inputs: &Inputs<'_>) -> bool {
    let params = inputs.params;
    let sections = params.sections.as_deref().unwrap_or_default();
    let is_default = sections.is_empty();
    let asked = is_default || sections.contains(&id);
    let possible = match id {
        SectionId::Files | SectionId::WorkspaceConfiguration | SectionId::CliTools => {
            params.include_files
        }
        SectionId::ContextWindow => params.usage.is_some(),
        _ => true,
    };
    // Diagnostics are off unless they are named.
    let named = id == SectionId::Diagnostics && asked && !is_default;
    asked && possible && (named || inputs.settings.is_enabled(id))
}

fn heading(id: SectionId, inputs: &Inputs<'_>) -> String {
    let host = inputs.host;
    let heading = match id {
        SectionId::WorkspaceRoots => "Workspace Roots".to_owned(),
        SectionId::VisibleFiles => format!("{host} Visible Files"),
        SectionId::OpenTabs => format!("{host} Open Tabs"),
        SectionId::RunningTerminals => "Actively Running Terminals".to_owned(),
        SectionId::InactiveTerminals => "Inactive Terminals".to_owned(),
        SectionId::RecentlyModified => "Recently Modified Files".to_owned(),
        SectionId::CurrentTime => "Current Time".to_owned(),
        SectionId::Files => workspace::files_heading(inputs.access.roots()),
        SectionId::WorkspaceConfiguration => "Workspace Configuration".to_owned(),
        SectionId::CliTools => "Detected CLI Tools".to_owned(),
        SectionId::UnsavedFiles => "Unsaved Files".to_owned(),
        SectionId::Diagnostics => "Diagnostics".to_owned(),
        SectionId::ContextWindow => "Context Window Usage".to_owned(),
        SectionId::Mode => "Current Mode".to_owned(),
    };
    escape::one_line(&heading).into_owned()
}

fn draft(id: SectionId, inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    Ok(match id {
        SectionId::WorkspaceRoots => workspace::roots(inputs.access.roots()),
        SectionId::VisibleFiles => editor_files::visible(inputs, cancel)?,
        SectionId::OpenTabs => editor_files::tabs(inputs, cancel)?,
        SectionId::RunningTerminals => terminals::running(inputs, cancel)?,
        SectionId::InactiveTerminals => terminals::inactive(inputs, cancel)?,
        SectionId::RecentlyModified => editor_files::recently_modified(inputs, cancel)?,
        SectionId::CurrentTime => SectionDraft::text(&time::line(
            inputs.params.now,
            inputs.params.time_zone.as_deref(),
        )?),
        SectionId::Files => file_list::draft(inputs, cancel)?,
        SectionId::WorkspaceConfiguration => workspace::configuration(inputs.access, cancel)?,
        SectionId::CliTools => inputs.cli_tools.draft(),
        SectionId::UnsavedFiles => editor_files::unsaved(inputs, cancel)?,
        SectionId::Diagnostics => diagnostics::draft(inputs, cancel)?,
        SectionId::ContextWindow => context_usage::draft(inputs.params),
        SectionId::Mode => SectionDraft::text(mode::text(inputs.params.mode)),
    })
}
