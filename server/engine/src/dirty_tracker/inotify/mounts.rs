//! Detects file systems that are mounted or unmounted below a root. A mount hides a watched
//! directory behind another one without any event of either.

use std::{
    ffi::OsString,
    fs::{self, File},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use sightline_base::escape::decode_octal;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

const MOUNT_TABLE: &str = "/proc/self/mountinfo";

/// The mounts at and below a directory.
pub(crate) struct Mounts {
    root: PathBuf,
    /// Reports changes of the mount table.
    table: Option<File>,
    seen: Vec<Mount>,
}

/// Id of a mount, and its path.
type Mount = (String, PathBuf);

impl Mounts {
    pub(crate) fn below(root: &Path) -> Self {
        let table = File::open(MOUNT_TABLE).ok();
        let mut mounts = Self {
            root: root.to_path_buf(),
            table,
            seen: Vec::new(),
        };
        mounts.is_table_changed();
        mounts.seen = mounts.read();
        mounts
    }

    /// Returns whether the mounts changed since the last call.
    pub(crate) fn have_changed(&mut self) -> bool {
        if !self.is_table_changed() {
            return false;
        }
        let now = self.read();
        std::mem::replace(&mut self.seen, now) != self.seen
    }

    /// Returns whether any mount of the system changed since the last call.
    fn is_table_changed(&self) -> bool {
        let Some(table) = &self.table else {
            return false;
        };
        let mut polled = [PollFd::new(table, PollFlags::PRI)];
        loop {
            match poll(&mut polled, Some(&Timespec::default())) {
                Err(Errno::INTR) => {}
                Err(_) => return true,
                Ok(_) => {
                    return polled[0]
                        .revents()
                        .intersects(PollFlags::PRI | PollFlags::ERR);
                }
            }
        }
    }

    fn read(&self) -> Vec<Mount> {
        let table = fs::read(MOUNT_TABLE).unwrap_or_default();
        let mounts = table.split(|byte| *byte == b'\n').filter_map(mount_of);
        mounts
            .filter(|(_, path)| path.starts_with(&self.root))
            .collect()
    }
}

/// Parses a line of the mount table: id, parent, device, root, path, and more.
fn mount_of(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = String::from_utf8(fields.next()?.to_vec()).ok()?;
    Some((id, OsString::from_vec(decode_octal(fields.nth(3)?)).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let line = b"36 35 98:0 /mnt1 /a\\040b\\134 rw,noatime master:1 - ext3 /dev/root rw";
        let wanted = ("36".to_owned(), PathBuf::from("/a b\\"));
        assert_eq!(mount_of(line), Some(wanted));
        assert_eq!(mount_of(b""), None);
        assert!(Mounts::below(Path::new("/")).seen.len() > 1);
    }
}
