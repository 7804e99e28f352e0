//! Finds files that a process can still write to.
//!
//! A process that opened a file can write to it after the file was renamed or unlinked. On Linux,
//! `/proc` lists the open and mapped files of each process of this user. Other systems report
//! none.

use std::{collections::HashSet, ffi::OsString};

/// Returns the names among `names` of files that a process has open for writing or
/// mapped shared and writable. `names` are unique on this machine and end with `ending`.
pub(super) fn open_for_writing(ending: &str, names: &HashSet<OsString>) -> HashSet<OsString> {
    if names.is_empty() {
        return HashSet::new();
    }
    #[cfg(target_os = "linux")]
    return linux::open_for_writing(ending, names);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = ending;
        HashSet::new()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        collections::HashSet,
        ffi::{OsStr, OsString},
        fs,
        os::unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::PermissionsExt,
        },
        path::Path,
    };

    use memchr::memmem::Finder;
    use rayon::prelude::*;
    use sightline_base::thread_pool;

    pub(super) fn open_for_writing(ending: &str, names: &HashSet<OsString>) -> HashSet<OsString> {
        let finder = Finder::new(ending);
        let Ok(processes) = fs::read_dir("/proc") else {
            return HashSet::new();
        };
        let is_number = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
        let processes: Vec<_> = processes
            .flatten()
            .filter(|entry| is_number(&entry.file_name()))
            .map(|entry| entry.path())
            .collect();
        thread_pool::start();
        let found = processes.par_iter().flat_map_iter(|process| {
            let mut found = opened(process, &finder);
            found.extend(mapped(process, &finder));
            found
        });
        found.filter(|name| names.contains(name)).collect()
    }

    /// Returns the names of files that the process has open for writing.
    fn opened(process: &Path, finder: &Finder<'_>) -> Vec<OsString> {
        // Other users' processes cannot be inspected.
        let Ok(files) = fs::read_dir(process.join("fd")) else {
            return Vec::new();
        };
        let name = |entry: fs::DirEntry| {
            let target = fs::read_link(entry.path()).ok()?;
            finder.find(target.as_os_str().as_bytes())?;
            // The permission bits of the entry are the access mode of the descriptor.
            let mode = entry.metadata().ok()?.permissions().mode();
            (mode & 0o200 != 0).then(|| target.file_name().map(OsStr::to_owned))?
        };
        files.flatten().filter_map(name).collect()
    }

    /// Returns the names of files that the process has mapped shared and writable.
    fn mapped(process: &Path, finder: &Finder<'_>) -> Vec<OsString> {
        let Ok(maps) = fs::read(process.join("maps")) else {
            return Vec::new();
        };
        if finder.find(&maps).is_none() {
            return Vec::new();
        }
        // Fields: address permissions offset device inode path.
        let name = |line: &[u8]| {
            let permissions = line.split(|byte| *byte == b' ').nth(1)?;
            finder.find(line)?;
            let name = line.rsplit(|byte| *byte == b'/').next()?;
            let is_written = permissions.contains(&b'w') && permissions.ends_with(b"s");
            is_written.then(|| OsString::from_vec(name.to_vec()))
        };
        maps.split(|byte| *byte == b'\n').filter_map(name).collect()
    }
}
