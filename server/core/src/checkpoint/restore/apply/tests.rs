//! Files that somebody else writes while they are restored.
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
    super::{
        super::{
            store::object::{Kind as Object, Mode, name_of},
            tree_diff::Leaf,
        },
        crash_tests::{at_step_under_lease, at_steps, cancel_step_under_lease},
        displaced, in_place,
    },
    NewFile, Put, Taken, require_before, require_unchanged, verify,
};
use crate::fs::dir::{Dir, Found};

struct Ground {
    folder: TempDir,
    dir: Dir,
    /// Unique on this machine, as in a restore.
    beside: String,
}

const NAME: &str = "file";

fn leaf(mode: Mode, content: &str) -> Leaf {
    Leaf {
        mode,
        oid: name_of(Object::Blob, content.as_bytes()),
        seen: None,
    }
}

impl Ground {
    fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), content).unwrap();
        let dir = Dir::root(folder.path()).unwrap();
        let unique = folder.path().file_name().unwrap().display();
        let beside = format!(".{unique}.sightline-restore");
        Self {
            folder,
            dir,
            beside,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn place(&self) -> displaced::Place<'_> {
        displaced::Place {
            dir: &self.dir,
            name: OsStr::new(NAME),
            beside: OsStr::new(&self.beside),
        }
    }

    fn found(&self) -> Found {
        self.dir.look(OsStr::new(NAME)).unwrap().unwrap()
    }

    /// As a plan would have seen it, holding `content`, by a stamp that tells.
    fn seen(&self, content: &str) -> Leaf {
        Leaf {
            seen: Some((self.found().stamp, true)),
            ..leaf(Mode::File, content)
        }
    }

    /// Replaces it with "new", and settles what was taken out.
    fn replace(&self, before: &Leaf, found: Found) -> Result<(), String> {
        let put = self.put(before, found)?;
        self.settle(before, put)
    }

    fn put(&self, before: &Leaf, found: Found) -> Result<Option<Put>, String> {
        let new = NewFile {
            at: self.place(),
            leaf: &leaf(Mode::File, "new"),
            content: b"new",
            withheld: 0,
        };
        match new.exchange(before, found)? {
            Taken::Out { put } => Ok(put),
            Taken::Done => panic!("nothing was taken out"),
        }
    }

    fn settle(&self, before: &Leaf, put: Option<Put>) -> Result<(), String> {
        let names = [OsStr::new(&self.beside).to_owned()].into();
        let is_open = !displaced::open_for_writing(&names).is_empty();
        self.place().settle(Some(before), put, is_open)
    }

    /// As an editor does.
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
fn a_file_of_the_same_stamp_and_other_content_is_neither_replaced_nor_deleted() {
    // As after a write through a shared mapping, which moves no stamp.
    let ground = Ground::new("mapped");
    let before = ground.seen("before");
    let why = ground.replace(&before, ground.found()).unwrap_err();
    assert!(why.contains("changed meanwhile"), "{why}");
    assert_eq!(ground.read(NAME).as_deref(), Some("mapped"));
    // One whose stamp tells nothing is read first.
    let unsettled = Leaf {
        seen: None,
        ..before
    };
    let name = OsStr::new(NAME);
    let found = require_before(&ground.dir, name, Some(&unsettled)).unwrap();
    let (_, found) = found.unwrap();
    require_unchanged(&ground.dir, name, &unsettled, found).unwrap_err();
    ground.put(&unsettled, found).map(drop).unwrap_err();
    assert_eq!(ground.names(), [NAME]);
    // Where it is what was seen, it goes, and another name of it stays.
    fs::hard_link(ground.at(NAME), ground.at("second")).unwrap();
    let before = ground.seen("mapped");
    ground.replace(&before, ground.found()).unwrap();
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
    assert_eq!(ground.read("second").as_deref(), Some("mapped"));
    assert_eq!(ground.names(), [NAME, "second"]);
}

#[test]
fn what_is_saved_at_any_step_of_a_restore_is_not_lost() {
    for at in 0.. {
        let ground = Ground::new("before");
        let (before, found) = (ground.seen("before"), ground.found());
        let saved = std::rc::Rc::new(std::cell::Cell::new(false));
        let (to, done) = (ground.at(NAME), saved.clone());
        let mut acts: Vec<Option<Box<dyn FnOnce()>>> = Vec::new();
        acts.resize_with(at, || None);
        acts.push(Some(Box::new(move || {
            fs::write(to, "saved!").unwrap();
            done.set(true);
        })));
        at_steps(acts);
        let replaced = ground.replace(&before, found);
        at_steps(Vec::new());
        assert_eq!(
            ground.read(NAME).as_deref(),
            if saved.get() {
                Some("saved!")
            } else {
                Some("new")
            },
            "step {at}: {replaced:?}"
        );
        assert_eq!(ground.names(), [NAME], "step {at}: {replaced:?}");
        if !saved.get() {
            replaced.unwrap();
            assert!(at > 3, "{at} steps");
            break;
        }
    }
}

