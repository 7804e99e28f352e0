//! Saves by other programs while a restore writes the same files: no save is lost, and the reported
//! outcomes are true.
//!
//! To run the tests at full size: `RESTORE_SAVES=20000 RESTORE_LARGE_SAVES=300 cargo test
//! --release -p sightline-checkpoint --lib restore::tests::concurrent_saves -- --nocapture`.
#![cfg(unix)]

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use sightline_base::path::RelPath;

use super::races::Fixture;
use crate::{
    store::object::{Kind, Oid, name_of},
    tree_diff::find,
};

/// How an editor saves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SaveMethod {
    Truncate,
    InPlace,
    InPlaceSameSize,
    Mapped,
    RenameOver,
    DeleteAndCreate,
}

const SAVE_METHODS: [SaveMethod; 6] = [
    SaveMethod::Truncate,
    SaveMethod::InPlace,
    SaveMethod::InPlaceSameSize,
    SaveMethod::Mapped,
    SaveMethod::RenameOver,
    SaveMethod::DeleteAndCreate,
];

/// Python program that writes files through a shared mapping. Each input line has a path, a size
/// and a text.
const MAPPER: &str = "
import mmap, sys
for line in sys.stdin:
    path, size, text = line.rstrip('\\n').split('\\t')
    size = int(size)
    with open(path, 'r+b') as file:
        if len(file.read()) != size:
            file.truncate(size)
        with mmap.mmap(file.fileno(), size) as mapped:
            mapped[:] = (text.encode() * (size // len(text) + 1))[:size]
    print('saved', flush=True)
";

/// Saves files with one method.
struct Saver {
    method: SaveMethod,
    mapper: Option<(Child, BufReader<std::process::ChildStdout>)>,
}

impl Saver {
    /// Returns `None` if this machine does not support the method.
    fn new(method: SaveMethod) -> Option<Self> {
        let mapper = (method == SaveMethod::Mapped).then(|| {
            let mut child = Command::new("python3")
                .args(["-c", MAPPER])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            let answers = BufReader::new(child.stdout.take()?);
            Some((child, answers))
        });
        match mapper {
            Some(None) => None,
            mapper => Some(Self {
                method,
                mapper: mapper.flatten(),
            }),
        }
    }

    fn save(&mut self, path: &Path, text: &str, size: usize) {
        let content = content(text, size);
        match self.method {
            SaveMethod::Truncate => fs::write(path, content).unwrap(),
            SaveMethod::InPlace | SaveMethod::InPlaceSameSize => {
                let mut file = File::options().write(true).open(path).unwrap();
                file.write_all(&content).unwrap();
                if self.method == SaveMethod::InPlace {
                    file.set_len(content.len() as u64).unwrap();
                }
            }
            SaveMethod::Mapped => {
                let (child, answers) = self.mapper.as_mut().unwrap();
                let line = format!("{}\t{size}\t{text}\n", path.display());
                let stdin = child.stdin.as_mut().unwrap();
                stdin.write_all(line.as_bytes()).unwrap();
                answers.read_line(&mut String::new()).unwrap();
            }
            SaveMethod::RenameOver => {
                let temporary = path.with_extension("saving");
                fs::write(&temporary, content).unwrap();
                fs::rename(temporary, path).unwrap();
            }
            SaveMethod::DeleteAndCreate => {
                let _ = fs::remove_file(path);
                fs::write(path, content).unwrap();
            }
        }
    }

    /// Returns the size of the content to save over a file of `size`.
    fn size(&self, size: usize) -> usize {
        match self.method {
            SaveMethod::InPlaceSameSize | SaveMethod::Mapped => size,
            _ => size - 1,
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.mapper.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn content(text: &str, size: usize) -> Vec<u8> {
    text.bytes().cycle().take(size).collect()
}

/// Outcomes of saves.
#[derive(Debug, Default)]
struct Counts {
    saves: usize,
    restored_under: usize,
    left_alone: usize,
    kept: usize,
    lost: Vec<String>,
}

/// Restores `files` files of a size repeatedly, and saves each file once at a random moment of
/// each restore.
fn restore_while_saving(
    method: SaveMethod,
    (files, size): (usize, usize),
    saves: usize,
    time: Duration,
) -> Counts {
    let mut counts = Counts::default();
    let Some(mut saver) = Saver::new(method) else {
        println!("skipped {method:?}: python3 is not available");
        return counts;
    };
    let fixture = Fixture::new();
    let path = |at: usize| fixture.root.join(format!("f{at}"));
    let then = |at: usize| content(&format!("then {at} "), size);
    for at in 0..files {
        fs::write(path(at), then(at)).unwrap();
    }
    let id = fixture.create();
    let (mut random, mut lasts) = (0x9e37_79b9_u64, Duration::from_millis(20));
    let begin = Instant::now();
    for round in 0.. {
        if counts.saves >= saves || begin.elapsed() > time {
            break;
        }
        for at in 0..files {
            fs::write(path(at), content(&format!("now {round} {at} "), size)).unwrap();
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let text = |at: usize| format!("saved {round} {at} ");
        // Half of the rounds save after the first file is restored, half at any moment.
        let restoring = AtomicBool::new(false);
        let waits = lasts.mul_f64((random % 1000) as f64 / 1000.0);
        let is_early = random & 0x1000 == 0;
        let start = Instant::now();
        let restored = thread::scope(|scope| {
            let saves = scope.spawn(|| {
                while match is_early {
                    true => start.elapsed() < waits,
                    false => !restoring.load(Ordering::SeqCst),
                } {
                    thread::yield_now();
                }
                for at in 0..files {
                    let at = (at + random as usize) % files;
                    let size = saver.size(size);
                    saver.save(&path(at), &text(at), size);
                }
            });
            let restored = fixture.restore_while(id, &|progress| {
                if progress.stage == "restoring" {
                    restoring.store(true, Ordering::SeqCst);
                }
            });
            lasts = start.elapsed();
            restoring.store(true, Ordering::SeqCst);
            saves.join().unwrap();
            restored.unwrap()
        });
        let outcomes: BTreeMap<_, _> = restored
            .outcomes
            .into_iter()
            .map(|outcome| (outcome.path, outcome.error))
            .collect();
        for at in 0..files {
            counts.saves += 1;
            let name = RelPath::new(Path::new(&format!("f{at}"))).unwrap();
            let saved = content(&text(at), saver.size(size));
            let current = fs::read(path(at)).unwrap();
            let error = outcomes.get(&name).cloned().flatten();
            let kept: Vec<_> = (1..9)
                .map(|number| fixture.root.join(format!("f{at}.kept-{number}")))
                .filter(|kept| kept.exists())
                .collect();
            let is_reported = error.as_ref().is_some_and(|why| why.contains(".kept-"));
            let is_kept = is_reported && kept.iter().any(|kept| fs::read(kept).unwrap() == saved);
            match (&error, current == saved) {
                (Some(_), true) => counts.left_alone += 1,
                (None, true) => {}
                (_, false) if is_kept => counts.kept += 1,
                (_, false)
                    if restored
                        .undo
                        .is_some_and(|undo| holds(&fixture, undo, &name, &saved)) =>
                {
                    counts.restored_under += 1;
                }
                _ => counts
                    .lost
                    .push(format!("round {round} f{at}: lost; {error:?}")),
            }
            // The reported outcome must be true: restored, or left as it was.
            if (current == then(at)) != error.is_none() && current != saved {
                counts.lost.push(format!(
                    "round {round} f{at}: reported {error:?}, which is wrong"
                ));
            }
            for kept in kept {
                fs::remove_file(kept).unwrap();
            }
        }
        let left = fs::read_dir(&fixture.root).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left.filter(|name| name.contains("sightline")).collect();
        assert_eq!(left, Vec::<String>::new(), "round {round}");
    }
    counts
}

/// Returns whether the checkpoint has this content at the path.
fn holds(fixture: &Fixture, id: Oid, path: &RelPath, content: &[u8]) -> bool {
    let tree = fixture.checkpoints.get(id).unwrap().tree;
    let reader = fixture.checkpoints.repository().unwrap().unwrap().odb();
    let leaf = find(&reader, tree, path).unwrap();
    leaf.is_some_and(|leaf| leaf.oid == name_of(Kind::Blob, content))
}

fn number(name: &str) -> Option<usize> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn no_save_during_a_restore_is_lost() {
    let all = number("RESTORE_SAVES");
    for method in SAVE_METHODS {
        let saves = all.map_or(1000, |all| all.div_ceil(SAVE_METHODS.len()));
        let time = Duration::from_secs(if all.is_some() { 600 } else { 1 });
        let counts = restore_while_saving(method, (40, 300), saves, time);
        println!("{method:?}: {counts:?}");
        assert_eq!(counts.lost, Vec::<String>::new(), "{method:?}");
    }
}

#[test]
fn no_save_of_a_large_file_during_its_restore_is_lost() {
    let all = number("RESTORE_LARGE_SAVES");
    for method in SAVE_METHODS {
        let saves = all.map_or(4, |all| all.div_ceil(SAVE_METHODS.len()));
        let time = Duration::from_secs(if all.is_some() { 900 } else { 2 });
        let size = if all.is_some() { 18 << 20 } else { 1 << 20 };
        let counts = restore_while_saving(method, (1, size), saves, time);
        println!("{method:?}: {counts:?}");
        assert_eq!(counts.lost, Vec::<String>::new(), "{method:?}");
    }
}
