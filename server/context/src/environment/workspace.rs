//! The sections on the workspace: its roots and their git repositories.

use serde::{Serialize, Serializer};
use serde_json::to_string_pretty;

use super::{remote_url::without_credentials, render::SectionDraft};
use crate::git::{Repository, Vcs};
use sightline_access::AccessView;
use sightline_base::{
    cancel::Cancel,
    error::Error,
    escape,
    path::{Root, Roots},
};

/// Drafts the list of roots. Empty for a single root.
pub(super) fn roots(roots: &Roots) -> SectionDraft {
    let [primary, _, ..] = roots.as_slice() else {
        return SectionDraft::default();
    };
    let mut lines: Vec<String> = roots
        .as_slice()
        .iter()
        .map(|root| {
            let vcs = Vcs::of(root.path.as_path()).name();
            let line = format!("- {}: {} ({vcs})", root.name, root.path.display());
            escape::one_line(&line).into_owned()
        })
        .collect();
    lines.push(String::new());
    let primary = format!("Primary workspace: {}", primary.name);
    lines.push(escape::one_line(&primary).into_owned());
    SectionDraft {
        lines,
        ..SectionDraft::default()
    }
}

/// Returns the heading of the file list, which names the listed root.
pub(super) fn files_heading(roots: &Roots) -> String {
    let of = match roots.as_slice() {
        [] => String::new(),
        [root] => root.path.display(),
        [primary, ..] => format!("Primary: {}", primary.name),
    };
    format!("Current Working Directory ({of}) Files")
}

/// Drafts the JSON of all roots with remotes and commit.
pub(super) fn configuration(access: &AccessView, cancel: &Cancel) -> Result<SectionDraft, Error> {
    let roots = access.roots();
    if roots.is_empty() {
        return Ok(SectionDraft::default());
    }
    let mut workspaces = Vec::new();
    for root in roots.as_slice() {
        cancel.check()?;
        let path = escape::one_line(&root.path.display()).into_owned();
        workspaces.push((path, workspace(root, access)));
    }
    let json = to_string_pretty(&Configuration {
        workspaces: OrderedMap(workspaces),
    });
    // Maps with string keys and values cannot fail to serialize.
    Ok(SectionDraft::text(&json.unwrap_or_default()))
}

fn workspace(root: &Root, access: &AccessView) -> Workspace {
    let repository = Repository::discover(access, root.path.as_path());
    let remotes = repository.iter().flat_map(Repository::remotes);
    Workspace {
        hint: escape::one_line(&root.name).into_owned(),
        associated_remote_urls: remotes
            .filter_map(|(name, url)| {
                let url = without_credentials(&url)?;
                Some(escape::one_line(&format!("{name}: {url}")).into_owned())
            })
            .collect(),
        latest_git_commit_hash: repository.as_ref().and_then(Repository::head),
    }
}

#[derive(Serialize)]
struct Configuration {
    workspaces: OrderedMap,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Workspace {
    hint: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    associated_remote_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_git_commit_hash: Option<String>,
}

/// A JSON object in insertion order.
struct OrderedMap(Vec<(String, Workspace)>);

impl Serialize for OrderedMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::sync::Arc;

    use super::*;
    use crate::git;
    use sightline_access::Access;
    use sightline_base::path::AbsPath;
    use sightline_protocol::settings::Secrets;

    fn root(path: &Path, name: &str) -> Root {
        Root::new(AbsPath::new(path).unwrap(), Some(name.to_owned()))
    }

    #[test]
    fn a_single_root_has_no_list() {
        let folder = if cfg!(windows) { "C:/a" } else { "/a" };
        let one = Roots::new(vec![root(Path::new(folder), "a")]);
        assert!(roots(&one).lines.is_empty());
        let heading = format!("Current Working Directory ({folder}) Files");
        assert_eq!(files_heading(&one), heading);
    }

    #[test]
    fn roots_are_listed_in_order_one_per_line() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("z/.hg")).unwrap();
        std::fs::create_dir_all(folder.path().join("a/.git")).unwrap();
        let both = Roots::new(vec![
            root(&folder.path().join("z"), "last\nfirst"),
            root(&folder.path().join("a"), "first"),
        ]);
        let at = folder.path().to_str().unwrap().replace('\\', "/");
        assert_eq!(
            roots(&both).lines.join("\n"),
            format!(
                "- last\\nfirst: {at}/z (mercurial)\n- first: {at}/a (git)\n\n\
                 Primary workspace: last\\nfirst"
            )
        );
        let (view, _) = Access::new(Arc::new(both), Vec::new(), Secrets::Allow).view();
        let json = configuration(&view, &Cancel::default()).unwrap().lines;
        let keys: Vec<_> = json.iter().filter(|line| line.ends_with("\": {")).collect();
        assert!(
            keys[1].contains("/z\"") && keys[2].contains("/a\""),
            "{keys:?}"
        );
    }

    #[test]
    fn remotes_have_no_credentials() {
        git::isolate();
        let folder = tempfile::tempdir().unwrap();
        let repository = git2::Repository::init(folder.path()).unwrap();
        repository.remote("upstream", "git@host:o/r.git").unwrap();
        repository
            .remote("origin", "https://me:secret@host/o/r.git?x=1")
            .unwrap();
        let view = Access::new(Arc::new(Roots::default()), Vec::new(), Secrets::Allow)
            .view()
            .0;
        assert_eq!(
            workspace(&root(folder.path(), "r"), &view).associated_remote_urls,
            ["origin: https://host/o/r.git", "upstream: host:o/r.git"]
        );
    }
}