/// Writes "new" in place, or fails.
#[cfg(target_os = "linux")]
fn write_in_place(ground: &Ground) -> Result<bool, String> {
    let before = ground.seen("before");
    in_place::write(&ground.place(), &before, ground.found(), b"new content")
}

#[test]
#[cfg(target_os = "linux")]
fn a_save_waits_while_a_file_is_written_in_place() {
    for step in 0.. {
        let ground = Ground::new("before");
        let to = ground.at(NAME);
        let (begin, begun) = std::sync::mpsc::channel();
        let is_over = std::thread::scope(|scope| {
            let save = scope.spawn(move || begun.recv().map(|()| fs::write(to, "saved!").unwrap()));
            at_step_under_lease(
                step,
                Box::new(move || {
                    begin.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }),
            );
            assert_eq!(write_in_place(&ground), Ok(true), "step {step}");
            // Not acted any more: the channel closes.
            cancel_step_under_lease();
            save.join().unwrap().is_err()
        });
        let expected = if is_over { "new content" } else { "saved!" };
        assert_eq!(ground.read(NAME).as_deref(), Some(expected), "step {step}");
        assert_eq!(ground.names(), [NAME]);
        if is_over {
            assert!(step > 3, "{step} steps");
            break;
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_renamed_while_it_is_written_in_place_keeps_its_content() {
    for step in 0..4 {
        let ground = Ground::new("before");
        let (from, to) = (ground.at(NAME), ground.at("renamed"));
        at_step_under_lease(
            step,
            Box::new(move || {
                fs::rename(&from, to).unwrap();
                fs::write(from, "saved!").unwrap();
            }),
        );
        let why = write_in_place(&ground).unwrap_err();
        assert!(why.contains("changed meanwhile"), "{why}");
        assert_eq!(ground.read(NAME).as_deref(), Some("saved!"), "step {step}");
        assert_eq!(
            ground.read("renamed").as_deref(),
            Some("before"),
            "step {step}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn only_a_file_nobody_else_can_reach_is_written_in_place() {
    let ground = Ground::new("before");
    let inode = || fs::metadata(ground.at(NAME)).unwrap().ino();
    let was = inode();
    for other in [File::open(ground.at(NAME)).unwrap(), {
        let mut options = File::options();
        options.write(true).open(ground.at(NAME)).unwrap()
    }] {
        assert_eq!(write_in_place(&ground), Ok(false), "{other:?}");
    }
    fs::hard_link(ground.at(NAME), ground.at("second")).unwrap();
    assert_eq!(write_in_place(&ground), Ok(false));
    fs::remove_file(ground.at("second")).unwrap();
    // Another content than the stamp says, as after a write through a mapping.
    let other = Leaf {
        oid: name_of(Object::Blob, b"other"),
        ..ground.seen("before")
    };
    let (place, found) = (ground.place(), ground.found());
    in_place::write(&place, &other, found, b"new content").unwrap_err();
    let large = vec![b'x'; 2 << 20];
    let before = ground.seen("before");
    assert_eq!(in_place::write(&place, &before, found, &large), Ok(false));
    assert_eq!(ground.read(NAME).as_deref(), Some("before"));
    assert_eq!(write_in_place(&ground), Ok(true));
    assert_eq!(
        (ground.read(NAME).as_deref(), inode()),
        (Some("new content"), was)
    );
}

#[test]
fn what_is_still_open_for_writing_gets_its_place_back() {
    for mapped in [false, true] {
        let ground = Ground::new("before");
        let (before, found) = (ground.seen("before"), ground.found());
        let mut writer = File::options()
            .read(true)
            .write(true)
            .open(ground.at(NAME))
            .unwrap();
        let put = ground.put(&before, found).unwrap();
        assert_eq!(ground.read(NAME).as_deref(), Some("new"));
        if mapped {
            writer.write_all(b"saved!").unwrap();
        }
        if cfg!(target_os = "linux") {
            let why = ground.settle(&before, put).unwrap_err();
            assert!(
                why.contains(if mapped {
                    "changed meanwhile"
                } else {
                    "open for writing"
                }),
                "{why}"
            );
            writer.write_all(b"saved!").unwrap();
            assert!(ground.read(NAME).unwrap().contains("saved!"));
            assert_eq!(ground.names(), [NAME]);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_keeps_nothing_from_being_replaced() {
    let ground = Ground::new("before");
    let (before, found) = (ground.seen("before"), ground.found());
    let _reader = File::open(ground.at(NAME)).unwrap();
    ground.replace(&before, found).unwrap();
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
}

#[test]
fn of_two_saves_the_newest_has_the_place_and_the_other_is_kept() {
    let ground = Ground::new("saved!");
    let before = ground.seen("before");
    let put = ground.put(&before, ground.found()).unwrap();
    ground.save("newest");
    let why = ground.settle(&before, put).unwrap_err();
    assert!(why.contains("kept as file.kept-1"), "{why}");
    assert_eq!(ground.read(NAME).as_deref(), Some("newest"));
    assert_eq!(ground.read("file.kept-1").as_deref(), Some("saved!"));
    // In the same file.
    let put = ground.put(&ground.seen("before"), ground.found()).unwrap();
    fs::write(ground.at(NAME), "in place").unwrap();
    let why = ground.settle(&before, put).unwrap_err();
    assert!(why.contains("kept as file.kept-2"), "{why}");
    assert_eq!(ground.read(NAME).as_deref(), Some("in place"));
    assert_eq!(ground.read("file.kept-2").as_deref(), Some("newest"));
    // Deleted after it was saved.
    let put = ground.put(&ground.seen("before"), ground.found()).unwrap();
    fs::remove_file(ground.at(NAME)).unwrap();
    let why = ground.settle(&before, put).unwrap_err();
    assert!(why.contains("kept as file.kept-3"), "{why}");
    assert_eq!(ground.read("file.kept-3").as_deref(), Some("in place"));
    assert_eq!(
        ground.names(),
        ["file.kept-1", "file.kept-2", "file.kept-3"]
    );
}

#[test]
fn names_are_exchanged_by_steps_where_the_system_cannot() {
    let ground = Ground::new("before");
    fs::write(ground.at(&ground.beside), "new").unwrap();
    ground.place().exchange_by_steps().unwrap();
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
    assert_eq!(ground.read(&ground.beside).as_deref(), Some("before"));
    assert_eq!(ground.names(), [&*ground.beside, NAME]);
    // Something is saved between the steps: it stays, and what it replaced too.
    let to = ground.at(NAME);
    at_steps(vec![Some(Box::new(move || {
        fs::write(to, "saved!").unwrap();
    }))]);
    let error = ground.place().exchange_by_steps().unwrap_err();
    at_steps(Vec::new());
    assert!(
        error.to_string().contains("what stood there is now"),
        "{error}"
    );
    assert_eq!(ground.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(ground.names().len(), 3);
}

#[test]
fn what_could_not_take_the_place_does_not_stay_behind() {
    let ground = Ground::new("before");
    let (before, found) = (ground.seen("before"), ground.found());
    ground.save("saved!");
    ground.put(&before, found).map(drop).unwrap_err();
    assert_eq!(ground.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(ground.names(), [NAME]);
}

#[test]
fn what_is_verified_holds_what_was_written_and_nothing_more() {
    let ground = Ground::new("written");
    let file = File::open(ground.at(NAME)).unwrap();
    verify(&file, b"written").unwrap();
    for other in ["", "write", "written and more", "wr1tten"] {
        verify(&file, other.as_bytes()).unwrap_err();
    }
}

#[test]
fn a_new_file_has_the_rights_and_attributes_of_the_one_it_replaces() {
    let ground = Ground::new("before");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(ground.at(NAME), private).unwrap();
    #[cfg(target_os = "linux")]
    let has_attributes = rustix::fs::setxattr(
        ground.at(NAME),
        "user.kept",
        b"value",
        rustix::fs::XattrFlags::empty(),
    )
    .is_ok();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(ground.at(NAME), Some(12), Some(34)).unwrap();
    }
    let new = NewFile {
        at: ground.place(),
        leaf: &leaf(Mode::Executable, "new"),
        content: b"new",
        withheld: 0,
    };
    let mode = |name| fs::metadata(ground.at(name)).unwrap().mode() & 0o777;
    let at = ground.at(&ground.beside);
    at_steps(vec![Some(Box::new(move || {
        let open_to = fs::metadata(at).unwrap().mode() & 0o777;
        assert_eq!(open_to, 0o600);
    }))]);
    let seen = ground.seen("before");
    let Taken::Out { put } = new.exchange(&seen, ground.found()).unwrap() else {
        panic!("nothing was taken out");
    };
    at_steps(Vec::new());
    ground.settle(&seen, put).unwrap();
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
    assert_eq!(mode(NAME), 0o700);
    if is_root {
        let metadata = fs::metadata(ground.at(NAME)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12, 34));
    }
    #[cfg(target_os = "linux")]
    if has_attributes {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(ground.at(NAME), "user.kept", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"value");
    }
}
