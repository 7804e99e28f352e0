//! The token of a plan.

use sha2::{Digest, Sha256};
use sightline_base::{escape::hex, path::RelPath};

use super::Decisions;
use crate::store::object::Oid;

/// Returns the token of a plan. Plans with different effects have different tokens. `affected` are
/// the paths that are changed only if forced.
pub(super) fn plan_token(
    target: Oid,
    wanted: &[RelPath],
    decisions: &Decisions,
    affected: &[&RelPath],
) -> String {
    let mut hash = Sha256::new();
    let mut piece = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let path_bytes = |path: &RelPath| path.as_path().as_os_str().as_encoded_bytes().to_vec();
    piece(target.as_bytes());
    piece(&(wanted.len() as u64).to_le_bytes());
    for path in wanted {
        piece(&path_bytes(path));
    }
    for step in &decisions.steps {
        piece(&path_bytes(&step.path));
        for leaf in [&step.before, &step.after] {
            match leaf {
                Some(leaf) => {
                    piece(leaf.mode.octal().as_bytes());
                    piece(leaf.oid.as_bytes());
                }
                None => piece(b""),
            }
        }
    }
    piece(b"left alone");
    for conflict in &decisions.conflicts {
        piece(&path_bytes(&conflict.path));
        piece(conflict.reason.as_bytes());
    }
    piece(b"only if forced");
    for path in affected {
        piece(&path_bytes(path));
    }
    hex(&hash.finalize()[..16])
}
