//! Reads logs of version 0.1.0, in which a compaction takes several lines.
//!
//! Its head stores how many lines follow; each is the child of the one before and contains one
//! message. It takes effect when its last line is present. If another entry comes first, lines
//! were lost and the others are ignored.

use uuid::Uuid;

use super::{LogEntry, OldPart, Parent};

/// The lines of a compaction that is not complete yet.
#[derive(Debug)]
pub(crate) struct OpenCompaction {
    entry: LogEntry,
    last: Uuid,
    missing: u32,
}

impl OpenCompaction {
    pub(crate) fn contains(&self, uuid: Uuid) -> bool {
        self.entry.uuid == uuid || self.entry.messages.iter().any(|known| known.uuid == uuid)
    }
}

/// Joins the lines of a compaction. Returns the entry that is complete with this line, if any.
pub(crate) fn join(open: &mut Option<OpenCompaction>, entry: LogEntry) -> Option<LogEntry> {
    let joined = open.take();
    match (entry.old_part, joined) {
        (None, _) => Some(entry),
        (Some(OldPart::Head { following }), _) => {
            *open = Some(OpenCompaction {
                last: entry.uuid,
                missing: following,
                entry,
            });
            None
        }
        (Some(OldPart::Message), Some(mut joined))
            if matches!(entry.parent, Parent::Absent)
                || entry.parent == Parent::Id(joined.last) =>
        {
            joined.last = entry.uuid;
            joined.missing -= 1;
            joined.entry.messages.extend(entry.messages);
            if joined.missing == 0 {
                return Some(joined.entry);
            }
            *open = Some(joined);
            None
        }
        (Some(OldPart::Message), _) => None,
    }
}
