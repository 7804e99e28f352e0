//! Tests of the files included with a summary.

use super::*;

/// Files with their approximate tokens, by importance: changed files, then by mentions.
const FILES: [(&str, usize); 4] = [("a", 1_000), ("b", 2_500), ("c", 1_000), ("d", 1_000)];

/// A conversation about [`FILES`] with about `goes` tokens before and `stays` tokens after the
/// split point.
fn about_files(goes: usize, stays: usize) -> Case {
    let said = |tokens: usize| json!({"type": "text", "text": "word ".repeat(tokens)});
    let mut blocks = vec![said(goes), call("w", "write_to_file", json!({"path": "a"}))];
    for (path, count) in [("b", 3), ("c", 2), ("d", 1)] {
        let read = call("r", "read_file", json!({"path": path}));
        blocks.extend(vec![read; count]);
    }
    let mut case = Case::new(vec![
        user(&[said(1)]),
        assistant(&blocks),
        user(&[result("w", "done")]),
        assistant(&[said(stays)]),
    ]);
    for (path, tokens) in FILES {
        case.file(
            path,
            &format!("{}\n", "word ".repeat(19)).repeat(tokens / 20),
        );
    }
    case
}

fn with_summary(case: &Case, summary: &str) -> (u64, u64, String) {
    let options = ApplyCompactionParams {
        summary: Some(summary.into()),
        ..ApplyCompactionParams::default()
    };
    let applied = case.apply(&options).unwrap();
    assert_eq!(applied.retained, 3);
    let paths: Vec<&str> = applied.files.iter().map(|file| &*file.path).collect();
    let message = &case.messages_of(&applied)[0];
    for (path, _) in FILES {
        let shown = message.contains(&format!("<file_content path=\\\"{path}\\\">"));
        assert_eq!(shown, paths.contains(&path), "{path}");
    }
    (applied.pre_tokens, applied.post_tokens, paths.join(" "))
}

#[test]
fn files_are_included_as_far_as_they_fit() {
    // The summary message takes less than 500 tokens; each file adds about 30.
    for (goes, files) in [
        (10_000, "a b c d"),
        (5_300, "a b c"),
        // `b` is too large; the next file fits.
        (2_900, "a c"),
        (1_900, "a"),
        (600, ""),
    ] {
        // The same in a small and in a large conversation.
        for stays in [10, 30_000] {
            let mut case = about_files(goes, stays);
            let (pre, post, included) = with_summary(&case, "short");
            assert_eq!(included, files, "{goes} {stays}");
            assert!(post < pre, "{goes} {stays}: {pre} {post}");
            // Calibration makes everything cost more, here by half.
            case.calibration
                .observe(crate::compaction_support::Case::family(), 1_000, 1_000);
            case.calibration
                .observe(crate::compaction_support::Case::family(), 16_000, 11_000);
            let (reported_pre, reported_post, included) = with_summary(&case, "short");
            assert_eq!(included, files, "{goes} {stays}");
            assert!(reported_post < reported_pre && reported_pre - reported_post > pre - post);
        }
    }
}

#[test]
fn small_conversations_always_include_files() {
    let summary = "long ".repeat(2_000);
    // The summary alone is longer than the messages it replaces.
    let mut case = about_files(100, 15_000);
    let (pre, post, files) = with_summary(&case, &summary);
    assert!(pre < 20_000 && post > pre);
    assert_eq!(files, "a b c d");
    for (tokens, expected) in [(20_000, "a b c d"), (20_001, "")] {
        case.calibration = Calibration::default();
        case.calibration
            .observe(crate::compaction_support::Case::family(), tokens, pre);
        let (pre, post, files) = with_summary(&case, &summary);
        assert_eq!((pre, &*files), (tokens, expected));
        assert!(post > pre);
    }
}
