//! Write leases on files. While a lease is held, no other process has the file open; a process that
//! tries to open or truncate it waits until the lease is dropped.

use std::fs::File;

/// A write lease on an open file, released when dropped.
#[derive(Debug)]
pub(crate) struct Lease<'a> {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "leases exist on Linux only")
    )]
    file: &'a File,
}

impl<'a> Lease<'a> {
    /// Leases `file`, which is open for writing. Returns `None` if another process or another
    /// descriptor has it open or mapped, or if leases are not supported, not permitted, or not
    /// binding for all processes (network and FUSE file systems).
    ///
    /// The kernel revokes a lease that is held for longer than `/proc/sys/fs/lease-break-time`
    /// (45 s) while another process waits.
    pub(crate) fn take(file: &'a File) -> Option<Self> {
        #[cfg(target_os = "linux")]
        return (linux::is_local(file) && linux::take(file)).then_some(Self { file });
        #[cfg(not(target_os = "linux"))]
        {
            let _ = file;
            None
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        linux::release(self.file);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs::File, os::fd::AsRawFd};

    /// Magic numbers from statfs(2) of file systems that only this kernel accesses: ext2 to ext4, XFS, Btrfs, F2FS, bcachefs, tmpfs, overlayfs.
    const LOCAL: [u32; 7] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0xf2f5_2010,
        0xca45_1a4e,
        0x0102_1994,
        0x794c_7630,
    ];

    /// `fcntl` command that sets the signal of a file; libc does not define it on every target.
    const F_SETSIG: libc::c_int = 10;

    pub(super) fn is_local(file: &File) -> bool {
        let magic = rustix::fs::fstatfs(file).map(|system| system.f_type);
        magic.is_ok_and(|magic| {
            LOCAL
                .iter()
                .any(|local| i128::from(*local) == i128::from(magic))
        })
    }

    #[expect(unsafe_code, reason = "no maintained crate wraps these commands")]
    pub(super) fn take(file: &File) -> bool {
        let descriptor = file.as_raw_fd();
        // The kernel signals the holder when another process waits. SIGIO would kill this
        // process; SIGURG is ignored by default.
        // SAFETY: the descriptor is open for as long as `file` is borrowed; both
        // commands take an integer and touch no memory.
        unsafe {
            libc::fcntl(descriptor, F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK) == 0
        }
    }

    #[expect(unsafe_code, reason = "no maintained crate wraps this command")]
    pub(super) fn release(file: &File) {
        // SAFETY: as in `take`. Closing the file would release the lease too.
        let _ = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{fs, fs::File, io::Write, thread, time::Duration};

    use super::Lease;
    use crate::fs::retry_while_leased;

    #[test]
    fn a_file_that_is_open_elsewhere_is_not_leased() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "content").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        for is_written in [false, true] {
            let mut options = File::options();
            let other = options.read(true).write(is_written).open(&path).unwrap();
            assert!(Lease::take(&file).is_none(), "{other:?}");
        }
        assert!(Lease::take(&file).is_some());
        assert!(Lease::take(&file).is_some(), "released by the drop");
    }

    #[test]
    fn opening_a_leased_file_waits_for_its_release() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "content").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let lease = Lease::take(&file).unwrap();
        thread::scope(|scope| {
            let truncated = scope.spawn(|| fs::write(&path, "saved"));
            let nonblocking = scope.spawn(|| {
                retry_while_leased(|| {
                    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
                    Ok(rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?)
                })
            });
            thread::sleep(Duration::from_millis(30));
            assert!(!truncated.is_finished() && !nonblocking.is_finished());
            (&file).write_all(b"restored").unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().len(), 8);
            drop(lease);
            truncated.join().unwrap().unwrap();
            nonblocking.join().unwrap().unwrap();
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "saved");
    }
}
