//! Names that editors, merges, archivers and file managers give to copies of a file.
//!
//! A copy is named like its original with a mark before or after it: a word such as `bak`, with or without numbers and dates, a
//! number or letters that a program chose at random, or the sign of an editor. Marks may stand before the extension.

use memchr::{memchr, memmem, memrchr};

/// Number of names that are derived from one.
const MAX_ORIGINALS: usize = 16;
/// Minimum length of letters and digits that look as chosen at random. Most programs choose six.
const MIN_RANDOM: usize = 6;

/// Words that mark a copy, before or after a dot or dash. Numbers and dates may follow: `.bak1`, `-old-2026-01-31`, `.save.1`.
const WORDS: &[&[u8]] = &[
    b"back",
    b"backup",
    b"bak",
    b"bck",
    b"bk",
    b"bkp",
    b"copia",
    b"copie",
    b"copy",
    b"c\xc3\xb3pia",
    b"kopia",
    b"kopie",
    b"old",
    b"orig",
    b"original",
    b"prev",
    b"previous",
    b"save",
    b"saved",
    b"sav",
    b"temp",
    b"tmp",
];
/// Extensions of copies, which are no words: of editors, merges, package managers, downloads and archivers.
const EXTENSIONS: &[&[u8]] = &[
    b"asv",
    b"autosave",
    b"base",
    b"br",
    b"bz2",
    b"crdownload",
    b"crswap",
    b"download",
    b"dpkg-dist",
    b"dpkg-new",
    b"dpkg-old",
    b"gz",
    b"kate-swp",
    b"lck",
    b"lock",
    b"lz4",
    b"lzma",
    b"mine",
    b"new",
    b"other",
    b"pacnew",
    b"pacorig",
    b"pacsave",
    b"part",
    b"partial",
    b"rej",
    b"rpmnew",
    b"rpmorig",
    b"rpmsave",
    b"theirs",
    b"this",
    b"ucf-dist",
    b"ucf-old",
    b"un",
    b"xz",
    b"zip",
    b"zst",
];
/// Endings: of JetBrains IDEs, RCS, Emacs, `sed -i -e`, and of files that SQLite writes next to a database.
const SUFFIXES: &[&[u8]] = &[
    b"-journal",
    b"-wal",
    b"-shm",
    b"___jb_tmp___",
    b"___jb_old___",
    b"___jb_bak___",
    b",v",
    b"#",
    b"-e",
];
/// Beginnings: of Emacs, Office, macOS and file managers.
const PREFIXES: &[&[u8]] = &[
    b".#",
    b"#",
    b"~$",
    b"._",
    b".~lock.",
    b"copy of ",
    b"backup of ",
    b"kopie von ",
    b"copie de ",
    b"copia de ",
];
/// Words that mark a copy before a number: of merge tools, which add a process id, and of Subversion.
const NUMBERED: &[&[u8]] = &[b"local", b"base", b"remote", b"r"];

/// Returns the names of which a file with this folded name may be a copy.
pub(super) fn originals(name: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    add_originals(name, &mut found);
    let mut at = 0;
    while let Some(name) = found.get(at).cloned() {
        if found.len() >= MAX_ORIGINALS {
            break;
        }
        // Editors and `rsync` hide their copies: `.name.swp`.
        let shown = name.strip_prefix(b".").filter(|name| !name.is_empty());
        found.extend(shown.map(<[u8]>::to_vec));
        add_originals(&name, &mut found);
        at += 1;
    }
    found
}

