//! Display name of the editor.

/// Maximum name, in characters.
const MAX_CHARS: usize = 60;

/// Pairs of `clientInfo.name` and display name.
const NAMES: &[(&str, &str)] = &[
    ("nvim", "Neovim"),
    ("neovim", "Neovim"),
    ("vim", "Vim"),
    ("helix", "Helix"),
    ("zed", "Zed"),
    ("emacs", "Emacs"),
    ("eglot", "Emacs"),
    ("lsp-mode", "Emacs"),
];

/// Returns the editor's name for headings. Unknown names are stripped of control characters and
/// truncated.
pub fn display_name(client: &str) -> String {
    let name: String = client
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect();
    let name = name.trim();
    if name.is_empty() {
        return "Editor".to_owned();
    }
    for (known, shown) in NAMES {
        if name.eq_ignore_ascii_case(known) {
            return (*shown).to_owned();
        }
    }
    let short: String = name.chars().take(MAX_CHARS).collect();
    short.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (client, shown) in [
            ("nvim", "Neovim"),
            ("Neovim", "Neovim"),
            ("helix", "Helix"),
            ("Zed", "Zed"),
            ("Eglot", "Emacs"),
            ("emacs", "Emacs"),
            ("Visual Studio Code", "Visual Studio Code"),
            ("code-server", "code-server"),
            ("", "Editor"),
            (" \n\u{1b}", "Editor"),
            ("My\nEditor\u{7}", "My Editor"),
        ] {
            assert_eq!(display_name(client), shown, "{client:?}");
        }
        assert_eq!(display_name(&"é".repeat(500)).chars().count(), MAX_CHARS);
    }
}
