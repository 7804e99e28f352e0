//! `sightline.sendToAgent`.

use serde::Deserialize;
use sightline_engine::{
    error::Error, params_compat, request_context::RequestContext, services::agents::Mention,
};
use sightline_protocol::{editor::Range, error::ErrorKind};

use super::{
    command_result::{self, CommandResult},
    document_arg::DocumentArg,
};

/// The argument of the command: a document, and a range in it.
#[derive(Clone, Debug, Default)]
pub struct SendArg {
    document: DocumentArg,
    range: Option<Range>,
}

impl SendArg {
    /// Parses the argument of the command.
    ///
    /// # Errors
    /// `invalidParams`.
    pub fn read(method: &str, params: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct WithRange {
            range: Option<Range>,
        }
        let document = DocumentArg::read(method, params)?;
        let value = params_compat::parse(method, Some(params))?;
        let range = if value.is_object() {
            let with_range: WithRange = serde_json::from_value(value)
                .map_err(|error| Error::invalid(format!("{method}: {error}")))?;
            with_range.range
        } else {
            None
        };
        Ok(Self { document, range })
    }
}

/// Sends the selected lines of a document to the connected agents, or the whole document if
/// nothing is selected. The agent reads them from the disk.
///
/// # Errors
/// `accessDenied` if agents may not see the file, `unsupported` if no agent can show it.
pub(crate) fn run(context: &RequestContext<'_>, arg: SendArg) -> Result<CommandResult, Error> {
    let unsupported = |message: &str| Err(Error::new(ErrorKind::Unsupported, message));
    let (snapshot, view) = (&context.snapshot, context.view());
    let document = arg.document.document(context)?;
    let location = view.roots().locate(&document)?;
    view.require(&location, false)?;
    let uri = view.roots().absolute(&location).to_uri();
    if let Some(open) = snapshot.editor.document(&uri) {
        open.require(&view, &location, false)?;
    }
    let Some(agents) = context.services.agents() else {
        return unsupported("no agent is connected");
    };
    if agents.is_paused() {
        return unsupported("agents are paused; resume them with `sightline.pauseBridges`");
    }
    let selected = arg.range.or_else(|| snapshot.editor.selection(&uri));
    let lines = selected.and_then(selected_lines);
    let count = agents.mention(Mention {
        path: view.roots().absolute(&location).as_path().to_owned(),
        lines,
    });
    if count == 0 {
        return unsupported("no agent is connected that can show a file");
    }
    let name = view.roots().result_path(&location).0;
    let message = match lines {
        Some((first, last)) if first == last => format!("sent line {} of {name}", first + 1),
        Some((first, last)) => format!("sent lines {} to {} of {name}", first + 1, last + 1),
        None => format!("sent {name}"),
    };
    command_result::message(context, message)
}

/// Returns the first and the last line of a selection. `None` for a cursor.
fn selected_lines(range: Range) -> Option<(u32, u32)> {
    let (start, end) = (range.start.min(range.end), range.start.max(range.end));
    // The line break at the end of the last line is selected, too.
    let ends_before = u32::from(end.character == 0 && end.line > start.line);
    (start != end).then_some((start.line, end.line - ends_before))
}

#[cfg(test)]
mod tests {
    use sightline_protocol::editor::Position;

    use super::*;

    #[test]
    fn a_selection_of_whole_lines_does_not_contain_the_next() {
        let at = |line, character| Position { line, character };
        let lines = |start, end| selected_lines(Range { start, end });
        assert_eq!(lines(at(1, 0), at(3, 0)), Some((1, 2)));
        assert_eq!(lines(at(3, 1), at(1, 4)), Some((1, 3)));
        assert_eq!(lines(at(1, 0), at(1, 4)), Some((1, 1)));
        assert_eq!(lines(at(1, 0), at(1, 0)), None);
    }

    #[test]
    fn the_argument_may_have_a_range() {
        let read = |params| SendArg::read("sightline/sendToAgent", params);
        assert_eq!(read("null").unwrap().range, None);
        assert_eq!(read("\"a.txt\"").unwrap().document.named(), Some("a.txt"));
        let range = r#"{"path":"a","range":{"start":{"line":1,"character":0},"end":{"line":2,"character":0}}}"#;
        assert_eq!(read(range).unwrap().range.unwrap().end.line, 2);
        assert!(read(r#"{"range":7}"#).is_err());
    }
}
