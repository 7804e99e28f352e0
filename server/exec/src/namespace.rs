//! Covers paths in a user and a mount namespace of the process.

use std::{
    env, fs,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags, StatVfsMountFlags, fstat, mkdir, open, stat, statvfs},
    io::{Errno, FdFlags, fcntl_setfd},
    mount::{
        MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
        mount_remount, unmount,
    },
    process::{getgid, getuid},
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, unshare_unsafe,
    },
};

use crate::{CannotHide, Cover, HiddenPath};

/// Folders of every system. The covers are made in a file system that is mounted on one of them
/// for a moment, which only this process sees.
const STAGES: [&str; 4] = ["/mnt", "/usr", "/etc", "/home"];

pub(super) fn hide(paths: &[HiddenPath]) -> Result<(), CannotHide> {
    let folder = env::current_dir()
        .map_err(|error| CannotHide::new(format!("cannot find the current folder: {error}")))?;
    let left: Vec<&HiddenPath> = paths.iter().filter(|path| !is_covered(path)).collect();
    // Also if this process was started below another one that hides the same files.
    if left.is_empty() {
        return Ok(());
    }
    enter_namespaces()?;
    cover(&left)?;
    // The folder that the process is in may be covered now.
    env::set_current_dir(&folder).map_err(|error| {
        CannotHide::new(format!(
            "the current folder is hidden: {}: {error}",
            folder.display()
        ))
    })?;
    leave_folders()
        .and_then(|()| drop_capabilities())
        .map_err(|error| CannotHide::new(format!("cannot drop capabilities or folders: {error}")))
}

/// Does not pass on open folders: through them, a command would see the files below as before.
#[allow(unsafe_code)]
fn leave_folders() -> Result<(), Errno> {
    for name in Dir::read_from(open("/proc/self/fd", OFlags::DIRECTORY, Mode::empty())?)? {
        let Ok(number) = name?.file_name().to_string_lossy().parse() else {
            continue;
        };
        // SAFETY: it is open, as this process has one thread.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        if FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Directory {
            fcntl_setfd(file, FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

/// Returns whether a path has its cover already.
fn is_covered(hidden: &HiddenPath) -> bool {
    let path = &hidden.path;
    let is_read_only =
        statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    let is_mounted = || {
        let above = path.parent().and_then(|parent| stat(parent).ok());
        stat(path).is_ok_and(|own| above.is_some_and(|above| own.st_dev != above.st_dev))
    };
    is_read_only
        && match hidden.cover {
            Cover::File => is_mounted() && fs::File::open(path).is_err(),
            Cover::Folder => {
                is_mounted() && fs::read_dir(path).is_ok_and(|mut all| all.next().is_none())
            }
            Cover::ReadOnly => true,
        }
}

/// Creates the namespaces. Users and groups keep their ids.
#[allow(unsafe_code)]
fn enter_namespaces() -> Result<(), CannotHide> {
    let (user, group) = (getuid(), getgid());
    let maps = ["uid_map", "gid_map"].map(|name| fs::read_to_string(format!("/proc/self/{name}")));
    // SAFETY: file descriptors stay shared, as `UnshareFlags::FILES` is not given.
    let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) };
    unshared.map_err(forbidden)?;
    let own = [user.as_raw(), group.as_raw()].map(|id| format!("{id} {id} 1"));
    for (index, name) in ["uid_map", "gid_map"].into_iter().enumerate() {
        let path = format!("/proc/self/{name}");
        // A privileged process keeps all ids, so that files of other users keep their owners.
        let all = maps[index].as_deref().map(identity).unwrap_or_default();
        let mapped = user.is_root() && fs::write(&path, all).is_ok();
        if !mapped {
            let groups = fs::write("/proc/self/setgroups", "deny");
            groups
                .and_then(|()| fs::write(&path, &own[index]))
                .map_err(|error| CannotHide::new(format!("cannot write {path}: {error}")))?;
        }
    }
    Ok(())
}

/// Returns the lines that map all ids of a map to themselves.
fn identity(map: &str) -> String {
    let lines = map.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (inside, count) = (words.next()?, words.nth(1)?);
        Some(format!("{inside} {inside} {count}\n"))
    });
    lines.collect()
}

