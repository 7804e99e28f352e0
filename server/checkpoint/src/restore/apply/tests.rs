//! Saves by other programs while a file is restored.
#![cfg(unix)]

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
};

use tempfile::TempDir;

use super::{
    Installed, NewFile, StepOutcome, check_before, check_unchanged,
    displaced_files::{self, FileSlot},
    file_content::verify_content,
};
use crate::{
    restore::tests::crashes::at_crash_points,
    store::object::{Kind as Object, Mode, name_of},
    tree_diff::Leaf,
};
use sightline_base::fs::dir::{Dir, FileInfo};

struct Fixture {
    folder: TempDir,
    dir: Dir,
    /// Unique on this machine, as in a real restore: `/proc` lists the files of other tests too.
    temp_name: String,
}

const NAME: &str = "file";

fn leaf(mode: Mode, content: &str) -> Leaf {
    Leaf {
        mode,
        oid: name_of(Object::Blob, content.as_bytes()),
        seen: None,
    }
}

impl Fixture {
    fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), content).unwrap();
        let dir = Dir::open_root(folder.path()).unwrap();
        let unique = folder.path().file_name().unwrap().display();
        let temp_name = format!(".{unique}.sightline-restore");
        Self {
            folder,
            dir,
            temp_name,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn slot(&self) -> FileSlot<'_> {
        FileSlot {
            dir: &self.dir,
            name: OsStr::new(NAME),
            temp_name: OsStr::new(&self.temp_name),
        }
    }

    fn found(&self) -> FileInfo {
        self.dir.stat(OsStr::new(NAME)).unwrap().unwrap()
    }

    /// The expected entry of a plan: a file with `content` and a reliable stamp.
    fn seen(&self, content: &str) -> Leaf {
        Leaf {
            seen: Some((self.found().stamp, true)),
            ..leaf(Mode::File, content)
        }
    }

    /// Replaces the file with "new", and discards the displaced file or puts it back.
    fn replace(&self, before: &Leaf, found: FileInfo) -> Result<(), String> {
        let installed = self.install(before, found)?;
        self.settle(before, installed)
    }

    fn install(&self, before: &Leaf, found: FileInfo) -> Result<Option<Installed>, String> {
        let new = NewFile {
            slot: self.slot(),
            leaf: &leaf(Mode::File, "new"),
            content: b"new",
            withheld: 0,
        };
        match new.exchange(before, found)? {
            StepOutcome::Displaced { installed } => Ok(installed),
            StepOutcome::Done => panic!("nothing was displaced"),
        }
    }

    fn settle(&self, before: &Leaf, installed: Option<Installed>) -> Result<(), String> {
        let names = [OsStr::new(&self.temp_name).to_owned()].into();
        let is_open = !displaced_files::wait_until_closed(&names).is_empty();
        self.slot()
            .discard_or_put_back(Some(before), installed, is_open)
    }

    /// Saves as many editors do, with a rename.
    fn save(&self, content: &str) {
        fs::write(self.at("saved"), content).unwrap();
        fs::rename(self.at("saved"), self.at(NAME)).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

#[test]
fn a_changed_file_with_an_unchanged_stamp_is_neither_replaced_nor_deleted() {
    // As after a write through a shared mapping, which updates the stamp late.
    let fixture = Fixture::new("mapped");
    let before = fixture.seen("before");
    let why = fixture.replace(&before, fixture.found()).unwrap_err();
    assert!(why.contains("changed during the restore"), "{why}");
    assert_eq!(fixture.read(NAME).as_deref(), Some("mapped"));
    // Without a reliable stamp, the content is read first.
    let unsettled = Leaf {
        seen: None,
        ..before
    };
    let name = OsStr::new(NAME);
    let found = check_before(&fixture.dir, name, Some(&unsettled)).unwrap();
    let (_, found) = found.unwrap();
    check_unchanged(&fixture.dir, name, &unsettled, found).unwrap_err();
    fixture.install(&unsettled, found).map(drop).unwrap_err();
    assert_eq!(fixture.names(), [NAME]);
    // An unchanged file is replaced, and another hard link keeps the old content.
    fs::hard_link(fixture.at(NAME), fixture.at("second")).unwrap();
    let before = fixture.seen("mapped");
    fixture.replace(&before, fixture.found()).unwrap();
    assert_eq!(fixture.read(NAME).as_deref(), Some("new"));
    assert_eq!(fixture.read("second").as_deref(), Some("mapped"));
    assert_eq!(fixture.names(), [NAME, "second"]);
}

#[test]
fn a_save_at_any_point_of_a_replace_is_not_lost() {
    for at in 0.. {
        let fixture = Fixture::new("before");
        let (before, found) = (fixture.seen("before"), fixture.found());
        let saved = std::rc::Rc::new(std::cell::Cell::new(false));
        let (to, done) = (fixture.at(NAME), saved.clone());
        let mut acts: Vec<Option<Box<dyn FnOnce()>>> = Vec::new();
        acts.resize_with(at, || None);
        acts.push(Some(Box::new(move || {
            fs::write(to, "saved!").unwrap();
            done.set(true);
        })));
        at_crash_points(acts);
        let replaced = fixture.replace(&before, found);
        at_crash_points(Vec::new());
        assert_eq!(
            fixture.read(NAME).as_deref(),
            if saved.get() {
                Some("saved!")
            } else {
                Some("new")
            },
            "step {at}: {replaced:?}"
        );
        assert_eq!(fixture.names(), [NAME], "step {at}: {replaced:?}");
        if !saved.get() {
            replaced.unwrap();
            assert!(at > 3, "{at} steps");
            break;
        }
    }
}

#[test]
fn a_displaced_file_that_is_open_for_writing_is_put_back() {
    for mapped in [false, true] {
        let fixture = Fixture::new("before");
        let (before, found) = (fixture.seen("before"), fixture.found());
        let mut writer = File::options()
            .read(true)
            .write(true)
            .open(fixture.at(NAME))
            .unwrap();
        let installed = fixture.install(&before, found).unwrap();
        assert_eq!(fixture.read(NAME).as_deref(), Some("new"));
        if mapped {
            writer.write_all(b"saved!").unwrap();
        }
        if cfg!(target_os = "linux") {
            let why = fixture.settle(&before, installed).unwrap_err();
            assert!(
                why.contains(if mapped {
                    "changed during the restore"
                } else {
                    "open for writing"
                }),
                "{why}"
            );
            writer.write_all(b"saved!").unwrap();
            assert!(fixture.read(NAME).unwrap().contains("saved!"));
            assert_eq!(fixture.names(), [NAME]);
        }
    }
}

#[test]
fn of_two_saves_the_newest_keeps_the_name_and_the_other_is_kept_too() {
    let fixture = Fixture::new("saved!");
    let before = fixture.seen("before");
    let installed = fixture.install(&before, fixture.found()).unwrap();
    fixture.save("newest");
    let why = fixture.settle(&before, installed).unwrap_err();
    assert!(why.contains("kept as file.kept-1"), "{why}");
    assert_eq!(fixture.read(NAME).as_deref(), Some("newest"));
    assert_eq!(fixture.read("file.kept-1").as_deref(), Some("saved!"));
    // The new file was changed in place.
    let installed = fixture
        .install(&fixture.seen("before"), fixture.found())
        .unwrap();
    fs::write(fixture.at(NAME), "in place").unwrap();
    let why = fixture.settle(&before, installed).unwrap_err();
    assert!(why.contains("kept as file.kept-2"), "{why}");
    assert_eq!(fixture.read(NAME).as_deref(), Some("in place"));
    assert_eq!(fixture.read("file.kept-2").as_deref(), Some("newest"));
    // The new file was deleted.
    let installed = fixture
        .install(&fixture.seen("before"), fixture.found())
        .unwrap();
    fs::remove_file(fixture.at(NAME)).unwrap();
    let why = fixture.settle(&before, installed).unwrap_err();
    assert!(why.contains("kept as file.kept-3"), "{why}");
    assert_eq!(fixture.read("file.kept-3").as_deref(), Some("in place"));
    assert_eq!(
        fixture.names(),
        ["file.kept-1", "file.kept-2", "file.kept-3"]
    );
}

#[test]
fn names_are_exchanged_by_renames_without_an_atomic_exchange() {
    let fixture = Fixture::new("before");
    fs::write(fixture.at(&fixture.temp_name), "new").unwrap();
    fixture.slot().exchange_by_renames().unwrap();
    assert_eq!(fixture.read(NAME).as_deref(), Some("new"));
    assert_eq!(fixture.read(&fixture.temp_name).as_deref(), Some("before"));
    assert_eq!(fixture.names(), [&*fixture.temp_name, NAME]);
    // A file saved between the renames is kept, and the original one too.
    let to = fixture.at(NAME);
    at_crash_points(vec![Some(Box::new(move || {
        fs::write(to, "saved!").unwrap();
    }))]);
    let error = fixture.slot().exchange_by_renames().unwrap_err();
    at_crash_points(Vec::new());
    assert!(
        error.to_string().contains("the original file is now"),
        "{error}"
    );
    assert_eq!(fixture.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(fixture.names().len(), 3);
}

#[test]
fn a_failed_replace_leaves_no_temporary_file() {
    let fixture = Fixture::new("before");
    let (before, found) = (fixture.seen("before"), fixture.found());
    fixture.save("saved!");
    fixture.install(&before, found).map(drop).unwrap_err();
    assert_eq!(fixture.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(fixture.names(), [NAME]);
}

#[test]
fn verification_detects_other_shorter_and_longer_content() {
    let fixture = Fixture::new("written");
    let file = File::open(fixture.at(NAME)).unwrap();
    verify_content(&file, b"written").unwrap();
    for other in ["", "write", "written and more", "wr1tten"] {
        verify_content(&file, other.as_bytes()).unwrap_err();
    }
}

#[test]
fn a_new_file_has_the_permissions_and_attributes_of_the_replaced_one() {
    let fixture = Fixture::new("before");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(fixture.at(NAME), private).unwrap();
    #[cfg(target_os = "linux")]
    let has_attributes = rustix::fs::setxattr(
        fixture.at(NAME),
        "user.kept",
        b"value",
        rustix::fs::XattrFlags::empty(),
    )
    .is_ok();
    // Only root can change the owner, and in a user namespace only to users that are mapped there.
    let is_owned = std::os::unix::fs::chown(fixture.at(NAME), Some(12), Some(34)).is_ok();
    let new = NewFile {
        slot: fixture.slot(),
        leaf: &leaf(Mode::Executable, "new"),
        content: b"new",
        withheld: 0,
    };
    let mode = |name| fs::metadata(fixture.at(name)).unwrap().mode() & 0o777;
    let at = fixture.at(&fixture.temp_name);
    at_crash_points(vec![Some(Box::new(move || {
        let open_to = fs::metadata(at).unwrap().mode() & 0o777;
        assert_eq!(open_to, 0o600);
    }))]);
    let seen = fixture.seen("before");
    let StepOutcome::Displaced { installed } = new.exchange(&seen, fixture.found()).unwrap() else {
        panic!("nothing was displaced");
    };
    at_crash_points(Vec::new());
    fixture.settle(&seen, installed).unwrap();
    assert_eq!(fixture.read(NAME).as_deref(), Some("new"));
    assert_eq!(mode(NAME), 0o700);
    if is_owned {
        let metadata = fs::metadata(fixture.at(NAME)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12, 34));
    }
    #[cfg(target_os = "linux")]
    if has_attributes {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(fixture.at(NAME), "user.kept", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"value");
    }
}

/// Files that are written in place, under a lease.
#[cfg(target_os = "linux")]
mod in_place_writes {
    use super::{
        super::{displaced_files::link_kept_name, in_place, step_error::StepError},
        *,
    };
    use crate::restore::tests::crashes::{
        at_crash_point_under_lease, cancel_crash_point_under_lease,
    };
    use sightline_base::fs::lease::IS_REVOKED;

    /// Writes "new content" in place, or fails.
    fn write_in_place(fixture: &Fixture) -> Result<bool, StepError> {
        let before = fixture.seen("before");
        in_place::write(&fixture.slot(), &before, fixture.found(), b"new content")
    }

    #[test]
    fn a_save_waits_while_a_file_is_written_in_place() {
        for step in 0.. {
            let fixture = Fixture::new("before");
            let to = fixture.at(NAME);
            let (begin, begun) = std::sync::mpsc::channel();
            let is_over = std::thread::scope(|scope| {
                let save =
                    scope.spawn(move || begun.recv().map(|()| fs::write(to, "saved!").unwrap()));
                at_crash_point_under_lease(
                    step,
                    Box::new(move || {
                        begin.send(()).unwrap();
                        std::thread::sleep(std::time::Duration::from_millis(20));
                    }),
                );
                assert_eq!(write_in_place(&fixture), Ok(true), "step {step}");
                // If the point was not reached, the channel closes.
                cancel_crash_point_under_lease();
                save.join().unwrap().is_err()
            });
            let expected = if is_over { "new content" } else { "saved!" };
            assert_eq!(fixture.read(NAME).as_deref(), Some(expected), "step {step}");
            assert_eq!(fixture.names(), [NAME]);
            if is_over {
                assert!(step > 3, "{step} steps");
                break;
            }
        }
    }

    #[test]
    fn a_file_that_is_renamed_while_it_is_written_in_place_keeps_its_content() {
        for step in 0..4 {
            let fixture = Fixture::new("before");
            let (from, to) = (fixture.at(NAME), fixture.at("renamed"));
            at_crash_point_under_lease(
                step,
                Box::new(move || {
                    fs::rename(&from, to).unwrap();
                    fs::write(from, "saved!").unwrap();
                }),
            );
            let why = write_in_place(&fixture).unwrap_err().message;
            assert!(why.contains("changed during the restore"), "{why}");
            assert_eq!(fixture.read(NAME).as_deref(), Some("saved!"), "step {step}");
            assert_eq!(
                fixture.read("renamed").as_deref(),
                Some("before"),
                "step {step}"
            );
        }
    }

    /// At a step under the lease, the lease looks revoked, and `act` is done.
    fn revoke_lease(step: usize, act: impl FnOnce() + 'static) {
        let revoke = move || {
            act();
            IS_REVOKED.set(true);
        };
        at_crash_point_under_lease(step, Box::new(revoke));
    }

    #[test]
    fn a_file_is_not_overwritten_after_its_lease_was_revoked() {
        // Before anything is written.
        let fixture = Fixture::new("before");
        revoke_lease(0, || ());
        assert_eq!(write_in_place(&fixture), Ok(false));
        assert_eq!(fixture.read(NAME).as_deref(), Some("before"));
        IS_REVOKED.set(false);
        // Before the previous content is written back.
        let (from, to) = (fixture.at(NAME), fixture.at("renamed"));
        revoke_lease(4, move || fs::rename(from, to).unwrap());
        let error = write_in_place(&fixture).unwrap_err();
        assert!(
            error.message.contains("may have changed it since"),
            "{error:?}"
        );
        assert!(error.is_partly_written);
        assert_eq!(fixture.read("renamed").as_deref(), Some("new content"));
        IS_REVOKED.set(false);
    }

    #[test]
    fn special_files_are_not_written_in_place() {
        let fixture = Fixture::new("before");
        let set_user_id = fs::Permissions::from_mode(0o4644);
        fs::set_permissions(fixture.at(NAME), set_user_id).unwrap();
        assert_eq!(write_in_place(&fixture), Ok(false));
        fs::set_permissions(fixture.at(NAME), fs::Permissions::from_mode(0o644)).unwrap();
        // A program that waits for the lease would find the file busy.
        let executable = Leaf {
            mode: Mode::Executable,
            ..fixture.seen("before")
        };
        let (slot, found) = (fixture.slot(), fixture.found());
        assert_eq!(
            in_place::write(&slot, &executable, found, b"new"),
            Ok(false)
        );
        let rules = FileSlot {
            name: OsStr::new(".gitignore"),
            ..slot
        };
        let before = fixture.seen("before");
        assert_eq!(in_place::write(&rules, &before, found, b"new"), Ok(false));
        assert_eq!(write_in_place(&fixture), Ok(true));
    }

    #[test]
    fn a_file_with_a_long_name_is_kept_under_a_shorter_one() {
        let fixture = Fixture::new("before");
        let long = format!("{}é{}", "x".repeat(247), "y".repeat(6));
        fs::rename(fixture.at(NAME), fixture.at(&long)).unwrap();
        let kept_name = |number| format!("{}.kept-{number}", "x".repeat(247));
        // Of another file.
        fs::write(fixture.at(&kept_name(1)), "other").unwrap();
        for _ in 0..2 {
            let kept = link_kept_name(&fixture.dir, OsStr::new(&long)).unwrap();
            assert_eq!(kept.to_str().unwrap(), kept_name(2));
            assert_eq!(fixture.read(&kept_name(1)).as_deref(), Some("other"));
            assert_eq!(
                fixture.read(kept.to_str().unwrap()).as_deref(),
                Some("before")
            );
        }
    }

    #[test]
    fn only_a_closed_file_with_one_name_is_written_in_place() {
        let fixture = Fixture::new("before");
        let inode = || fs::metadata(fixture.at(NAME)).unwrap().ino();
        let was = inode();
        for other in [File::open(fixture.at(NAME)).unwrap(), {
            let mut options = File::options();
            options.write(true).open(fixture.at(NAME)).unwrap()
        }] {
            assert_eq!(write_in_place(&fixture), Ok(false), "{other:?}");
        }
        fs::hard_link(fixture.at(NAME), fixture.at("second")).unwrap();
        assert_eq!(write_in_place(&fixture), Ok(false));
        fs::remove_file(fixture.at("second")).unwrap();
        // Changed content with the same stamp, as after a write through a mapping.
        let other = Leaf {
            oid: name_of(Object::Blob, b"other"),
            ..fixture.seen("before")
        };
        let (slot, found) = (fixture.slot(), fixture.found());
        in_place::write(&slot, &other, found, b"new content").unwrap_err();
        let large = vec![b'x'; 2 << 20];
        let before = fixture.seen("before");
        assert_eq!(in_place::write(&slot, &before, found, &large), Ok(false));
        assert_eq!(fixture.read(NAME).as_deref(), Some("before"));
        // Opening a file for writing can change its times (overlayfs).
        let (before, found) = (fixture.seen("before"), fixture.found());
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::set_permissions(
            fixture.at(NAME),
            fs::metadata(fixture.at(NAME)).unwrap().permissions(),
        )
        .unwrap();
        assert_ne!(fixture.found(), found);
        assert_eq!(
            in_place::write(&fixture.slot(), &before, found, b"new content"),
            Ok(true)
        );
        assert_eq!(
            (fixture.read(NAME).as_deref(), inode()),
            (Some("new content"), was)
        );
    }

    #[test]
    fn a_file_that_is_open_for_reading_is_replaced() {
        let fixture = Fixture::new("before");
        let (before, found) = (fixture.seen("before"), fixture.found());
        let _reader = File::open(fixture.at(NAME)).unwrap();
        fixture.replace(&before, found).unwrap();
        assert_eq!(fixture.read(NAME).as_deref(), Some("new"));
    }
}
