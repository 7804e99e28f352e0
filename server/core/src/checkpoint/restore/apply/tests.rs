//! Files that somebody else writes while they are restored.
#![cfg(unix)]

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
};

use tempfile::TempDir;

use super::{
    super::super::{
        compare::Leaf,
        object::{Kind as Object, Mode, name_of},
        place::{Access, Dir, Found},
    },
    FileToWrite, replace, require_before, require_content, rights, take_out, verify,
};

#[test]
fn only_the_right_to_execute_changes() {
    assert_eq!(rights(0o100_640, true), 0o750);
    assert_eq!(rights(0o100_755, false), 0o644);
    assert_eq!(rights(0o100_711, true), 0o711);
    assert_eq!(rights(0o100_611, false), 0o611);
    assert_eq!(rights(0o104_755, false), 0o4644);
}

struct Ground {
    folder: TempDir,
    dir: Dir,
}

const NAME: &str = "file";
const BESIDE: &str = ".unfinished";

impl Ground {
    fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), content).unwrap();
        let dir = Dir::root(folder.path()).unwrap();
        Self { folder, dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn found(&self) -> Found {
        self.dir.look(OsStr::new(NAME)).unwrap().unwrap()
    }

    /// As a plan would have seen it, holding `content`.
    fn seen(&self, content: &str) -> Leaf {
        Leaf {
            mode: Mode::File,
            oid: name_of(Object::Blob, content.as_bytes()),
            seen: Some((self.found().stamp, true)),
        }
    }

    fn write_over(&self, before: &Leaf, found: Found) -> Result<(), String> {
        let file = FileToWrite {
            dir: &self.dir,
            name: OsStr::new(NAME),
            content: b"new",
            executable: false,
        };
        file.write_over((before, found), &|| None, &|| BESIDE.into())
    }

    /// As an editor does.
    fn save(&self, content: &str) {
        fs::write(self.at("saved"), content).unwrap();
        fs::rename(self.at("saved"), self.at(NAME)).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }
}

#[test]
fn a_file_of_the_same_stamp_and_other_content_is_neither_written_nor_deleted() {
    // As after a write through a shared mapping, which moves no stamp.
    let ground = Ground::new("mapped");
    let before = ground.seen("before");
    let name = OsStr::new(NAME);
    let found = require_before(&ground.dir, name, Some(&before)).unwrap();
    let found = found.unwrap();
    let why = ground.write_over(&before, found).unwrap_err();
    assert!(why.contains("changed meanwhile"), "{why}");
    assert_eq!(ground.read(NAME).as_deref(), Some("mapped"));
    require_content(&ground.dir, name, Some(&before), found).unwrap_err();
    // With a second name, a new file would take its place.
    fs::hard_link(ground.at(NAME), ground.at("second")).unwrap();
    let before = ground.seen("before");
    ground.write_over(&before, ground.found()).unwrap_err();
    assert_eq!(ground.read(NAME).as_deref(), Some("mapped"));
    assert_eq!(ground.read(BESIDE), None);
    // Where it is what was seen, both go.
    let before = ground.seen("mapped");
    ground.write_over(&before, ground.found()).unwrap();
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
    assert_eq!(ground.read("second").as_deref(), Some("mapped"));
}

#[test]
fn what_is_saved_before_a_new_file_takes_the_place_stays() {
    let ground = Ground::new("before");
    fs::hard_link(ground.at(NAME), ground.at("second")).unwrap();
    let (before, found) = (ground.seen("before"), ground.found());
    ground.save("saved!");
    ground.write_over(&before, found).unwrap_err();
    assert_eq!(ground.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(ground.read(BESIDE), None);
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_saved_at_the_last_moment_gets_its_place_back() {
    let ground = Ground::new("saved!");
    let before = ground.seen("before");
    let (name, beside) = (OsStr::new(NAME), OsStr::new(BESIDE));
    fs::write(ground.at(BESIDE), "new").unwrap();
    let ours = ground.dir.look(beside).unwrap();
    assert!(ground.dir.exchange(beside, name).unwrap());
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
    take_out(&ground.dir, beside, name, (&before, ours)).unwrap_err();
    assert_eq!(ground.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(ground.read(BESIDE), None);
    // Saved again before it got it back: the newest has the place.
    fs::write(ground.at(BESIDE), "new").unwrap();
    let ours = ground.dir.look(beside).unwrap();
    assert!(ground.dir.exchange(beside, name).unwrap());
    ground.save("newest");
    take_out(&ground.dir, beside, name, (&before, ours)).unwrap_err();
    assert_eq!(ground.read(NAME).as_deref(), Some("newest"));
    assert_eq!(ground.read(BESIDE), None);
    // Deleted before it got it back: what was saved is not lost.
    fs::write(ground.at(BESIDE), "new").unwrap();
    let ours = ground.dir.look(beside).unwrap();
    assert!(ground.dir.exchange(beside, name).unwrap());
    fs::remove_file(ground.at(NAME)).unwrap();
    let why = take_out(&ground.dir, beside, name, (&before, ours)).unwrap_err();
    assert!(why.contains(BESIDE), "{why}");
    assert_eq!(ground.read(BESIDE).as_deref(), Some("newest"));
}

#[test]
fn what_could_not_take_the_place_does_not_stay_behind() {
    let ground = Ground::new("saved!");
    fs::write(ground.at(BESIDE), "new").unwrap();
    let before = ground.seen("before");
    let (name, beside) = (OsStr::new(NAME), OsStr::new(BESIDE));
    replace(&ground.dir, beside, name, (&before, ground.found())).unwrap_err();
    assert_eq!(ground.read(NAME).as_deref(), Some("saved!"));
    assert_eq!(ground.read(BESIDE), None);
}

#[test]
fn what_is_verified_holds_what_was_written_and_nothing_more() {
    let ground = Ground::new("written");
    let file = ground.dir.open(OsStr::new(NAME), Access::Read).unwrap();
    verify(&file, b"written").unwrap();
    for other in ["", "write", "written and more", "wr1tten"] {
        verify(&file, other.as_bytes()).unwrap_err();
    }
}

#[test]
fn a_file_that_is_replaced_is_never_open_to_more_than_before() {
    let ground = Ground::new("before");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(ground.at(NAME), private).unwrap();
    fs::hard_link(ground.at(NAME), ground.at("second")).unwrap();
    let file = FileToWrite {
        dir: &ground.dir,
        name: OsStr::new(NAME),
        content: b"new",
        executable: true,
    };
    file.create(OsStr::new(BESIDE), Access::CreatePrivate)
        .unwrap();
    let mode = |name| fs::metadata(ground.at(name)).unwrap().mode() & 0o777;
    assert_eq!(mode(BESIDE), 0o600);
    fs::remove_file(ground.at(BESIDE)).unwrap();
    ground
        .write_over(&ground.seen("before"), ground.found())
        .unwrap();
    assert_eq!(mode(NAME), 0o600);
    assert_eq!(ground.read(NAME).as_deref(), Some("new"));
}
