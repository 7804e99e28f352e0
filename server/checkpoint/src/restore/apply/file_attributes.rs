//! Copies owner, permissions and extended attributes from a replaced file to the new one.

use std::{fs::File, io};

#[cfg(unix)]
use sightline_base::fs::dir::stat_file;

/// Copies owner, group, access control list, other extended attributes and permission bits from
/// `old` to `new`, and sets or clears the executable bits.
///
/// Attributes that this user cannot set keep their defaults, but `new` never grants access to
/// more users than `old`.
///
/// # Errors
/// Fails if the permission bits cannot be set.
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
            // Only root can change the owner; the group can be one that the user is a member of.
            let _ = fchown(new, None, Some(group));
        }
        is = fstat(new)?;
    }
    let keeps_group = is.st_gid == was.st_gid;
    let keeps_list = extended::copy(old, new);
    let mut mode = with_executable(stat_file(old)?.stamp.mode, executable);
    if is.st_uid != was.st_uid {
        mode &= !0o4000;
    }
    if !keeps_group {
        mode &= !0o2000;
    }
    if !keeps_group || !keeps_list {
        // The group differs: it gets only the permissions of others.
        mode &= !0o070 | (mode & 0o007) << 3;
    }
    set_permissions(new, mode)
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
    /// Maximum size of the list of names and of a value on Linux, in bytes.
    const LONGEST: usize = 64 * 1024;

    /// Copies the extended attributes, except for those that cannot be set. Returns whether the
    /// access control list, if there is one, was copied.
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
            // The file system has no extended attributes.
            Err(_) => return true,
        };
        let mut has_list = false;
        let mut keeps_list = true;
        let names = names.split_inclusive(|byte| *byte == 0);
        for name in names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()) {
            has_list |= name == LIST;
            // Capabilities and signatures are only valid for the old content.
            if [c"security.capability", c"security.ima", c"security.evm"].contains(&name) {
                continue;
            }
            let mut value = vec![0; LONGEST];
            let copied = fgetxattr(old, name, &mut value[..])
                .and_then(|length| fsetxattr(new, name, &value[..length], XattrFlags::empty()));
            keeps_list &= copied.is_ok() || name != LIST;
        }
        if !has_list {
            // Inherited from the default list of the folder.
            let _ = fremovexattr(new, LIST);
        }
        keeps_list
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod extended {
    /// Extended attributes are copied only on Linux.
    pub(super) fn copy(_: &std::fs::File, _: &std::fs::File) -> bool {
        true
    }
}

/// Returns the permission bits of `mode`, with the executable bit set for each class that
/// can read the file, or for none.
pub(super) fn with_executable(mode: u32, executable: bool) -> u32 {
    let mode = mode & 0o7777;
    match (executable, mode & 0o100 != 0) {
        (true, false) => mode | 0o100 | (mode & 0o444) >> 2,
        (false, true) => mode & !0o111,
        _ => mode,
    }
}

pub(super) fn set_permissions(file: &File, mode: u32) -> io::Result<()> {
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
    use super::with_executable;

    #[test]
    fn only_the_executable_bits_change() {
        assert_eq!(with_executable(0o100_640, true), 0o750);
        assert_eq!(with_executable(0o100_755, false), 0o644);
        assert_eq!(with_executable(0o100_711, true), 0o711);
        assert_eq!(with_executable(0o100_611, false), 0o611);
        assert_eq!(with_executable(0o104_755, false), 0o4644);
    }
}