fn forbidden(error: Errno) -> CannotHide {
    let limit = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    let what_to_do = match error {
        Errno::INVAL => "the process has more than one thread",
        Errno::NOSPC | Errno::USERS => {
            "the limit of namespaces is reached; raise it with `sysctl user.max_user_namespaces=10000`"
        }
        _ if limit.is_ok_and(|limit| limit.trim() == "1") => {
            "AppArmor forbids it; an administrator can allow it with \\
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or with a profile for sightline"
        }
        _ => {
            "the kernel, a container or a sandbox forbids it; in a container, allow user namespaces"
        }
    };
    CannotHide::new(format!(
        "cannot create a user namespace: {error}: {what_to_do}"
    ))
}

/// Mounts the covers. Each path is opened without following links and covered by what was opened.
fn cover(paths: &[&HiddenPath]) -> Result<(), CannotHide> {
    let failed = |what: String| move |error: Errno| CannotHide::new(format!("{what}: {error}"));
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed("cannot separate the mounts".to_owned()))?;
    let stage = Stage::new(paths)?;
    for hidden in paths {
        let shown = hidden.path.display();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match open(&hidden.path, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(error) => return Err(failed(format!("cannot open {shown}"))(error)),
        };
        let stat = fstat(&opened).map_err(failed(format!("cannot open {shown}")))?;
        let cover = match (FileType::from_raw_mode(stat.st_mode), hidden.cover) {
            // It took the place of the file since the list was made.
            (FileType::Symlink, _) => continue,
            (FileType::Directory, _) => stage.folder.as_fd(),
            (_, Cover::ReadOnly) => opened.as_fd(),
            _ => stage.file.as_fd(),
        };
        mount_bind(magic_link(cover), magic_link(opened.as_fd()))
            .map_err(failed(format!("cannot hide {shown}")))?;
        if hidden.cover == Cover::ReadOnly {
            read_only(&hidden.path).map_err(failed(format!("cannot protect {shown}")))?;
        }
    }
    unmount(stage.path, UnmountFlags::DETACH)
        .map_err(failed(format!("cannot leave {}", stage.path)))
}

/// Makes a file that was mounted on itself read-only.
fn read_only(path: &Path) -> Result<(), Errno> {
    // The kernel accepts a change of a mount only with the flags that it must keep.
    let flags = statvfs(path)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(has, _)| flags.contains(*has));
    let kept = kept.fold(MountFlags::empty(), |all, (_, flag)| all | flag);
    mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | kept, c"")
}

/// A mounted file system with the covers.
struct Stage {
    path: &'static str,
    /// An unreadable file. Scripts that test for the existence of a file still find one.
    file: OwnedFd,
    /// An empty folder. Commands that walk the workspace do not fail on it.
    folder: OwnedFd,
}

impl Stage {
    fn new(hidden: &[&HiddenPath]) -> Result<Self, CannotHide> {
        let is_usable = |path: &&str| {
            let above = |hidden: &&HiddenPath| hidden.path.starts_with(path);
            Path::new(path).is_dir() && !hidden.iter().any(above)
        };
        let path = STAGES.into_iter().find(is_usable);
        let path = path.ok_or_else(|| {
            CannotHide::new("hidden files are in all of /mnt, /usr, /etc and /home")
        })?;
        let failed = |error: Errno| CannotHide::new(format!("cannot prepare {path}: {error}"));
        mount(
            "tmpfs",
            path,
            "tmpfs",
            MountFlags::NOSUID,
            c"size=64k,nr_inodes=8,mode=0755",
        )
        .map_err(failed)?;
        let [file, folder] = ["file", "folder"].map(|name| format!("{path}/{name}"));
        let write = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(open(&file, write, Mode::empty()).map_err(failed)?);
        mkdir(&folder, Mode::from_raw_mode(0o555)).map_err(failed)?;
        // Nothing can be written into a cover, where it would be lost.
        mount_remount(path, MountFlags::RDONLY | MountFlags::NOSUID, c"").map_err(failed)?;
        let find = |path| open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed);
        Ok(Self {
            path,
            file: find(&file)?,
            folder: find(&folder)?,
        })
    }
}

/// Gives up all capabilities, also those that a started program would get.
fn drop_capabilities() -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // The kernel does not know it.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    set_no_new_privs(true)
}

/// Returns the path by which the kernel finds an open file.
fn magic_link(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
