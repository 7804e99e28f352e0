//! Sorts and prints a listing.
//!
//! Paths are compared component by component. At the first difference, a path that ends there comes first, so the
//! files of a directory precede its subdirectories. Other names are compared like people do: numbers by value, without
//! case and accents, punctuation as in Unicode's root collation.
//!
//! Names that compare equal keep their input order. As a comparison of pairs this is not transitive for directories
//! (`A/x`, `a/y`, `A/z`). So the paths are put into a tree and the children of each directory are sorted separately,
//! which keeps the entries of each directory together.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use icu_collator::{
    Collator, CollatorBorrowed, CollatorPreferences,
    options::{CollatorOptions, Strength},
    preferences::CollationNumericOrdering,
};
use sightline_protocol::files::FileKind;

use super::{Entry, Listing};
use sightline_base::{escape::one_line, path::RelPath};

/// The text of an empty listing.
pub const NOTHING_FOUND: &str = "No files found.";
/// The last line of a truncated listing.
pub const CUT_SHORT: &str =
    "(This list was cut short. To see more, call list_files on one of the directories above.)";
/// The prefix of a denied entry.
const LOCK: &str = "\u{1F512} ";

/// Prints a listing: paths relative to the listed directory `base`, directories with a trailing slash, then the number
/// of entries that were left out.
pub fn format(listing: &Listing, base: &RelPath) -> String {
    let texts: Vec<String> = listing
        .entries
        .iter()
        .map(|entry| entry_text(entry, base))
        .collect();
    let mut printed = String::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
    for index in sorted(&texts) {
        if !printed.is_empty() {
            printed.push('\n');
        }
        if listing.entries[index].denied {
            printed.push_str(LOCK);
        }
        printed.push_str(&texts[index]);
    }
    if texts.is_empty() && !listing.truncated {
        printed.push_str(NOTHING_FOUND);
    }
    if listing.truncated {
        printed.push_str("\n\n");
        printed.push_str(CUT_SHORT);
    }
    let left_out = [
        (listing.omitted, "hidden by access rules"),
        (listing.outside, "left out: outside the workspace"),
    ];
    for (count, why) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        let noun = if count == 1 { "entry" } else { "entries" };
        printed.push_str(&format!("\n\n({count} {noun} {why})"));
    }
    printed
}

fn entry_text(entry: &Entry, base: &RelPath) -> String {
    let path = if base.is_root() {
        entry.rel.to_wire().0
    } else {
        let below = entry.rel.as_path().strip_prefix(base.as_path()).ok();
        let below = below.and_then(RelPath::new);
        below.as_ref().unwrap_or(&entry.rel).to_wire().0
    };
    let mut text = match one_line(&path) {
        Cow::Owned(line) => line,
        Cow::Borrowed(_) => path,
    };
    if entry.kind == FileKind::Directory {
        text.push('/');
    }
    text
}

/// Returns the indexes of `texts` in sorted order. Directories end in `/`.
pub fn sorted(texts: &[String]) -> Vec<usize> {
    let mut tree = Tree::default();
    for (index, text) in texts.iter().enumerate() {
        tree.insert(index, text);
    }
    tree.into_order(texts.len())
}

/// A child of a directory.
struct Child<'a> {
    name: &'a str,
    kind: ChildKind,
}

#[derive(Clone, Copy)]
enum ChildKind {
    /// The path with this index.
    Leaf(usize),
    /// The node of a directory.
    Directory(usize),
}

/// The directories of all paths. Node 0 is the listed directory.
struct Tree<'a> {
    nodes: Vec<Vec<Child<'a>>>,
    /// The nodes by path.
    by_path: HashMap<&'a str, usize>,
    /// The directory of the previous path. Paths of one directory are usually adjacent.
    latest: (&'a str, usize),
}

impl Default for Tree<'_> {
    fn default() -> Self {
        Self {
            nodes: vec![Vec::new()],
            by_path: HashMap::from([("", 0)]),
            latest: ("", 0),
        }
    }
}

impl<'a> Tree<'a> {
    fn insert(&mut self, index: usize, text: &'a str) {
        // `src/` is an entry with an empty name in the directory `src`.
        let (parent, name) = text.rsplit_once('/').unwrap_or(("", text));
        let node = self.node(parent);
        self.nodes[node].push(Child {
            name,
            kind: ChildKind::Leaf(index),
        });
    }

    fn node(&mut self, path: &'a str) -> usize {
        if self.latest.0 == path {
            return self.latest.1;
        }
        let node = match self.by_path.get(path) {
            Some(node) => *node,
            None => self.add(path),
        };
        self.latest = (path, node);
        node
    }

