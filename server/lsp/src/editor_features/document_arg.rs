//! The document or checkpoint a command applies to: its argument, else the active
//! document.

use serde::Deserialize;
use serde_json::Value;
use sightline_access::AccessView;
use sightline_base::path::{Location, Root, uri_to_path};
use sightline_engine::{error::Error, params_compat, request_context::RequestContext};

/// The argument of a command.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DocumentArg {
    /// A document, by URI or path.
    uri: Option<String>,
    path: Option<String>,
    /// A checkpoint id.
    pub(super) id: Option<String>,
    /// Label of a new checkpoint.
    pub(super) label: Option<String>,
}

impl DocumentArg {
    /// Parses the argument of a command. A string is a path, because that is what Helix
    /// can pass on its command line.
    ///
    /// # Errors
    /// `invalidParams`.
    pub fn read(method: &str, params: &str) -> Result<Self, Error> {
        let command = &method.replacen('/', ".", 1);
        if let Value::String(path) = params_compat::parse(command, Some(params))? {
            return Ok(Self {
                path: Some(path),
                ..Self::default()
            });
        }
        let fields = params_compat::parse_object(command, Some(params))?;
        serde_path_to_error::deserialize(fields).map_err(|error| {
            let field = error.path().to_string();
            Error::invalid(format!("{command}: `{field}`: {}", error.into_inner()))
        })
    }

    /// Returns the named document, as written.
    pub(super) fn named(&self) -> Option<&str> {
        self.uri.as_deref().or(self.path.as_deref())
    }

    /// Returns the document to use.
    ///
    /// # Errors
    /// `invalidParams` if it is not a file or no document is open.
    pub(super) fn document(&self, context: &RequestContext<'_>) -> Result<String, Error> {
        if let Some(named) = self.named() {
            return Ok(named.to_owned());
        }
        let active = context.snapshot.editor.active();
        let uri = active.ok_or_else(|| {
            Error::invalid("no document is open; open one, or pass {\"path\": \"...\"}")
        })?;
        match uri_to_path(uri) {
            Ok(Some(path)) if path.as_path().parent().is_some() => Ok(uri.to_owned()),
            _ => Err(Error::invalid(format!("not a file: {uri}"))),
        }
    }

    /// Returns the workspace folder of the document, else the first.
    ///
    /// # Errors
    /// `invalidParams` without an open folder.
    pub(super) fn root<'v>(
        &self,
        context: &RequestContext<'_>,
        view: &'v AccessView,
    ) -> Result<&'v Root, Error> {
        let roots = view.roots();
        let document = self.document(context).ok();
        let place = document.and_then(|written| roots.locate(&written).ok());
        let of_document = match place {
            Some(Location::Inside { root, .. }) => roots.get(root),
            _ => None,
        };
        of_document
            .or_else(|| roots.primary())
            .ok_or_else(|| Error::invalid("no folder is open; checkpoints need an open folder"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_objects_paths_or_absent() {
        for nothing in ["null", "[]", "{}"] {
            assert_eq!(DocumentArg::read("x", nothing), Ok(DocumentArg::default()));
        }
        let named = |params| DocumentArg::read("x", params).map(|t| t.named().map(str::to_owned));
        assert_eq!(named(r#""a b.rs""#), Ok(Some("a b.rs".to_owned())));
        assert_eq!(
            named(r#"{"path":"a","uri":"file:///b"}"#),
            Ok(Some("file:///b".to_owned()))
        );
        assert!(
            DocumentArg::read("x", r#"{"path":5}"#).is_err_and(|e| e.message.contains("`path`"))
        );
        assert!(DocumentArg::read("x", "7").is_err());
    }
}
