//! The `<environment_details>` block: facts in, text out.
//!
//! [`build`] draws each wanted section from its [`Inputs`], cuts it to its
//! budget and puts the block together. It changes nothing: what was shown and
//! must not be shown twice is named in the [`Block`], and the caller marks it
//! when the client asked for that. [`Revisions`] then decides what of a block a
//! client does not know yet.
//!
//! One file per kind of section; `render` is the only place that knows how a
//! block looks, `line` makes strings from outside harmless. No path gets in
//! without a verdict of [`crate::access`].

mod cli_tools;
mod delta;
mod denied_output;
mod file_list;
mod git_info;
mod host_name;
mod mode;
mod open_files;
mod redact;
mod render;
mod settings;
mod terminals;
mod time;
mod usage;
mod workspace;

use sightline_protocol::environment::{
    EnvironmentDetailsParams, EnvironmentDetailsResult, SectionId,
};

pub use cli_tools::CliTools;
pub use delta::Revisions;
pub use file_list::FileList;
pub use host_name::display_name;
pub use open_files::ModifiedFile;
pub use redact::names_denied_file;
pub use settings::{BlockSettings, SectionRule};

use crate::{access::AccessView, cancel::Cancel, editor::EditorState, error::Error, escape};
use delta::SectionFingerprint;
use render::{DeliveredItem, SectionDraft};

/// Everything a block is made of.
pub struct Inputs<'a> {
    /// What the client asked for.
    pub params: &'a EnvironmentDetailsParams,
    /// Which sections, and how much of them.
    pub settings: &'a BlockSettings,
    /// The editor's name, from [`display_name`].
    pub host: &'a str,
    /// What the editor shows.
    pub editor: &'a EditorState,
    /// The rules, and the roots they are for.
    pub access: &'a AccessView,
    /// What the tracker says has changed behind the agent's back.
    pub recently_modified: &'a [ModifiedFile],
    /// Lists the primary root; called only when the list is wanted.
    pub files: &'a dyn Fn(&Cancel) -> Result<FileList, Error>,
    /// The command line tools of this machine.
    pub cli_tools: &'a CliTools,
}

/// A block, and what showing it means.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The answer for the client, with revision 0.
    pub result: EnvironmentDetailsResult,
    /// Terminals whose unread output is done with, and how much they had
    /// received: those shown, and those that may not be shown (so that their
    /// output never appears under a later command).
    pub delivered_terminals: Vec<(String, u64)>,
    /// [`ModifiedFile::path`] of the files shown as recently modified.
    pub delivered_files: Vec<String>,
    /// What [`Revisions`] remembers of each section that was asked for.
    fingerprints: Vec<SectionFingerprint>,
}

/// Builds the block.
///
/// # Errors
/// `invalidParams` for a clock or time zone that does not exist; `cancelled`.
pub fn build(inputs: &Inputs<'_>, cancel: &Cancel) -> Result<Block, Error> {
    let mut block = Block::default();
    for id in SectionId::ALL {
        cancel.check()?;
        if !is_wanted(id, inputs) {
            continue;
        }
        let heading = heading(id, inputs);
        let draft = draft(id, inputs, cancel)?;
        let finished =
            render::render_section(id, &heading, &draft, inputs.settings.rule(id).max_tokens);
        let fingerprint = SectionFingerprint::new(id, heading, &draft, finished.section.as_ref());
        block.fingerprints.push(fingerprint);
        block.result.sections.extend(finished.section);
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

/// Switched on, asked for, and possible with these params?
fn is_wanted(id: SectionId, inputs: &Inputs<'_>) -> bool {
    let params = inputs.params;
    let asked = match params.sections.as_deref() {
        None | Some([]) => true,
        Some(sections) => sections.contains(&id),
    };
    let possible = match id {
        SectionId::Files | SectionId::WorkspaceConfiguration | SectionId::CliTools => {
            params.include_files
        }
        SectionId::ContextWindow => params.usage.is_some(),
        _ => true,
    };
    asked && possible && inputs.settings.rule(id).enabled
}

fn heading(id: SectionId, inputs: &Inputs<'_>) -> String {
    let host = inputs.host;
    let heading = match id {
        SectionId::WorkspaceRoots => "Workspace Roots".to_owned(),
        SectionId::VisibleFiles => format!("{host} Visible Files"),
        SectionId::OpenTabs => format!("{host} Open Tabs"),
        SectionId::RunningTerminals => "Actively Running Terminals".to_owned(),
        SectionId::InactiveTerminals => "Inactive Terminals".to_owned(),
        SectionId::RecentlyModified => "Recently ModifiedFile Files".to_owned(),
        SectionId::CurrentTime => "Current Time".to_owned(),
        SectionId::Files => workspace::files_heading(inputs.access.roots()),
        SectionId::WorkspaceConfiguration => "Workspace Configuration".to_owned(),
        SectionId::CliTools => "Detected CLI Tools".to_owned(),
        SectionId::UnsavedFiles => "Unsaved Files".to_owned(),
        SectionId::ContextWindow => "Context Window Usage".to_owned(),
        SectionId::Mode => "Current Mode".to_owned(),
    };
    escape::one_line(&heading).into_owned()
}

fn draft(id: SectionId, inputs: &Inputs<'_>, cancel: &Cancel) -> Result<SectionDraft, Error> {
    Ok(match id {
        SectionId::WorkspaceRoots => workspace::roots(inputs.access.roots()),
        SectionId::VisibleFiles => open_files::visible(inputs, cancel)?,
        SectionId::OpenTabs => open_files::tabs(inputs, cancel)?,
        SectionId::RunningTerminals => terminals::running(inputs, cancel)?,
        SectionId::InactiveTerminals => terminals::inactive(inputs, cancel)?,
        SectionId::RecentlyModified => open_files::recently_modified(inputs, cancel)?,
        SectionId::CurrentTime => SectionDraft::text(&time::line(
            inputs.params.now,
            inputs.params.time_zone.as_deref(),
        )?),
        SectionId::Files => file_list::draft(inputs, cancel)?,
        SectionId::WorkspaceConfiguration => workspace::configuration(inputs.access, cancel)?,
        SectionId::CliTools => inputs.cli_tools.draft(),
        SectionId::UnsavedFiles => open_files::unsaved(inputs, cancel)?,
        SectionId::ContextWindow => usage::draft(inputs.params),
        SectionId::Mode => SectionDraft::text(mode::text(inputs.params.mode)),
    })
}
