use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;

use super::{HiddenContents, MAX_ENTRIES, files::Tree, values};
use crate::AccessView;

/// Time after which everything is read again: other files decide about what is public.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The contents of the denied files, read again when rules, folders or files have changed.
pub struct KeptContents {
    min_line: usize,
    public_before: Option<SystemTime>,
    kept: Mutex<Kept>,
}

struct Kept {
    tree: Tree,
    contents: Arc<HiddenContents>,
    read_at: Option<Instant>,
}

impl Default for KeptContents {
    fn default() -> Self {
        Self {
            min_line: values::MIN_LINE_BYTES,
            public_before: None,
            kept: Mutex::new(Kept {
                tree: Tree::new(MAX_ENTRIES),
                contents: Arc::default(),
                read_at: None,
            }),
        }
    }
}

impl KeptContents {
    /// Recognizes lines from `min_line` bytes on. Lines count as public, but not values, that an allowed file contains
    /// which has not changed since now, also if git does not track it.
    pub fn with_public_lines(min_line: usize) -> Self {
        Self {
            min_line,
            public_before: Some(SystemTime::now()),
            ..Self::default()
        }
    }

    /// Returns the contents of the files that a view denies.
    pub fn get(&self, view: &AccessView) -> Arc<HiddenContents> {
        let mut kept = self.kept.lock();
        let is_old = kept.read_at.is_none_or(|at| at.elapsed() > MAX_AGE);
        if is_old {
            kept.tree.clear();
        }
        let mut is_changed = kept.tree.refresh(view);
        if kept.tree.rules(view) != kept.contents.rules && !is_old {
            kept.tree.clear();
            is_changed = kept.tree.refresh(view);
        }
        if is_changed {
            let contents = HiddenContents::of(&kept.tree, view, self.min_line, self.public_before);
            kept.contents = Arc::new(contents);
            kept.read_at = Some(Instant::now());
        }
        kept.contents.clone()
    }
}
