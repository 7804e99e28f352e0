//! Names that editors, merges and file managers give to copies of a file.

use std::iter;

use memchr::{memchr, memmem, memrchr};

/// Number of names that are derived from one.
const MAX_ORIGINALS: usize = 16;

/// Extensions of copies. Numbers and dates may follow: `.bak1`, `.bak-2026-01-31`, `.save.1`.
const EXTENSIONS: &[&[u8]] = &[
    b"back",
    b"backup",
    b"bak",
    b"bk",
    b"bkp",
    b"copy",
    b"dpkg-dist",
    b"dpkg-new",
    b"dpkg-old",
    b"mine",
    b"old",
    b"orig",
    b"original",
    b"prev",
    b"rej",
    b"rpmnew",
    b"rpmorig",
    b"rpmsave",
    b"save",
    b"saved",
    b"sav",
    b"temp",
    b"theirs",
    b"tmp",
    b"ucf-dist",
    b"ucf-old",
];
/// Extensions of files that editors keep next to an open file, whose names begin with an additional dot.
const SWAP_EXTENSIONS: &[&[u8]] = &[b"kate-swp", b"un"];
/// Endings without a dot: of JetBrains IDEs, and of `sed -i -e`.
const SUFFIXES: &[&[u8]] = &[b"___jb_tmp___", b"___jb_old___", b"___jb_bak___", b"-e"];
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
/// Words for a copy at the end of a name or in parentheses.
const WORDS: &[&str] = &["copy", "kopie", "copie", "copia", "c\u{f3}pia", "kopia"];
/// What merge tools put in front of the process id.
const MERGE_SIDES: &[&[u8]] = &[b"local", b"base", b"remote", b"backup"];

/// Returns the names of which a file with this folded name may be a copy.
pub(super) fn originals(name: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    add_originals(name, &mut found);
    let mut at = 0;
    while let Some(name) = found.get(at).cloned() {
        if found.len() >= MAX_ORIGINALS {
            break;
        }
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
    if let Some(rest) = name.strip_suffix(b"~") {
        add(rest, b"");
        // Numbered backups of Emacs.
        if let Some(original) = without_digits(rest).and_then(|rest| rest.strip_suffix(b".~")) {
            add(original, b"");
        }
    }
    // A merge moves a file out of the way: `name~HEAD`.
    if let Some(at) = memrchr(b'~', name) {
        add(&name[..at], b"");
    }
    for suffix in SUFFIXES {
        if let Some(original) = name.strip_suffix(*suffix) {
            add(original, b"");
        }
    }
    for prefix in PREFIXES {
        if let Some(original) = name.strip_prefix(*prefix) {
            add(original.strip_suffix(b"#").unwrap_or(original), b"");
        }
    }
    let extension = memrchr(b'.', name).filter(|dot| *dot > 0);
    if let Some(dot) = extension {
        let (stem, extension) = (&name[..dot], &name[dot + 1..]);
        let numbered = trim_end(extension, |byte| {
            byte.is_ascii_digit() || b"-_".contains(&byte)
        });
        let is_swap = SWAP_EXTENSIONS.contains(&extension) || is_vim_swap(extension);
        let is_revision = numbered == b"r" && extension.len() > 1;
        if is_swap || is_revision || EXTENSIONS.contains(&numbered) {
            add(stem, b"");
        }
        if is_swap && let Some(stem) = stem.strip_prefix(b".") {
            add(stem, b"");
        }
        if numbered.is_empty() && extension_of(stem).is_some_and(|it| EXTENSIONS.contains(&it)) {
            add(stem, b"");
        }
    }
    let parts = extension.map(|dot| name.split_at(dot));
    for (stem, end) in iter::once((name, b"".as_slice())).chain(parts) {
        if let Some(original) = without_mark(stem) {
            add(original, end);
        }
    }
}

/// Removes what marks a copy at the end of a name.
fn without_mark(stem: &[u8]) -> Option<&[u8]> {
    if let Some(inner) = stem.strip_suffix(b")").or_else(|| stem.strip_suffix(b"]")) {
        let at = memmem::rfind(inner, b" (").or_else(|| memmem::rfind(inner, b" ["))?;
        let mark = &inner[at + 2..];
        let is_number = !mark.is_empty() && mark.iter().all(u8::is_ascii_digit);
        let is_word = || {
            WORDS
                .iter()
                .any(|word| memmem::find(mark, word.as_bytes()).is_some())
        };
        let is_conflict = || memmem::find(mark, b"conflict").is_some();
        return (is_number || is_word() || is_conflict()).then(|| &stem[..at]);
    }
    // Searches for text are only started where they can succeed: every checked name comes here.
    if memchr(b'-', stem).is_some()
        && let Some(at) = memmem::rfind(stem, b"conflict-")
        && let Some(original) = [b".sync-".as_slice(), b"_", b"."]
            .iter()
            .find_map(|before| stem[..at].strip_suffix(*before))
    {
        return Some(original);
    }
    // `name copy`, `name - Copy`, `name copy 2`.
    if memchr(b' ', stem).is_some() {
        let plain = without_digits(stem).and_then(|rest| rest.strip_suffix(b" "));
        let plain = plain.unwrap_or(stem);
        let mut words = WORDS.iter();
        let original =
            words.find_map(|word| plain.strip_suffix(word.as_bytes())?.strip_suffix(b" "));
        if let Some(original) = original {
            return Some(original.strip_suffix(b" -").unwrap_or(original));
        }
    }
    let before = without_digits(stem)?;
    ["_", "."].iter().find_map(|separator| {
        let separator = separator.as_bytes();
        let side = before.strip_suffix(separator)?;
        let mut sides = MERGE_SIDES.iter();
        sides.find_map(|name| side.strip_suffix(*name)?.strip_suffix(separator))
    })
}

fn is_vim_swap(extension: &[u8]) -> bool {
    matches!(extension, [b's', b'w', b'a'..=b'z'])
}

fn extension_of(name: &[u8]) -> Option<&[u8]> {
    memrchr(b'.', name).map(|dot| &name[dot + 1..])
}

/// Returns the name without the digits at its end, if it has any.
fn without_digits(name: &[u8]) -> Option<&[u8]> {
    let rest = trim_end(name, |byte| byte.is_ascii_digit());
    (rest.len() < name.len()).then_some(rest)
}

fn trim_end(name: &[u8], is_trimmed: impl Fn(u8) -> bool) -> &[u8] {
    let end = name.iter().rposition(|byte| !is_trimmed(*byte));
    &name[..end.map_or(0, |end| end + 1)]
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
                "{}-e",
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
            "photocopy.md",
            "swap.swift",
            "README",
            "v1.2.3",
            "x.tar.gz",
            "a(b).md",
        ] {
            let found = originals(name.as_bytes());
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}
