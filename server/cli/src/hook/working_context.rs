//! What a session gets back after a compaction or a pause.

use sightline_agents::hook::{self, UsedFile, WorkingContext};
use sightline_base::{escape::one_line, path::uri_to_path};
use sightline_engine::{error::Error, settings::config_file};
use sightline_protocol::{
    access::{AccessKind, CheckAccessParams},
    environment::{EnvironmentDetailsParams, Section, SectionId},
    method::CheckAccess,
    settings::TurnNames,
};

use super::{
    super::{offline, requests::Requests},
    seen_files::{SeenFile, SeenFiles},
    session::{Session, save},
};

/// Maximum number of turns to look at, the newest ones.
const MAX_TURNS: usize = 1000;

impl Session {
    /// Returns the working context of a session that continues. `None` if nothing is known.
    pub(super) fn working_context(&self) -> Option<String> {
        let mut file = self.seen_files()?;
        file.state.is_compacted = false;
        let text = self.render_context(&mut file.state);
        save(&mut file);
        text
    }

    /// Notes that the next prompt gets the working context.
    pub(super) fn add_context_to_next_prompt(&self) {
        if let Some(mut file) = self.seen_files() {
            file.state.is_compacted = true;
            save(&mut file);
        }
    }

    /// Returns the working context if it is due.
    pub(super) fn pending_context(&self, seen: &mut SeenFiles) -> Option<String> {
        std::mem::take(&mut seen.is_compacted)
            .then(|| self.render_context(seen))
            .flatten()
    }

    fn render_context(&self, seen: &mut SeenFiles) -> Option<String> {
        let unknown = |what: &'static str| move |error: &Error| tracing::warn!(%error, "cannot add {what} to the working context");
        let files = self
            .used_now(seen)
            .inspect_err(unknown("the files"))
            .unwrap_or_default();
        let diagnostics = self
            .diagnostics()
            .inspect_err(unknown("the diagnostics"))
            .unwrap_or_default();
        let (first_prompt, turns) = self
            .turns_so_far()
            .inspect_err(unknown("the turns"))
            .unwrap_or_default();
        let context = WorkingContext {
            first_prompt,
            turns,
            files,
            diagnostics,
        };
        context.render(hook::markup(self.agent))
    }

    /// Returns the files that the session used and that it may still see.
    fn used_now(&self, seen: &mut SeenFiles) -> Result<Vec<UsedFile>, Error> {
        let used: Vec<&SeenFile> = seen.used().collect();
        if used.is_empty() {
            return Ok(Vec::new());
        }
        let params = CheckAccessParams {
            paths: used.iter().map(|file| file.uri.clone()).collect(),
            ..CheckAccessParams::default()
        };
        let checked = Requests::new(&self.workspace).call::<CheckAccess>(params)?;
        let root = offline::root(&self.workspace)?;
        let files = used
            .into_iter()
            .zip(checked.paths)
            .filter_map(|(file, checked)| {
                let path = uri_to_path(&file.uri).ok()??;
                let in_root = [&root.path, &root.canonical]
                    .into_iter()
                    .find_map(|root| path.as_path().strip_prefix(root.as_path()).ok())?;
                let used = UsedFile {
                    path: one_line(&in_root.to_string_lossy()).into_owned(),
                    is_edited: file.is_edited,
                    is_stale: file.is_stale,
                };
                (checked.access == AccessKind::Allowed).then_some(used)
            });
        Ok(files.collect())
    }

    fn diagnostics(&self) -> Result<Option<String>, Error> {
        let params = EnvironmentDetailsParams {
            sections: Some(vec![SectionId::Diagnostics]),
            consume: false,
            ..EnvironmentDetailsParams::default()
        };
        let (details, _) = Requests::new(&self.workspace).environment_details(params)?;
        let is_wanted = |section: &&Section| section.id == SectionId::Diagnostics;
        Ok(details
            .sections
            .iter()
            .find(is_wanted)
            .map(|section| section.text.clone()))
    }

    /// Returns the beginning of the first prompt, unless prompts are not stored, and the names of the
    /// turns, oldest first.
    fn turns_so_far(&self) -> Result<(Option<String>, Vec<String>), Error> {
        let Some(turns) = &self.turns else {
            return Ok((None, Vec::new()));
        };
        let mut all = turns
            .store()?
            .session_turns(turns.agent, &turns.session, MAX_TURNS)?;
        all.reverse();
        let is_stored = config_file::user_settings().checkpoints.turn_names == TurnNames::Prompt;
        let first = all
            .first()
            .filter(|turn| is_stored && turn.name.number == 1);
        let prompt = first.and_then(|turn| turn.prompt.as_deref());
        let names = all.iter().map(|turn| turn.name.to_string());
        Ok((
            prompt.map(|text| one_line(text).into_owned()),
            names.collect(),
        ))
    }
}
