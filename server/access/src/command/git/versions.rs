//! Files whose content decides whether they are denied, in the versions that git may print.

use std::{collections::HashMap, path::PathBuf};

use super::{
    super::{judge::Judge, programs::has, syntax::DeniedName},
    Git, object_path,
    repository::Repository,
    top_of,
};
use crate::{Denial, Verdict};
use sightline_base::path::AbsPath;

/// Subcommands that use earlier versions of their operands.
const EARLIER: &str = "checkout restore";
/// Subcommands that print one version of a file: that of a commit, or the file on the disk.
const ONE_VERSION: &str = "annotate blame";
/// Options of these with a value, and others, that change only which lines are printed and how.
const LINE_OPTIONS: &str = "-L --date";
const SHOWN_OPTIONS: &str = "-- -w -M -C -s -e -f -n -l -t -p -c -b --root --porcelain --line-porcelain --show-email --show-name --show-number";

impl Git {
    /// Returns the operands that name a file whose content decides, and a denial if a version that the command uses may be
    /// secret. The name of an object means one version.
    pub(in super::super) fn versions(
        &self,
        judge: &Judge<'_>,
        dirs: &[PathBuf],
    ) -> Vec<(String, Option<Denial>)> {
        let mut found = Vec::new();
        for field in &self.words {
            let word = field.text();
            let object = object_path(&word);
            let prints_one = has(ONE_VERSION, &self.subcommand);
            if object.is_none() && !prints_one && !has(EARLIER, &self.subcommand) {
                continue;
            }
            let path = object.unwrap_or(&word);
            for dir in dirs {
                let top = top_of(dir).unwrap_or_else(|| dir.clone());
                let by_content = [dir.join(path), top.join(path)]
                    .iter()
                    .filter_map(|place| AbsPath::new(place))
                    .filter_map(|place| judge.view.denial_of(&place, || false))
                    .find(|denial| denial.by_content);
                let Some(denial) = by_content else { continue };
                let repository = Repository::new(dir, &top, &self.selection);
                let denial = match (repository, object) {
                    (None, _) => Some(denial),
                    (Some(repository), None) if prints_one && self.revision(path).is_some() => {
                        let revision = self.revision(path).unwrap_or_default();
                        if revision.is_empty() {
                            continue;
                        }
                        repository.secret(denial, &[format!("{revision}:./{path}")])
                    }
                    (Some(repository), Some(_)) if !field.has_unknown() => {
                        repository.secret(denial, std::slice::from_ref(&word))
                    }
                    (Some(repository), _) => {
                        let place = dir.join(path);
                        let below = place.strip_prefix(&top).unwrap_or(&place);
                        repository.secret_in_any_version(judge, &below.to_string_lossy(), denial)
                    }
                };
                found.push((path.to_owned(), denial));
            }
        }
        found
    }
}

impl Git {
    /// Returns the commit whose version `git blame` prints, or an empty text for the file on the disk. `None` if that is not
    /// certain.
    fn revision(&self, path: &str) -> Option<String> {
        let mut revision = None;
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            let word = word.known()?;
            if has(LINE_OPTIONS, &word) {
                words.next();
            } else if word.starts_with('-') && !word.starts_with("-L") {
                has(SHOWN_OPTIONS, &word).then_some(())?;
            } else if word != path && !word.starts_with('-') && revision.replace(word).is_some() {
                return None;
            }
        }
        let revision = revision.unwrap_or_default();
        (!revision.contains("..")).then_some(revision)
    }
}

impl Repository {
    /// Leaves out the files whose content decides, and that are secret in no version.
    pub(super) fn without_public(
        &self,
        judge: &Judge<'_>,
        mut names: Vec<DeniedName>,
    ) -> Vec<DeniedName> {
        let mut known: HashMap<String, Option<Denial>> = HashMap::new();
        names.retain_mut(|name| {
            if !name.denial.by_content {
                return true;
            }
            let secret = known.entry(name.path.clone()).or_insert_with(|| {
                self.secret_in_any_version(judge, &name.path, name.denial.clone())
            });
            match secret {
                Some(denial) => name.denial = denial.clone(),
                None => return false,
            }
            true
        });
        names
    }

    /// Returns a denial if a version of a file may be secret: on the disk, in the index or in a commit. `path` is relative
    /// to the top of the work tree.
    fn secret_in_any_version(
        &self,
        judge: &Judge<'_>,
        path: &str,
        denial: Denial,
    ) -> Option<Denial> {
        let place = self.top.join(path);
        if let Some(place) = AbsPath::new(&place)
            && let Verdict::Denied(denial) = judge.view.check_absolute(&place)
        {
            return Some(denial);
        }
        let spec = format!(":(top,literal){path}");
        let words = ["--".to_owned(), spec];
        let options = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let log = "--all --reflog --format= --raw -z --no-abbrev --no-renames -m --root";
        let logged = self.run("log", &options(log), &words);
        let staged = self.run("ls-files", &options("-s -z"), &words);
        let Some((logged, staged)) = logged.zip(staged) else {
            return Some(denial.unknown());
        };
        let mut ids: Vec<String> = logged
            .iter()
            .chain(&staged)
            .flat_map(|line| line.split([' ', '\t']).take(5))
            .filter(|word| is_id(word))
            .map(str::to_owned)
            .collect();
        ids.sort();
        ids.dedup();
        // A file of a submodule has none here.
        if ids.is_empty() {
            return Some(denial.unknown());
        }
        self.secret(denial, &ids)
    }

    /// Returns a denial if one of the objects may be secret.
    fn secret(&self, denial: Denial, objects: &[String]) -> Option<Denial> {
        match self.blobs(objects) {
            Some(contents) => contents
                .iter()
                .find_map(|content| denial.clone().of_content(content)),
            None => Some(denial.unknown()),
        }
    }

    /// Returns the contents of objects. `None` if one is not a file.
    fn blobs(&self, objects: &[String]) -> Option<Vec<Vec<u8>>> {
        if objects.iter().any(|name| name.contains('\n')) {
            return None;
        }
        let mut command = self.command();
        command.args(["cat-file", "--batch"]);
        let names: String = objects.iter().map(|name| format!("{name}\n")).collect();
        let output = super::repository::output_of(command, names.into_bytes())?;
        let mut contents = Vec::new();
        let mut rest = output.as_slice();
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest)?;
            let (header, after) = (str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
            let (_, kind) = header.split_once(' ')?;
            let length: usize = kind.strip_prefix("blob ")?.parse().ok()?;
            contents.push(after.get(..length)?.to_vec());
            rest = after.get(length + 1..)?;
        }
        (contents.len() == objects.len()).then_some(contents)
    }
}

/// Returns whether a word is the id of an object that exists.
fn is_id(word: &str) -> bool {
    word.len() >= 40
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte != b'0')
}
