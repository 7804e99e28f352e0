//! Finds the denied files whose lines `git grep` would print.

use super::{
    super::{judge::Judge, programs::has},
    Git, excludes,
    options::{GREP, Question},
    printed::Printed,
    repository::Repository,
};

/// Maximum denied files whose contents `git grep` is asked for.
const MAX_GREPPED: usize = 200;

impl Git {
    /// `git grep` prints lines of the files that match. Only denied files are searched.
    pub(super) fn grep(
        &self,
        judge: &mut Judge<'_>,
        repository: &Repository,
        printed: &mut Printed,
    ) {
        let Some(Question { words, names, .. }) = self.question() else {
            return self.tracked(judge, repository, &self.pathspecs(), printed);
        };
        let dashes = words.iter().position(|text| text == "--");
        let (before, after) = words.split_at(dashes.unwrap_or(words.len()));
        let mut specs: Vec<String> = after.iter().skip(1).cloned().collect();
        let mut options = Vec::new();
        let mut revisions = Vec::new();
        let mut needs_pattern = !names.iter().any(|name| name == "-e");
        let mut texts = before.iter();
        while let Some(text) = texts.next() {
            if text.starts_with('-') || !needs_pattern && has("( )", text) {
                options.push(text.clone());
                if has(GREP.values, text) {
                    options.extend(texts.next().cloned());
                }
            } else if std::mem::take(&mut needs_pattern) {
                options.extend(["-e".to_owned(), text.clone()]);
            } else if dashes.is_none()
                && (text.starts_with(':') || text.contains('*') || repository.has_file(text))
            {
                specs.push(text.clone());
            } else {
                revisions.push(text.clone());
            }
        }
        let forms = [
            "-l",
            "-z",
            "--full-name",
            "--no-textconv",
            "--no-recurse-submodules",
        ]
        .map(str::to_owned);
        if !revisions.is_empty() || names.iter().any(|name| has("--untracked --cached", name)) {
            let mut all = options;
            all.extend(revisions);
            all.push("--".to_owned());
            all.extend(specs);
            let Some(paths) = repository.run("grep", &forms, &all) else {
                printed.is_unknown = true;
                return;
            };
            let path = |text: &String| text.rsplit(':').next().unwrap_or_default().to_owned();
            let paths: Vec<String> = paths.iter().map(path).collect();
            printed.contents.extend(repository.denied(judge, &paths));
            return;
        }
        let specs = if specs.iter().all(|spec| excludes(spec)) {
            [vec![".".to_owned()], specs].concat()
        } else {
            specs
        };
        let Some(tracked) = repository.files(&specs, false) else {
            printed.is_unknown = true;
            return;
        };
        let denied = repository.denied(judge, &tracked);
        if denied.is_empty() {
            return;
        }
        let mut all = options;
        all.push("--".to_owned());
        all.extend(
            denied
                .iter()
                .take(MAX_GREPPED)
                .map(|name| format!(":(top,literal){}", name.path)),
        );
        match repository.run("grep", &forms, &all) {
            Some(paths) if denied.len() <= MAX_GREPPED => {
                printed.contents.extend(repository.denied(judge, &paths))
            }
            _ => printed.contents.extend(denied),
        }
    }
}