/// Adds the names from which one change makes `name`.
fn add_originals(name: &[u8], found: &mut Vec<Vec<u8>>) {
    let mut add = |original: &[u8], end: &[u8]| {
        if !matches!(original, b"" | b"." | b"..") {
            found.push([original, end].concat());
        }
    };
    // A merge moves a file out of the way: `name~HEAD`. Editors end with `~`, and `.~1~`.
    if let Some(at) = memrchr(b'~', name) {
        add(&name[..at], b"");
        if let Some(original) = name[..at].iter().rposition(|byte| !byte.is_ascii_digit()) {
            add(
                name[..=original].strip_suffix(b".~").unwrap_or_default(),
                b"",
            );
        }
    }
    for suffix in SUFFIXES {
        if let Some(original) = name.strip_suffix(*suffix) {
            add(original, b"");
        }
    }
    for prefix in PREFIXES {
        if let Some(original) = name.strip_prefix(*prefix) {
            add(original, b"");
        }
    }
    // `backup-name`, `old.name`
    if let Some(at) = name.iter().position(|byte| b".-_ ".contains(byte))
        && WORDS.contains(&&name[..at])
    {
        add(&name[at + 1..], b"");
    }
    let Some(dot) = memrchr(b'.', name).filter(|dot| *dot > 0) else {
        add_unmarked(name, b"", &mut add);
        return;
    };
    let (stem, extension) = (&name[..dot], &name[dot + 1..]);
    let is_vim_swap = matches!(extension, [b's', b'w', b'a'..=b'z']);
    if is_vim_swap || EXTENSIONS.contains(&extension) || is_random(extension) {
        add(stem, b"");
    }
    // `rsync`: `.name.Xy12Zq`
    if let Some(original) = stem.strip_prefix(b".")
        && extension.len() == MIN_RANDOM
        && extension.iter().all(u8::is_ascii_alphanumeric)
    {
        add(original, b"");
    }
    add_unmarked(name, b"", &mut add);
    add_unmarked(stem, &name[dot..], &mut add);
}

/// Returns whether an extension is a number, or letters and digits that look as chosen at random.
fn is_random(extension: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| extension.iter().any(is);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    has(u8::is_ascii_digit)
        && extension.iter().all(is_plain)
        && (extension.iter().all(u8::is_ascii_digit)
            || extension.len() >= MIN_RANDOM && has(u8::is_ascii_alphabetic))
}