    /// Adds the missing directories of `path`.
    fn add(&mut self, path: &'a str) -> usize {
        let mut node = 0;
        let mut start = 0;
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let parent = node;
            node = match self.by_path.get(&path[..end]) {
                Some(node) => *node,
                None => {
                    let node = self.nodes.len();
                    self.nodes.push(Vec::new());
                    self.by_path.insert(&path[..end], node);
                    self.nodes[parent].push(Child {
                        name: &path[start..end],
                        kind: ChildKind::Directory(node),
                    });
                    node
                }
            };
            start = end + 1;
        }
        node
    }

    fn into_order(mut self, entries: usize) -> Vec<usize> {
        let mut order = Vec::with_capacity(entries);
        let mut open = vec![self.take_sorted(0)];
        while let Some(children) = open.last_mut() {
            match children.next().map(|child| child.kind) {
                Some(ChildKind::Leaf(index)) => order.push(index),
                Some(ChildKind::Directory(node)) => {
                    let children = self.take_sorted(node);
                    open.push(children);
                }
                None => {
                    open.pop();
                }
            }
        }
        order
    }

    fn take_sorted(&mut self, node: usize) -> std::vec::IntoIter<Child<'a>> {
        let mut children = std::mem::take(&mut self.nodes[node]);
        let key = if children.iter().all(|child| is_plain(child.name)) {
            plain_key
        } else {
            collation_key
        };
        // A stable sort: equal names keep their input order.
        children.sort_by_cached_key(|child| {
            let is_directory = matches!(child.kind, ChildKind::Directory(_));
            (is_directory, key(child.name))
        });
        children.into_iter()
    }
}

/// Unicode's root collation, equal to JavaScript's
/// `localeCompare(other, undefined, {numeric: true, sensitivity: "base"})`.
static COLLATOR: LazyLock<Option<CollatorBorrowed<'static>>> = LazyLock::new(|| {
    let mut preferences = CollatorPreferences::default();
    preferences.numeric_ordering = Some(CollationNumericOrdering::True);
    let mut options = CollatorOptions::default();
    options.strength = Some(Strength::Primary);
    Collator::try_new(preferences, options).ok()
});

/// Returns bytes that compare like the names.
fn collation_key(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 4);
    match COLLATOR.as_ref() {
        Some(collator) => {
            let Ok(()) = collator.write_sort_key_to(name, &mut key);
        }
        // Unreachable, because the data is compiled in.
        None => key.extend(name.to_lowercase().bytes()),
    }
    key
}

/// Maximum number of consecutive digits for [`plain_key`].
const MAX_DIGITS: usize = 200;

/// Returns whether a name can be sorted without Unicode's tables.
fn is_plain(name: &str) -> bool {
    name.len() <= MAX_DIGITS && name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The position of each printable ASCII character in the collation. Equal for characters that compare equal and for
/// all digits.
static PLACES: LazyLock<[u8; 128]> = LazyLock::new(|| {
    let mut keys: Vec<(Vec<u8>, u8)> = (b' '..=b'~')
        .map(|byte| match byte {
            b'0'..=b'9' => (collation_key("0"), byte),
            _ => (
                collation_key(char::from(byte).encode_utf8(&mut [0; 4])),
                byte,
            ),
        })
        .collect();
    keys.sort();
    let mut places = [0; 128];
    let mut place = 0;
    let mut before: &[u8] = &[];
    for (key, byte) in &keys {
        place += u8::from(key != before);
        before = key;
        places[usize::from(*byte)] = place;
    }
    places
});

/// A faster [`collation_key`] for plain names. Its keys are not comparable with those of `collation_key`.
fn plain_key(name: &str) -> Vec<u8> {
    let places = &*PLACES;
    let mut key = Vec::with_capacity(name.len() + 4);
    let mut rest = name.as_bytes();
    while let Some(byte) = rest.first() {
        key.push(places[usize::from(byte & 0x7F)]);
        if !byte.is_ascii_digit() {
            rest = &rest[1..];
            continue;
        }
        // The number with more digits is larger.
        let end = rest.iter().position(|byte| !byte.is_ascii_digit());
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let zeros = number.iter().take_while(|byte| **byte == b'0').count();
        let digits = &number[zeros..];
        key.push(u8::try_from(digits.len()).unwrap_or(u8::MAX));
        key.extend(digits);
        rest = after;
    }
    key
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_names_sort_as_the_collation_has_them(
            a in "[ -~]{0,6}|[a-cA-C0-2._-]{0,8}",
            b in "[ -~]{0,6}|[a-cA-C0-2._-]{0,8}",
        ) {
            let plain = plain_key(&a).cmp(&plain_key(&b));
            prop_assert_eq!(plain, collation_key(&a).cmp(&collation_key(&b)));
        }
    }

    #[test]
    fn every_pair_of_characters_is_in_place() {
        let names: Vec<String> = (b' '..=b'~').map(|byte| char::from(byte).into()).collect();
        for a in &names {
            for b in &names {
                let plain = plain_key(a).cmp(&plain_key(b));
                assert_eq!(plain, collation_key(a).cmp(&collation_key(b)), "{a} {b}");
            }
        }
    }

    #[test]
    fn a_long_number_is_left_to_the_collation() {
        assert!(is_plain(&"9".repeat(MAX_DIGITS)));
        assert!(!is_plain(&"9".repeat(MAX_DIGITS + 1)));
        assert!(!is_plain("\u{7f}") && !is_plain("é"));
    }
}
