//! Write leases on files. While a lease is held, no other process has the file open; a process that
//! tries to open or truncate it waits until the lease is dropped.

use std::{fs::File, time::Instant};
#[cfg(target_os = "linux")]
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// A write lease on an open file, released when dropped.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "leases exist on Linux only")
)]
pub struct Lease<'a> {
    file: &'a File,
    since: Instant,
}

/// Set after a lease was held for suspiciously long: another program blocks reads of leased files
/// (a virus scanner that waits for the file itself), and each further lease would be as slow.
#[cfg(target_os = "linux")]
static DISABLED: AtomicBool = AtomicBool::new(false);
/// Far longer than a lease is held otherwise.
#[cfg(target_os = "linux")]
const SLOW: Duration = Duration::from_secs(10);

impl<'a> Lease<'a> {
    /// Leases `file`, which is open for writing. Returns `None` if another process or another
    /// descriptor has it open or mapped, if the file system is nearly full, or if leases are not
    /// supported, not permitted, or not binding for all processes (network and FUSE file systems).
    ///
    /// The kernel revokes a lease that is held for longer than `/proc/sys/fs/lease-break-time`
    /// (45 s) while another process waits, see [`Self::is_held`].
    pub fn take(file: &'a File) -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            let since = Instant::now();
            let is_taken =
                !DISABLED.load(Ordering::Relaxed) && linux::is_suitable(file) && linux::take(file);
            is_taken.then_some(Self { file, since })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = file;
            None
        }
    }

    /// Returns whether the kernel cannot have revoked the lease yet. It can after this process
    /// was stopped.
    pub fn is_held(&self) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if IS_REVOKED.get() {
            return false;
        }
        #[cfg(target_os = "linux")]
        return self.since.elapsed() < linux::max_held();
        #[cfg(not(target_os = "linux"))]
        true
    }

    /// Releases the lease. Returns whether it was held until now.
    pub fn release(self) -> bool {
        #[cfg(target_os = "linux")]
        return linux::release(self.file);
        #[cfg(not(target_os = "linux"))]
        true
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        linux::release(self.file);
        if self.since.elapsed() > SLOW {
            DISABLED.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs::File, os::fd::AsRawFd, sync::OnceLock, time::Duration};

    /// Magic numbers from statfs(2) of file systems that only this kernel accesses: ext2 to ext4,
    /// XFS, Btrfs, F2FS, bcachefs, tmpfs, overlayfs.
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

    /// Free space below which files are not leased, in bytes. Overwriting needs space on
    /// copy-on-write file systems, and must not fail half-way.
    const MIN_FREE: u64 = 256 * 1024 * 1024;

    /// Returns whether a lease binds all processes and the file can be overwritten.
    pub(super) fn is_suitable(file: &File) -> bool {
        let Ok(system) = rustix::fs::fstatfs(file) else {
            return false;
        };
        let is_local = LOCAL
            .iter()
            .any(|local| i128::from(*local) == i128::from(system.f_type));
        let block = u64::try_from(system.f_bsize).unwrap_or(0);
        is_local && system.f_bavail.saturating_mul(block) >= MIN_FREE
    }

    /// Half of the time after which the kernel revokes a lease.
    pub(super) fn max_held() -> Duration {
        static MAX: OnceLock<Duration> = OnceLock::new();
        *MAX.get_or_init(|| {
            let seconds = std::fs::read_to_string("/proc/sys/fs/lease-break-time");
            match seconds.ok().and_then(|text| text.trim().parse().ok()) {
                // Never revoked.
                Some(0) => Duration::MAX,
                Some(seconds) => Duration::from_secs(seconds) / 2,
                None => Duration::from_secs(1),
            }
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
    pub(super) fn release(file: &File) -> bool {
        // SAFETY: as in `take`. Fails if the kernel has revoked the lease.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) == 0 }
    }
}

#[cfg(any(test, feature = "testing"))]
thread_local! {
    /// Makes the leases of this thread look as if the kernel had revoked them.
    pub static IS_REVOKED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(all(test, target_os = "linux"))]
mod linux_tests {
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
