//! What `sightline agents install`, `uninstall` and `status` say.

use std::fs;

use crate::agents::Home;

#[test]
fn init_is_recommended_to_those_without_rules() {
    let home = Home::new();
    let install = ["install", "--agent", "claude"];
    let text = home.run(&install, 1);
    assert!(text.contains("`sightline init`"), "{text}");
    fs::write(home.workspace.root().join(".clineignore"), "").unwrap();
    let text = home.run(&install, 1);
    assert!(!text.contains("sightline init"), "{text}");
    assert!(text.contains("files that .clineignore names"), "{text}");
}