/// Adds the names without a mark at the end of a stem.
fn add_unmarked(stem: &[u8], end: &[u8], add: &mut impl FnMut(&[u8], &[u8])) {
    if let Some(inner) = stem.strip_suffix(b")").or_else(|| stem.strip_suffix(b"]")) {
        if let Some(at) = memmem::rfind(inner, b" (").or_else(|| memmem::rfind(inner, b" [")) {
            let mark = &inner[at + 2..];
            let is_number = !mark.is_empty() && mark.iter().all(u8::is_ascii_digit);
            let has = |word: &[u8]| memmem::find(mark, word).is_some();
            if is_number || has(b"conflict") || WORDS.iter().any(|word| has(word)) {
                add(&stem[..at], end);
            }
        }
        return;
    }
    // Searches for text are only started where they can succeed: every checked name comes here.
    if memchr(b'-', stem).is_some()
        && let Some(at) = memmem::rfind(stem, b"conflict-")
        && let Some(original) = [b".sync-".as_slice(), b"_", b"."]
            .iter()
            .find_map(|before| stem[..at].strip_suffix(*before))
    {
        add(original, end);
    }
    // A word, with numbers and dates after it: `.bak-2026-01-31`, `-old`, ` - copy 2`, `_local_12`.
    let plain = stem
        .iter()
        .rposition(|byte| !byte.is_ascii_digit() && !b".-_ ".contains(byte))
        .map_or(stem, |last| &stem[..=last]);
    // macOS: `name 2`.
    let number = stem.strip_prefix(plain).unwrap_or_default();
    if number.len() > 1 && number[0] == b' ' && number[1..].iter().all(u8::is_ascii_digit) {
        add(plain, end);
    }
    let Some(at) = plain.iter().rposition(|byte| b".-_ ".contains(byte)) else {
        return;
    };
    let (original, word) = (&plain[..at], &plain[at + 1..]);
    let is_numbered = plain.len() < stem.len();
    if WORDS.contains(&word) || is_numbered && NUMBERED.contains(&word) {
        add(original.strip_suffix(b" -").unwrap_or(original), end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_copy(name: &str, original: &str) -> bool {
        let originals = originals(name.to_lowercase().as_bytes());
        originals.iter().any(|it| it == original.as_bytes())
    }

    #[test]
    fn copies_have_the_name_of_their_original() {
        for original in [".env", "id_rsa", "notes.md", "a.b.c"] {
            for copy in [
                "{}~",
                "{}.bak",
                "{}.BAK",
                "{}.bak1",
                "{}.bak.2",
                "{}.bak-2026-01-31",
                "{}.backup",
                "{}.old",
                "{}.orig",
                "{}.save",
                "{}.save.1",
                "{}.rej",
                "{}.tmp",
                "{}.swp",
                "{}.swo",
                ".{}.swp",
                ".{}.swx",
                ".{}.kate-swp",
                ".{}.un~",
                "{}.~1~",
                "#{}#",
                ".#{}",
                "~${}",
                "._{}",
                ".~lock.{}#",
                "{}___jb_tmp___",
                "{}___jb_old___",
                "Copy of {}",
                "Kopie von {}",
                "{} (copy)",
                "{} (copy 2)",
                "{} (another copy)",
                "{} copy",
                "{} copy 3",
                "{} 2",
                "{} - Copy",
                "{} - Copy (2)",
                "{} (1)",
                "{}.LOCAL.123",
                "{}.BASE.4711",
                "{}_REMOTE_12",
                "{}.r17",
                "{}.mine",
                "{} (conflicted copy)",
                "{} (Bob's conflicted copy 2026-01-31)",
                "{}.sync-conflict-20260131-120000-ABC",
                "{}_conflict-20260131",
                "{}.dpkg-old",
                "{}.rpmsave",
                "{}.pacsave",
                "{}.THIS",
                "{}.OTHER",
                "{}-wal",
                "{}-journal",
                "{}-e",
                "{}.crswap",
                "{}.lock",
                "{}.part",
                "{}.crdownload",
                "{}.gz",
                "{},v",
                "{}.12345",
                "{}.12345.tmp",
                "{}.tmp.12345.1699999999",
                "{}.tmp-4f2a9c",
                "{}.sb-1a2b3c4d-h2kq9z",
                "{}.1a2b3c4d",
                "{}.3f2504e0-4f89-11d3-9a0c-0305e82c3301",
                ".{}.Xy12Zq",
                ".{}.qwerty",
                ".{}.tmp",
                "{}-backup",
                "{}_old",
                "{}-copy",
                "{}.old-2",
                "backup-{}",
                "old_{}",
                "bak.{}",
                "{}.bak~",
                ".#{}.orig",
            ] {
                let copy = copy.replace("{}", original);
                assert!(is_copy(&copy, original), "{copy}");
            }
        }
        for copy in [
            "notes (copy).md",
            "notes copy.md",
            "notes copy 2.md",
            "notes - Copy.md",
            "notes (1).md",
            "notes_LOCAL_12.md",
            "notes.BASE.12.md",
            "notes (conflicted copy 2026).md",
            "notes.sync-conflict-20260131-1-A.md",
            "notes - Kopie (2).md",
            "notes-backup.md",
            "notes_old.md",
            "notes.bak.md",
            "notes-backup-2026-01-31.md",
            "notes (case conflict).md",
        ] {
            assert!(is_copy(copy, "notes.md"), "{copy}");
        }
    }

    #[test]
    fn other_names_are_no_copies() {
        for name in [
            "notes.md",
            ".env",
            "notes.local.md",
            "settings.base.json",
            "file_1.rs",
            "2026-01-31.md",
            "(1)",
            "copy",
            "bak",
            ".bak",
            "~",
            "#",
            "a.r",
            "a.config",
            "backups.md",
            "report-2026-01.md",
            "old",
            "cold-start.md",
            "threshold.md",
            "a-b.config",
            "photocopy.md",
            "swap.swift",
            "README",
            "a.mp4",
            "a(b).md",
        ] {
            let found = originals(name.as_bytes());
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}
