//! Owner, rights and other attributes of a file that takes the place of another.

use std::{fs::File, io};

#[cfg(unix)]
use crate::fs::dir::found_of;

/// Gives `new` what `old` has: owner, group, access control list, other extended
/// attributes and permission bits, with or without the right to be executed.
///
/// What the system does not let this user set stays as it is on a new file, but
/// `new` is never open to more people than `old`.
///
/// # Errors
/// When the permission bits cannot be set.
#[cfg(unix)]
pub(super) fn copy(old: &File, new: &File, executable: bool) -> io::Result<()> {
    use rustix::{
        fs::{Gid, Uid, fchown, fstat},
        io::Errno,
    };

    let (was, mut is) = (fstat(old)?, fstat(new)?);
    if (is.st_uid, is.st_gid) != (was.st_uid, was.st_gid) {
        let (owner, group) = (Uid::from_raw(was.st_uid), Gid::from_raw(was.st_gid));
        if fchown(new, Some(owner), Some(group)) == Err(Errno::PERM) {
            // Only root gives files away; a group one is a member of can be set.
            let _ = fchown(new, None, Some(group));
        }
        is = fstat(new)?;
    }
    let keeps_group = is.st_gid == was.st_gid;
    let keeps_list = extended::copy(old, new);
    let mut mode = rights(found_of(old)?.stamp.mode, executable);
    if is.st_uid != was.st_uid {
        mode &= !0o4000;
    }
    if !keeps_group {
        mode &= !0o2000;
    }
    if !keeps_group || !keeps_list {
        // Another group may do what everybody may.
        mode &= !0o070 | (mode & 0o007) << 3;
    }
    allow(new, mode)
}

#[cfg(not(unix))]
pub(super) fn copy(_: &File, _: &File, _: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
mod extended {
    use std::{ffi::CStr, fs::File};

    use rustix::{
        fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
        io::Errno,
    };

    const LIST: &CStr = c"system.posix_acl_access";
    /// Longest list of names and longest value that Linux has.
    const LONGEST: usize = 64 * 1024;

    /// Returns whether the access control list, if there is one, was copied. Of the
    /// others, what cannot be set is left out.
    pub(super) fn copy(old: &File, new: &File) -> bool {
        let mut few = [0; 256];
        let mut many = Vec::new();
        let names = match flistxattr(old, &mut few[..]) {
            Ok(length) => &few[..length],
            Err(Errno::RANGE) => {
                many.resize(LONGEST, 0);
                match flistxattr(old, &mut many[..]) {
                    Ok(length) => &many[..length],
                    Err(_) => return false,
                }
            }
            // The file system has none.
            Err(_) => return true,
        };
        let mut has_list = false;
        let mut keeps_list = true;
        let names = names.split_inclusive(|byte| *byte == 0);
        for name in names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()) {
            has_list |= name == LIST;
            // Signatures and rights of the old content.
            if [c"security.capability", c"security.ima", c"security.evm"].contains(&name) {
                continue;
            }
            let mut value = vec![0; LONGEST];
            let copied = fgetxattr(old, name, &mut value[..])
                .and_then(|length| fsetxattr(new, name, &value[..length], XattrFlags::empty()));
            keeps_list &= copied.is_ok() || name != LIST;
        }
        if !has_list {
            // The default of its folder.
            let _ = fremovexattr(new, LIST);
        }
        keeps_list
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod extended {
    /// Not here.
    pub(super) fn copy(_: &std::fs::File, _: &std::fs::File) -> bool {
        true
    }
}

/// Permission bits with the right to be executed for everyone who may read, or for
/// no one.
pub(super) fn rights(mode: u32, executable: bool) -> u32 {
    let mode = mode & 0o7777;
    match (executable, mode & 0o100 != 0) {
        (true, false) => mode | 0o100 | (mode & 0o444) >> 2,
        (false, true) => mode & !0o111,
        _ => mode,
    }
}

/// Sets permission bits.
pub(super) fn allow(file: &File, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    return file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    {
        let _ = (file, mode);
        Ok(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::rights;

    #[test]
    fn only_the_right_to_execute_changes() {
        assert_eq!(rights(0o100_640, true), 0o750);
        assert_eq!(rights(0o100_755, false), 0o644);
        assert_eq!(rights(0o100_711, true), 0o711);
        assert_eq!(rights(0o100_611, false), 0o611);
        assert_eq!(rights(0o104_755, false), 0o4644);
    }
}
