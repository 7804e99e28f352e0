//! Tests of the workflows: every action is pinned by commit, because a tag can be moved.

use std::fs;

use crate::repository;

#[test]
fn actions_are_pinned_by_commit() {
    let mut checked = 0;
    for entry in fs::read_dir(repository().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for (_, action) in text.lines().filter_map(|line| line.split_once("uses: ")) {
            let is_pinned = action.split_once('@').is_some_and(|(_, version)| {
                version.split_once(" # v").is_some_and(|(commit, _)| {
                    commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
                })
            });
            assert!(is_pinned, "{}: {action}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 0);
}
