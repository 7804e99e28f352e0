//! Archives that a command line unpacks.

use std::{
    collections::HashSet,
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Change, Checker, Reach, State};
use crate::command::{
    expand::Field,
    git::output_of,
    programs::{Arguments, NameList},
    scripts::without_folders,
};

/// Programs that unpack archives.
pub(super) const PROGRAMS: NameList =
    "7z 7za 7zr 7zz bsdtar cpio gtar jar pax tar unar unrar unzip";

impl Checker<'_> {
    /// Checks the files that an archive would write. One whose names are not known must not be unpacked
    /// over a guarded file.
    pub(super) fn guard_unpacked(&mut self, program: &str, words: &[Field], state: &State) {
        let texts: Vec<String> = words.iter().map(Field::text).collect();
        let arguments = Arguments::new(words);
        if !arguments.extracts() {
            return;
        }
        let folder = arguments.values("-C --directory -d -D -o").last();
        // An unknown folder is probably a new one.
        if folder == Some("") {
            return;
        }
        let into: Vec<PathBuf> = state
            .dirs
            .iter()
            .map(|dir| dir.join(folder.unwrap_or(".")))
            .collect();
        let operand = || arguments.operands.first().map(Field::text);
        let archive = match program {
            "cpio" | "pax" => None,
            _ if program.ends_with("tar") => {
                arguments.values("-f --file").next().map(str::to_owned)
            }
            _ => operand(),
        };
        let archive = archive
            .filter(|path| path != "-")
            .or_else(|| state.stdin.path.clone());
        let renames = |text: &String| text.starts_with("--trans") || text.starts_with("--xf");
        let is_known = |path: &PathBuf| {
            let is_written = self.judge.written.contains(&*path.to_string_lossy());
            !is_written && !texts.iter().any(renames)
        };
        let archive = archive.and_then(|path| Some(state.dirs.first()?.join(path)));
        let names = archive
            .filter(is_known)
            .and_then(|archive| names_in(program, &archive));
        let Some(names) = names else {
            let all = Field::quoted(".");
            return self.guard_word(&all, &into, Reach::Tree, Change::Any);
        };
        let Some(guarded) = &self.guard else { return };
        let last = |path: PathBuf| Some(path.file_name()?.to_string_lossy().to_lowercase());
        let known: HashSet<String> = guarded
            .guard
            .places()
            .into_iter()
            .filter_map(last)
            .collect();
        let may_hit = |name: &&str| {
            let mut parts = name.split('/');
            parts.any(|part| known.contains(&part.to_lowercase()))
        };
        // `tar --strip-components`, `unzip -j`
        let strips = |text: &String| text.starts_with("--str") || text.starts_with("-j");
        let most = if texts.iter().any(strips) {
            usize::MAX
        } else {
            1
        };
        let paths = |name| without_folders(name).take(most);
        for name in names.lines().filter(may_hit).flat_map(paths) {
            self.guard_word(&Field::quoted(name), &into, Reach::File, Change::Any);
        }
    }
}

/// Returns the names in an archive, one a line. `None` if they cannot be listed.
fn names_in(program: &str, archive: &Path) -> Option<String> {
    let (program, option) = match program {
        "unzip" => (program, "-Z1"),
        _ if program.ends_with("tar") => ("tar", "-tf"),
        _ => return None,
    };
    let mut command = Command::new(program);
    // Other variables can make it run programs.
    command.env_clear().env("PATH", env::var_os("PATH")?);
    command.arg(option).arg(archive);
    String::from_utf8(output_of(command, Vec::new())?).ok()
}
