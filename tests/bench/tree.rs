//! Work trees for measurements: generated ones of any size that resemble source code, and
//! this repository with its history. Stores are placed next to the tree.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::input::{Numbers, text};

/// Files per folder of a generated tree.
const FILES_IN_FOLDER: usize = 12;

/// A work tree in a temporary folder.
pub(crate) struct Tree {
    folder: tempfile::TempDir,
    /// Name in the table.
    pub(crate) name: String,
    /// Files that may be changed.
    pub(crate) files: Vec<PathBuf>,
    /// Number of files.
    pub(crate) count: usize,
    /// Belongs to the generated trees, which differ only in size.
    pub(crate) generated: bool,
    /// Has targets.
    pub(crate) judged: bool,
    pub(crate) generation: usize,
}

/// Returns the path of file number `index` of a generated tree, with `/`.
pub(crate) fn path_of(index: usize) -> String {
    let folder = index / FILES_IN_FOLDER;
    let (part, module) = (folder % 7, folder / 100);
    format!("part{part}/module{module}/area{folder}/file_{index}.rs")
}

impl Tree {
    /// Generates a tree of `count` files.
    pub(crate) fn generate(count: usize) -> Self {
        let mut tree = Self::empty(format!("{count} files"));
        let mut numbers = Numbers(0x5eed);
        // Lines of some hundred files, recombined for each file: the tree compresses like
        // source code.
        let pool = text(&mut Numbers(7), 400_000);
        let pool: Vec<&str> = pool.split_inclusive('\n').collect();
        for index in 0..count {
            // Mostly a few kilobytes, sometimes a hundred, like source files.
            let size = match numbers.below(100) {
                0..6 => 20_000 + numbers.below(80_000),
                _ => 500 + numbers.below(3_000) + numbers.below(11_000),
            };
            let mut content = format!("// file {index}\n");
            while content.len() < size {
                content.push_str(pool[numbers.below(pool.len())]);
            }
            let path = tree.work().join(path_of(index));
            if index % FILES_IN_FOLDER == 0 {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            fs::write(&path, content).unwrap();
            tree.files.push(path);
        }
        tree.count = count;
        tree.generated = true;
        // The targets are for ten thousand files and more.
        tree.judged = count >= 10_000;
        tree
    }

    /// Clones this repository. Returns an error if that is not possible.
    pub(crate) fn of_this_repository() -> Result<Self, String> {
        let mut tree = Self::empty("this repository".to_owned());
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let cloned = Command::new("git")
            .args(["clone", "--quiet", "--no-hardlinks"])
            .args([&here, &tree.work()])
            .output();
        match cloned {
            Ok(done) if done.status.success() => {}
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr)
                    .trim()
                    .replace('\n', " ");
                return Err(format!("it can't be cloned: {said}"));
            }
            Err(error) => return Err(format!("git can't be run: {error}")),
        }
        let listed = Command::new("git")
            .args(["ls-files", "-z"])
            .current_dir(tree.work())
            .output()
            .unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        // Some of the others are denied, such as `.npmrc`, and not captured. The sample project
        // has access rules.
        let is_plain = |path: &&str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            !name.starts_with('.') && !path.starts_with("tests/fixtures/sample/")
        };
        let paths = listed
            .split_terminator('\0')
            .filter(is_plain)
            .map(|path| tree.work().join(path));
        tree.files = paths
            .filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file()))
            .collect();
        tree.count = tree.files.len();
        tree.name = format!("this repository, {} files", tree.count);
        Ok(tree)
    }

    fn empty(name: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self {
            folder,
            name,
            files: Vec::new(),
            count: 0,
            generated: false,
            judged: false,
            generation: 0,
        }
    }

    /// Returns a path next to the work tree.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Changes `count` files, spread over the tree.
    pub(crate) fn change(&mut self, count: usize) {
        self.generation += 1;
        let step = self.files.len() / count;
        for index in 0..count {
            let file = &self.files[(index * step + self.generation) % self.files.len()];
            let mut content = fs::read(file).unwrap();
            let line = format!("// generation {} of {index}\n", self.generation);
            content.extend_from_slice(line.as_bytes());
            fs::write(file, content).unwrap();
        }
    }

    /// git on this work tree, with its store `dir` next to it and default settings.
    pub(crate) fn git_command(&self, dir: &str) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_DIR", self.path(dir))
            .env("GIT_WORK_TREE", self.work())
            .args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"])
            .args(["-c", "gc.auto=0"])
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn git(&self, dir: &str, arguments: &[&str]) -> Vec<u8> {
        let done = self.git_command(dir).args(arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        done.stdout
    }

    /// The built program on this work tree, with its data directory `data` next to it.
    pub(crate) fn sightline(&self, data: &str, arguments: &[&str]) -> Vec<u8> {
        let done = Command::new(env!("CARGO_BIN_EXE_sightline"))
            .args(arguments)
            .arg("--storage")
            .arg(self.path(data))
            .current_dir(self.work())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        done.stdout
    }

    /// Creates a checkpoint by command.
    pub(crate) fn checkpoint(&self, data: &str) -> Vec<u8> {
        let work = self.work();
        let root = work.to_str().unwrap();
        self.sightline(data, &["checkpoint", "create", "--json", "--root", root])
    }
}

/// Generated trees shared by several parts; the large one is created once.
#[derive(Default)]
pub(crate) struct Trees(BTreeMap<usize, Tree>);

impl Trees {
    pub(crate) fn get(&mut self, count: usize) -> &mut Tree {
        self.0.entry(count).or_insert_with(|| {
            crate::progress(&format!("writing a tree of {count} files"));
            Tree::generate(count)
        })
    }
}

/// Syncs earlier writes, so that the next sync does not wait for them.
pub(crate) fn settle() {
    assert!(Command::new("sync").status().unwrap().success());
}
